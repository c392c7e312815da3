"""Calibration of estimators: how far a network is off on rows it has not seen, for intervals and sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from thresher.errors import DataError, ParameterError
from thresher.estimators.choosing import folds_of
from thresher.estimators.inputs import part_of, target_of
from thresher.estimators.parameters import seed_of
from thresher.estimators.predicting import Predictor
from thresher.estimators.requiring import numbered
from thresher.network import Network
from thresher.network.conformal import ENTRY, doubts, entry, misses

# Parameters of a refit: nothing but the network is to come of it.
ALONE = {"warm_start": False, "callback": None, "checkpoint": None, "verbose": False}


class Calibrated(Predictor):
    """An estimator whose network can be given calibration rows."""

    def calibrate(self, X: Any, y: Any = None, *, cv: Any = None) -> Any:
        """Measure how far the network is off, which its intervals or sets of classes are made of.

        Another fit asks for another calibration.

        Parameters
        ----------
        X : array, frame, sparse matrix or rows on disk of shape (n, d)
            Rows that the network was not fitted to (split conformal prediction). With `cv` those that it was
            fitted to.
        y : array of shape (n,) or (n, targets)
        cv : int, splitter or iterable, optional
            Refits a network of the same kind without each fold in turn, and measures it there
            (cross-conformal prediction): all rows serve both ends, at the price of as many fits. The network
            itself has seen the rows, so that coverage is no longer guaranteed, but near where refits are
            alike.

        Returns
        -------
        self

        Examples
        --------
        >>> from thresher import SparseMLPRegressor
        >>> X = np.linspace(0, 1, 60)[:, None]
        >>> y = X[:, 0] + 0.1 * np.sin(500 * X[:, 0])
        >>> model = SparseMLPRegressor(budget=2, hidden=1, random_state=0).fit(X[::2], y[::2])
        >>> model.calibrate(X[1::2], y[1::2]).predict_interval(X, coverage=0.9).shape
        (60, 2)
        """
        rows = self._checked_for_prediction(X)
        if self.network_.gives_labels:
            raise ParameterError(
                "calibrate is for one class a row, but this network gives several labels: fit a classifier "
                "for each."
            )
        truth = np.asarray(target_of(X, y))
        truth = truth[:, 0] if truth.ndim == 2 and truth.shape[1] == 1 else truth
        if len(truth) != rows.shape[0]:
            raise DataError(f"X has {rows.shape[0]:,} rows, but y has {len(truth):,}: give one target a row.")
        if cv is None:
            scores, by = scores_of(self.network_, rows, truth), "held out"
        else:
            scores, by = self._across(rows, truth, cv), "folds"
        self.network_ = calibrated(self.network_, scores, by)
        return self

    def _across(self, X: Any, y: np.ndarray, cv: Any) -> np.ndarray:
        """Score the rows of each fold by a network that was refitted without them."""
        # A path of budgets has chosen, and refits what it has chosen.
        chosen = getattr(self, "estimator_", self)
        like = clone(chosen).set_params(**numbered(chosen))
        like.set_params(**{name: value for name, value in ALONE.items() if hasattr(like, name)})
        like.set_params(random_state=seed_of(like.random_state))
        found = []
        for split in folds_of(cv, X, y, like.random_state, is_classifier(self)):
            (seen, train), (unseen, test) = (part_of(X, numbers) for numbers in split)
            network = clone(like).fit(seen, y[train]).network_
            found.append(scores_of(network, unseen, y[test]))
        return np.concatenate(found)


class IntervalPredictor(Calibrated):
    """An estimator of numbers that can tell between which two a target is."""

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Give a lower and an upper end for every row, between which so large a share of targets is.

        Needs :meth:`calibrate` first. The share holds on average over rows that are drawn as those of the
        calibration were; intervals are equally wide for all rows, except under a log link.

        Parameters
        ----------
        X : array of shape (n, d)
        coverage : float
            The share of targets that the intervals are to hold.

        Returns
        -------
        array of shape (n, 2), or (n, 2, targets) for several targets
        """
        X = self._checked_for_prediction(X)
        return self.network_.predict_interval(X, coverage)


class SetPredictor(Calibrated):
    """An estimator of classes that can tell which ones a row may be of."""

    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Give the classes that a row may be of, the right one among them for so large a share of rows.

        Needs :meth:`calibrate` first; the share holds as that of intervals does.

        Parameters
        ----------
        X : array of shape (n, d)
        coverage : float
            The share of rows whose set is to hold the right class.

        Returns
        -------
        boolean array of shape (n, n_classes), a column for each of `classes_`
        """
        X = self._checked_for_prediction(X)
        return self.network_.predict_set(X, coverage)


def scores_of(network: Network, X: Any, y: np.ndarray) -> np.ndarray:
    """Give how far a network is off on rows with targets, as its calibration takes it."""
    if network.classes is not None:
        return doubts(network.classes, y, network.predict_proba(X))
    try:
        truth = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"y holds what is not a number ({error}), but this network predicts numbers."
        ) from None
    predicted = network.predict(X)
    if truth.shape != predicted.shape:
        raise DataError(f"y has shape {truth.shape}, but the network predicts {predicted.shape}.")
    if not np.isfinite(truth).all():
        raise DataError("y holds NaN or infinity: leave those rows out of the calibration.")
    return misses(network.link, truth, predicted)


def calibrated(network: Network, scores: np.ndarray, by: str) -> Network:
    """Give a network that carries its calibration along, also into its file."""
    return replace(network, details={**network.details, ENTRY: entry(scores, by)})
