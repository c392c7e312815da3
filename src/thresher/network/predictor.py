"""What a network answers for rows: outputs, scores, classes, probabilities, intervals and sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax

from thresher.errors import ParameterError
from thresher.network import conformal, forward
from thresher.network.structure import Structure


class Predictor(Structure):
    """A structure that predicts; :class:`thresher.Network` tells what each part is."""

    def forward(self, X: Any) -> np.ndarray:
        """Return the outputs for the rows of X, before any link, as float64 of shape (n, outputs).

        Parameters
        ----------
        X : array-like, sparse array or rows on disk of shape (n, inputs)
            Real numbers of any type, a frame or a memory map; sparse data is never made dense. Where inputs
            have names, a frame whose columns are named by strings must have these, in this order.
        """
        return forward.outputs(self.layers, X, self.direct, self.features)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores: (n,) for two classes, above zero for ``classes[1]``, else (n, n_classes).

        Several labels have their log-odds: (n, labels).
        """
        if self.gives_labels:
            return self.forward(X)
        self._refuse_regression("decision_function")
        scores = self.forward(X)
        if self.outputs > 1:
            return scores
        return scores[:, 0] - (0.5 if self.link == "identity" else 0.0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of every row, or the outputs of a regression: (n,) for one, else (n, outputs).

        Under the log link a regression answers the exponentials of its outputs. Several labels are 1 where a
        row has them, as is more probable than not, and 0 elsewhere: (n, labels).
        """
        if self.gives_labels:
            return (self.forward(X) > 0).astype(np.int64)
        if self.classes is None:
            values = self.forward(X)
            values = forward.exponential(values) if self.link == "log" else values
            return values[:, 0] if self.outputs == 1 else values
        scores = self.decision_function(X)
        if self.outputs > 1:
            return self.classes[scores.argmax(axis=1)]
        # The squared-loss classifier takes classes[1] where its output is at least 0.5, a tie included.
        above = scores >= 0 if self.link == "identity" else scores > 0
        return self.classes[above.astype(np.intp)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, of shape (n, n_classes).

        With ``link="identity"`` the output itself is the probability of ``classes[1]``, clipped to [0, 1].
        Several labels have a probability each, of shape (n, labels), which need not add up to one.
        """
        if self.gives_labels:
            return np.asarray(expit(self.forward(X)))
        self._refuse_regression("predict_proba")
        scores = self.forward(X)
        if self.link == "softmax":
            return softmax(scores, axis=1)
        score = scores[:, 0]
        if self.link == "logistic":
            return np.column_stack([expit(-score), expit(score)])
        second = np.clip(score, 0.0, 1.0)
        return np.column_stack([1.0 - second, second])

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return between which numbers the target of a row is, in that share of rows: (n, 2).

        Several targets give an array of shape (n, 2, outputs). Needs calibration rows, which
        ``calibrate`` of an estimator and ``thresher fit`` keep in the details; see :doc:`uncertainty`.

        Examples
        --------
        >>> from thresher import Network
        >>> kept = {"calibration": {"rows": 3, "by": "held out", "scores": [[0.5, 1.0, 2.0]]}}
        >>> Network.fused([[2.0]], None, [1], details=kept).predict_interval([[3.0]], coverage=0.5)
        array([[5., 7.]])
        """
        reach = conformal.reach(self, coverage, classes=False)
        return conformal.interval(self.link, self.predict(X), reach)

    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Return of which classes a row may be, the right one among them in that share of rows.

        Booleans of shape (n, n_classes); the most probable class always is among them. Needs calibration rows
        as :meth:`predict_interval` does.
        """
        reach = conformal.reach(self, coverage, classes=True)
        shares = self.predict_proba(X)
        return (1.0 - shares <= reach) | (shares == shares.max(axis=1, keepdims=True))

    def _refuse_regression(self, method: str) -> None:
        if self.classes is None:
            raise ParameterError(f"{method} needs classes, but this network is a regression: use predict.")
