"""What scikit-learn's users are used to: importances, logarithms, validation scores, frames, routing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from sklearn.datasets import load_iris
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from thresher import SparseMLPClassifier, SparseMLPClassifierCV, SparseMLPRegressor, SparseMLPRegressorCV
from thresher.data import open_rows
from thresher.estimators.importances import spreads_of
from thresher.estimators.task import Rows


def wave(rows: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Make rows whose target is a matter of columns 1 and 4, the latter less, in units of any size."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(rows, 6)) * [1, 1000, 1, 1, 0.01, 1] + [0, 5000, 0, 0, 3, 0]
    return X, 3 * np.abs(X[:, 1] / 1000 - 5) + (X[:, 4] - 3) * 100 + 0.05 * draw.normal(size=rows)


def quick(budget: int = 6, **options: object) -> SparseMLPRegressor:
    return SparseMLPRegressor(budget, 3, max_iter=30, random_state=0, **options)


X, Y = wave()
MODEL = quick(8).fit(X, Y)


def test_importances_are_shares_in_spreads_of_the_inputs() -> None:
    shares = MODEL.feature_importances_
    assert shares.shape == (6,)
    assert shares.sum() == pytest.approx(1)
    assert ((shares > 0) == MODEL.get_support()).all()
    # A unit of column 4 moves the output ten thousand times as far as one of column 1.
    assert shares[1] > shares[4] > 0.1
    moved = quick(8).fit(X * 2.0**7, Y).feature_importances_
    np.testing.assert_allclose(moved, shares, atol=1e-6)


def test_importances_are_the_same_on_disk_and_sparse(tmp_path) -> None:  # type: ignore[no-untyped-def]
    np.save(tmp_path / "X.npy", X)
    there = quick(8).fit(open_rows(tmp_path / "X.npy"), Y)
    np.testing.assert_allclose(there.feature_importances_, MODEL.feature_importances_, atol=1e-9)
    sparse = quick(8).fit(scipy.sparse.csr_array(X), Y)
    assert sparse.feature_importances_.sum() == pytest.approx(1)
    assert ((sparse.feature_importances_ > 0) == sparse.get_support()).all()


def test_weights_of_rows_weigh_spreads_as_repeats_do() -> None:
    layers, times = MODEL.network_.layers, np.arange(150) % 3
    read = MODEL.network_.inputs_used()
    weighed = spreads_of(Rows(X, Y, times.astype(float)), layers, MODEL.network_.direct)
    np.testing.assert_allclose(weighed, np.repeat(X, times, axis=0)[:, read].std(axis=0))


def test_inputs_are_selected_unaided() -> None:
    kept = SelectFromModel(quick(8), threshold=0.05).fit(X, Y).get_support(indices=True)
    assert kept.tolist() == [1, 4]
    assert RFE(quick(8), n_features_to_select=2, step=2).fit(X, Y).get_support(indices=True).tolist() == [
        1,
        4,
    ]


def test_selected_columns_keep_their_names() -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    steps = make_pipeline(StandardScaler(), SelectFromModel(quick(8), threshold=0.05), quick(8))
    steps.set_output(transform="pandas").fit(frame, Y)
    assert steps[-1].feature_names_in_.tolist() == ["b", "e"]
    assert steps[-1].network_.features == ("b", "e")


def test_a_path_has_the_importances_of_what_it_chose() -> None:
    path = SparseMLPRegressorCV([2, 8], 3, cv=2, max_iter=10, random_state=0).fit(X, Y)
    assert path.feature_importances_.tolist() == path.estimator_.feature_importances_.tolist()
    assert path.n_features_in_ == MODEL.n_features_in_ == 6


@pytest.mark.parametrize("classes", [2, 3])
def test_logarithms_of_probabilities_are_exact_next_to_zero(classes: int) -> None:
    rows, labels = load_iris(return_X_y=True)
    rows, labels = rows[labels < classes], labels[labels < classes]
    model = SparseMLPClassifier(8, 2, max_iter=5, random_state=0).fit(rows, labels)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), model.predict_proba(rows))
    assert np.isfinite(model.predict_log_proba(1000 * rows)).all()
    squared = SparseMLPClassifier(1, 2, loss="squared", max_iter=5, random_state=0).fit(
        rows[labels < 2], labels[labels < 2]
    )
    shares = squared.predict_proba(10 * rows)
    logs = squared.predict_log_proba(10 * rows)
    assert (np.isneginf(logs) == (shares == 0)).all()


def test_validation_scores_are_r2_on_the_rows_set_aside() -> None:
    records: list[dict[str, float]] = []
    model = quick(early_stopping=True, callback=records.append).fit(X, Y)
    assert model.validation_scores_
    assert max(model.validation_scores_) <= 1
    assert max(model.validation_scores_) > 0.3
    told = [record["validation_score"] for record in records if "validation_score" in record]
    assert told == model.validation_scores_
    assert not any("badness" in record for record in model.history_)
    assert MODEL.validation_scores_ is None


def test_frames_of_polars_are_read_with_their_names() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: X[:, place] for place, name in enumerate("abcdef")})
    model = quick(8).fit(frame, polars.Series(Y))
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert (model.predict(frame) == quick(8).fit(X, Y).predict(X)).all()
    assert (model.network_.predict(frame) == model.predict(frame)).all()
    path = SparseMLPClassifierCV([2, 4], 2, cv=2, max_iter=5, random_state=0).fit(frame, Y.mean() < Y)
    assert path.network_.features == tuple("abcdef")
    with pytest.raises(ValueError, match="column 'a' of X holds text"):
        quick().fit(frame.with_columns(a=polars.Series(["x"] * 150)), Y)


@pytest.fixture
def routing() -> Iterator[None]:
    """Route metadata as scikit-learn does when it is asked to."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_weights_are_routed_where_they_are_asked_for(routing: None) -> None:
    weight = np.where(X[:, 0] > 0, 1.0, 0.0)
    asked = quick().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(asked, {"budget": [2, 6]}, cv=2).fit(X, Y, sample_weight=weight)
    alone = quick(search.best_params_["budget"]).fit(X, Y, sample_weight=weight)
    assert (search.predict(X) == alone.predict(X)).all()
    steps = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), asked)
    steps.fit(X, Y, sample_weight=weight)
    path = SparseMLPRegressorCV([2, 6], 3, cv=2, max_iter=5, random_state=0)
    steps_of_path = make_pipeline(path.set_fit_request(sample_weight=True))
    steps_of_path.fit(X, Y, sample_weight=weight)
    assert (steps_of_path[-1].scores_ == path.fit(X, Y, sample_weight=weight).scores_).all()
    assert (path.scores_ != path.fit(X, Y).scores_).any()
    scaled = StandardScaler().fit_transform(X)
    assert (steps.predict(X) == quick().fit(scaled, Y, sample_weight=weight).predict(scaled)).all()


def test_groups_stay_together_where_folds_look_at_them(routing: None) -> None:
    groups = np.arange(150) % 5
    options = {"budgets": [2, 6], "hidden": 3, "max_iter": 5, "random_state": 0}
    told = list(GroupKFold(3).split(X, Y, groups))
    expected = SparseMLPRegressorCV(cv=told, **options).fit(X, Y).scores_
    path = SparseMLPRegressorCV(cv=GroupKFold(3), **options)
    assert (path.fit(X, Y, groups=groups).scores_ == expected).all()
    steps = make_pipeline(path.set_fit_request(groups=True)).fit(X, Y, groups=groups)
    assert (steps[-1].scores_ == expected).all()
    with pytest.raises(ValueError, match=r"groups came with cv=3.*GroupKFold\(3\)"):
        SparseMLPRegressorCV(cv=3, **options).fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        path.fit(X, Y, groups=groups[:-1])


def test_tags_say_that_targets_may_be_several() -> None:
    assert all(
        get_tags(one).target_tags.multi_output for one in (SparseMLPRegressor(), SparseMLPRegressorCV())
    )
    assert get_tags(SparseMLPClassifier()).classifier_tags.multi_label
