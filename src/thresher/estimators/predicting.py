"""What every estimator of a network does besides fitting: check data, predict, say what the network holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_expit, log_softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from thresher.data.rows import OnDisk
from thresher.errors import DataError
from thresher.estimators.inputs import as_frame, refuse_all_but_numbers, target_of
from thresher.network import Network

# Types of numbers that are read as they are; anything else becomes float64.
KEPT = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.int16, np.int32, np.int64, np.bool_]


class Predictor(BaseEstimator):
    """An estimator whose `fit` leaves a network behind."""

    network_: Network
    # The type of a table of labels.
    label_type_: np.dtype[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validated(
        self, X: Any, y: Any, *, numeric: bool, reset: bool = True, several: bool | None = None
    ) -> tuple[Any, np.ndarray]:
        """Check X and y without copying X: integers and float16 stay, other numbers become float64.

        Numbers may come in several columns, and classes in one, unless `several` says otherwise.
        """
        several = numeric if several is None else several
        X = as_frame(X)
        refuse_all_but_numbers("X", X)
        y = target_of(X, y)
        if numeric:
            refuse_all_but_numbers("y", y)
        if isinstance(X, OnDisk):
            self._check_columns(X, reset)
            check_consistent_length(X, y)
            return X, _check_y(y, multi_output=several, y_numeric=numeric, estimator=self)
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse="csr",
            dtype=KEPT,
            multi_output=several,
            y_numeric=numeric,
            accept_large_sparse=True,
        )
        return X, y

    def _checked_for_prediction(self, X: Any) -> Any:
        check_is_fitted(self, "network_")
        X = as_frame(X)
        refuse_all_but_numbers("X", X)
        if isinstance(X, OnDisk):
            self._check_columns(X, reset=False)
            return X
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=KEPT)

    def _check_columns(self, X: OnDisk, reset: bool) -> None:
        """Learn or compare number and names of columns; values on disk are checked when they are read."""
        named = X if X.columns is None else pd.DataFrame(columns=X.columns)
        _check_feature_names(self, named, reset=reset)
        _check_n_features(self, X, reset=reset)

    @property
    def nonzeros_(self) -> int:
        """How many weights and biases the network holds: never more than the budget."""
        check_is_fitted(self, "network_")
        return self.network_.nonzeros

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Say which inputs the network uses.

        Parameters
        ----------
        indices : bool
            Whether to give the numbers of the inputs instead of a mask.
        """
        check_is_fitted(self, "network_")
        return self.network_.inputs_used() if indices else self.network_.support()

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much each input matters: how far outputs move at most for one standard deviation, as shares.

        Zero for inputs that are not used, so that SelectFromModel and RFE keep those that are.
        """
        check_is_fitted(self, "network_")
        # A path of budgets keeps the estimator that it chose.
        fitted: Any = getattr(self, "estimator_", self)
        columns, shares = fitted.used_importances_
        every = np.zeros(self.network_.inputs)
        every[columns] = shares
        return every

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of every row: a number, several, or a class."""
        X = self._checked_for_prediction(X)
        return self.network_.predict(X)


class Scored:
    """The score of estimators that take rows on disk; comes before the mixin that tells which score it is."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Give R2 of the predictions, or their accuracy; rows on disk may bring their targets along."""
        return float(super().score(X, target_of(X, y), sample_weight))  # type: ignore[misc]


class ClassPredictor(Predictor):
    """An estimator whose network tells classes apart, or gives the log-odds of several labels."""

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of every row, or for each of several labels whether the row has it."""
        predicted = super().predict(X)
        return predicted.astype(self.label_type_) if self.network_.gives_labels else predicted

    def decision_function(self, X: Any) -> np.ndarray:
        """Give a number for every row, above zero for the second class; one for each of more or of labels."""
        X = self._checked_for_prediction(X)
        return self.network_.decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each class, or of each label, for every row."""
        X = self._checked_for_prediction(X)
        return self.network_.predict_proba(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Give the logarithm of the probability of each class, exact where that is next to zero."""
        X = self._checked_for_prediction(X)
        scores = self.network_.forward(X)
        if self.network_.gives_labels:
            return np.asarray(log_expit(scores))
        if self.network_.link == "softmax":
            return log_softmax(scores, axis=1)
        if self.network_.link == "logistic":
            return np.column_stack([log_expit(-scores[:, 0]), log_expit(scores[:, 0])])
        with np.errstate(divide="ignore"):
            return np.log(self.network_.predict_proba(X))


def refuse_one_class(classes: np.ndarray) -> None:
    """Refuse targets that leave nothing to tell apart."""
    if len(classes) < 2:
        raise DataError(
            f"y holds one class only, {classes.tolist()[0]!r}, but a classifier needs two classes to tell "
            "apart. Give rows of both."
        )
