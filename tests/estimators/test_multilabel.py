"""Several labels for each row: answers have scikit-learn's shapes, one budget serves all labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.metrics import f1_score

from thresher import Network, SparseMLPClassifier
from thresher.errors import ParameterError
from thresher.solvers.iht import IHT

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(260, 4))
Y = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0, np.abs(X[:, 3]) > 1]).astype(int)


def quick(**options: Any) -> SparseMLPClassifier:
    return SparseMLPClassifier(15, 4, max_iter=40, random_state=0, **options)


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


def test_a_file_gives_log_odds(tmp_path: Path) -> None:
    MODEL.network_.save(tmp_path / "m.thresher")
    odds = Network.load(tmp_path / "m.thresher").predict(X)
    np.testing.assert_array_equal(odds, MODEL.decision_function(X))


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
