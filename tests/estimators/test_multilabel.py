"""Several labels for each row: answers have scikit-learn's shapes, one budget serves all labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.metrics import f1_score
from typer.testing import CliRunner

from thresher import Network, SparseMLPClassifier, SparseMLPClassifierCV
from thresher.cli.app import app
from thresher.errors import ParameterError
from thresher.solvers.iht import IHT

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(260, 4))
Y = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0, np.abs(X[:, 3]) > 1]).astype(int)


def quick(**options: Any) -> SparseMLPClassifier:
    return SparseMLPClassifier(15, 4, max_iter=40, random_state=1, **options)


MODEL = quick().fit(X[:200], Y[:200])


def test_every_label_is_learned_within_one_budget() -> None:
    assert MODEL.nonzeros_ <= 15
    assert f1_score(Y[200:], MODEL.predict(X[200:]), average=None).min() > 0.75
    assert MODEL.score(X[200:], Y[200:]) > 0.6
    assert MODEL.classes_.tolist() == [0, 1, 2]


def test_answers_have_a_column_for_each_label() -> None:
    shares, scores = MODEL.predict_proba(X), MODEL.decision_function(X)
    assert shares.shape == scores.shape == Y.shape
    assert (MODEL.predict(X) == (shares > 0.5)).all()
    assert MODEL.predict(X).dtype == Y.dtype
    np.testing.assert_allclose(np.exp(MODEL.predict_log_proba(X)), shares)


def test_a_file_answers_as_the_estimator_does(tmp_path: Path) -> None:
    MODEL.network_.save(tmp_path / "m.thresher")
    network = Network.load(tmp_path / "m.thresher")
    np.testing.assert_array_equal(network.predict(X), MODEL.predict(X))
    np.testing.assert_array_equal(network.predict_proba(X), MODEL.predict_proba(X))
    np.testing.assert_array_equal(network.decision_function(X), MODEL.decision_function(X))
    assert "3 labels for each row" in network.describe()
    assert network.formula().startswith("P(y0) = sigmoid(")
    with pytest.raises(ParameterError, match="several labels: use predict_proba"):
        network.predict_interval(X)


def test_labels_are_named_as_the_columns_of_their_frame() -> None:
    table = pd.DataFrame(Y[:200], columns=["sweet", "sour", "salty"])
    assert quick().fit(X[:200], table).network_.details["target"] == ["sweet", "sour", "salty"]
    path = SparseMLPClassifierCV([15], 4, cv=2, max_iter=40, random_state=0).fit(X[:200], table)
    assert path.network_.details["target"] == ["sweet", "sour", "salty"]


def test_exports_give_the_probability_of_each_label() -> None:
    shares = MODEL.predict_proba(X[:9])
    space: dict[str, Any] = {}
    exec(MODEL.network_.to_python(), space)
    np.testing.assert_allclose([space["predict"](row) for row in X[:9]], shares)
    whole = MODEL.network_.quantise(X, bits=16)
    assert np.mean(whole.predict(X) == MODEL.predict(X)) > 0.98


def test_a_command_line_writes_a_column_for_each_label(tmp_path: Path) -> None:
    columns = ["a", "b", "c", "d"]
    table = pd.DataFrame(Y[:200], columns=["sweet", "sour", "salty"])
    model = quick().fit(pd.DataFrame(X[:200], columns=columns), table)
    model.network_.save(tmp_path / "m.thresher")
    frame = pd.DataFrame(X[200:], columns=columns)
    frame.to_csv(tmp_path / "new.csv", index=False)
    files = [str(tmp_path / name) for name in ("m.thresher", "new.csv")]
    done = CliRunner().invoke(app, ["predict", *files, "--probabilities", "--out", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "out.csv")
    names = ["sweet", "sour", "salty"]
    np.testing.assert_array_equal(found[[f"prediction_{name}" for name in names]], model.predict(frame))
    np.testing.assert_allclose(found[[f"P({name})" for name in names]], model.predict_proba(frame))


def test_a_path_of_budgets_takes_several_labels() -> None:
    path = SparseMLPClassifierCV([4, 15], 4, cv=3, max_iter=40, random_state=0).fit(X[:200], Y[:200] == 1)
    assert path.nonzeros_ <= path.budget_ == 15
    assert path.predict(X[200:]).dtype == bool
    assert path.score(X[200:], Y[200:]) > 0.6
    assert path.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, pd.DataFrame, np.ndarray.tolist, lambda y: y == 1])
def test_tables_of_labels_may_come_in_any_form(form: Any) -> None:
    model = quick().fit(X[:200], form(Y[:200]))
    assert (model.predict(X).astype(int) == MODEL.predict(X)).all()


def test_rows_are_weighed_and_a_label_that_all_rows_have_is_learned() -> None:
    weight = np.where(X[:200, 0] > 0, 1.0, 0.0)
    model = quick().fit(X[:200], Y[:200], sample_weight=weight)
    assert model.predict(X)[:, 0].all()


def test_what_several_labels_cannot_have_is_refused() -> None:
    with pytest.raises(ParameterError, match="class_weight='balanced' came with several labels"):
        quick(class_weight="balanced").fit(X, Y)
    with pytest.raises(ParameterError, match="loss='squared' came with several labels"):
        quick(loss="squared").fit(X, Y)
    with pytest.raises(ParameterError, match="gives several labels"):
        MODEL.calibrate(X, Y)
    with pytest.raises(ParameterError, match="outputs"):
        quick(solver=IHT()).fit(X, Y)
    with pytest.raises(ValueError, match="should be a 1d array"):
        quick().fit(X, np.full((260, 2), 0.5))
