"""How well outputs explain targets: what a network of each link is fitted by, and a score for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logsumexp, softmax, xlogy

from thresher.errors import DataError
from thresher.network.structure import Structure

# Outputs beyond this overflow under a log link; they are as bad as this one.
LARGEST = 700.0


@dataclass(frozen=True, eq=False)
class Deviance:
    """Targets, and the loss of outputs for them, summed over rows.

    Attributes
    ----------
    link : str
        Of the network: it says which loss this is.
    y : array of shape (n, targets)
        Targets, or codes of classes.
    classes : bool
    """

    link: str
    y: np.ndarray
    classes: bool

    @classmethod
    def of(cls, network: Structure, y: Any) -> Deviance:
        """Take targets as the network predicts them: numbers, or labels among its classes.

        Raises
        ------
        DataError
            When y holds something else.
        """
        y = np.asarray(y)
        if network.classes is None:
            try:
                numbers = y.astype(np.float64).reshape(len(y), -1)
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"y holds what is not a number ({error}), but the network predicts numbers."
                ) from error
            if numbers.shape[1] != network.targets or not np.isfinite(numbers).all():
                raise DataError(
                    f"y has shape {y.shape}, but the network predicts {network.targets} finite numbers for "
                    "a row."
                )
            return cls(network.link, numbers, False)
        codes = {label: code for code, label in enumerate(network.classes.tolist())}
        found = np.array([codes.get(label, -1) for label in y.ravel().tolist()])
        if (found < 0).any():
            stranger = y.ravel()[int(np.flatnonzero(found < 0)[0])]
            raise DataError(f"y holds {stranger!r}, which is not among the classes of the network.")
        return cls(network.link, found[:, None], True)

    def each(self, outputs: np.ndarray) -> np.ndarray:  # (n, outputs) -> (n,)
        """Give the loss of each row: its squared errors, log loss, or half its Poisson deviance."""
        y = self.y
        if self.link == "logistic":
            return (np.logaddexp(0.0, outputs) - y * outputs).sum(axis=1)
        if self.link == "softmax":
            return np.asarray(logsumexp(outputs, axis=1) - outputs[np.arange(len(y)), y[:, 0]])
        if self.link == "log":
            return (np.exp(np.minimum(outputs, LARGEST)) - y * outputs + xlogy(y, y) - y).sum(axis=1)
        return np.square(outputs - y).sum(axis=1)

    def total(self, outputs: np.ndarray) -> float:  # (n, outputs)
        """Sum the loss over rows."""
        return float(self.each(outputs).sum())

    def least_constant(self) -> float:
        """Give the loss of the best constant, summed over rows."""
        y = self.y
        if self.link == "logistic":
            shares = y.mean(axis=0)
            return float(-(xlogy(shares, shares) + xlogy(1 - shares, 1 - shares)).sum() * len(y))
        if self.link == "softmax":
            shares = np.bincount(y[:, 0]) / len(y)
            return float(-xlogy(shares, shares).sum() * len(y))
        if self.link == "log":
            mean = y.mean(axis=0)
            return float((xlogy(y, y) - xlogy(y, mean)).sum())
        return float(np.square(y - y.mean(axis=0)).sum())

    def curvature(self, outputs: np.ndarray) -> Any:  # (n, outputs), or a number
        """Give what a small change of an output costs in each row, as a factor of its square."""
        if self.link == "logistic":
            share = expit(outputs)
            return 0.5 * share * (1 - share)
        if self.link == "softmax":
            share = softmax(outputs, axis=1)
            return 0.5 * share * (1 - share)
        return 0.5 * np.exp(np.minimum(outputs, LARGEST)) if self.link == "log" else 1.0

    def worth(self, outputs: np.ndarray, parameters: int) -> float:
        """Give what one more parameter gains by chance: half a unit of log-likelihood, in units of the loss.

        A network that explains its targets to less than a millionth is allowed that.
        """
        if self.link in ("logistic", "softmax"):
            return 0.5
        rows = max(1, len(self.y) - parameters)
        if self.link == "log":
            answer = np.exp(np.minimum(outputs, LARGEST))
            dispersion = float(((answer - self.y) ** 2 / np.maximum(answer, 1e-300)).sum()) / rows
            return 0.5 * max(dispersion, 1e-6)
        spread = float(((self.y - self.y.mean(axis=0)) ** 2).sum())
        return max(self.total(outputs) / rows, 1e-6 * spread)

    def score(self, outputs: np.ndarray) -> tuple[str, float]:
        """Give a score that people know, and its name: R2, or the share of answers that are right."""
        if self.classes:
            if outputs.shape[1] > 1:
                guess = outputs.argmax(axis=1)
            else:
                guess = (outputs[:, 0] >= 0.5 if self.link == "identity" else outputs[:, 0] > 0).astype(int)
            return "accuracy", float((guess == self.y[:, 0]).mean())
        if self.link == "logistic":
            return "share of labels", float(((outputs > 0) == self.y).mean())
        answer = np.exp(np.minimum(outputs, LARGEST)) if self.link == "log" else outputs
        spread = ((self.y - self.y.mean(axis=0)) ** 2).sum(axis=0)
        errors = ((self.y - answer) ** 2).sum(axis=0)
        known = spread > 0
        return "R2", float(np.mean(1 - errors[known] / spread[known])) if known.any() else 0.0
