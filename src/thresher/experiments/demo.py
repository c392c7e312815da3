"""The demonstration: a planted network found again, and two small real datasets under a few budgets."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from thresher.data.planted import PlantedProblem, label_floor, planted, psnr
from thresher.experiments.fits import RECOVERED, decibels
from thresher.network import Network

ROWS, INPUTS, NEURONS, WEIGHTS, NEGATIVE = 4_000, 30, 5, 18, 0.4
DIABETES_BUDGETS = (3, 5, 8, 15, 30)
DIGITS_BUDGETS = (50, 100, 200, 500)

# All models of both datasets: one for each budget, and on each dataset a linear one and a dense network.
MODELS = len(DIABETES_BUDGETS) + len(DIGITS_BUDGETS) + 4

# Labels are stored in float32, so that weights cannot be known much better than to seven digits.
SAME_WEIGHT = 1e-4


@dataclass(frozen=True)
class Weights:
    """Planted and recovered weights, neuron beside neuron; the last row holds the biases.

    Attributes
    ----------
    planted, recovered : array of shape (inputs + 1, neurons)
    planted_signs, recovered_signs : array of shape (neurons,)
        Signs with which neurons enter the output; 0 for a neuron without weights.
    """

    planted: np.ndarray = field(repr=False)
    recovered: np.ndarray = field(repr=False)
    planted_signs: np.ndarray = field(repr=False)
    recovered_signs: np.ndarray = field(repr=False)

    @property
    def largest_error(self) -> float:
        """The largest difference between a planted weight and the recovered one."""
        return float(np.abs(self.planted - self.recovered).max(initial=0.0))

    @property
    def same(self) -> bool:
        """Whether both are one network: the same support, signs and weights."""
        supports = np.array_equal(self.planted != 0, self.recovered != 0)
        signs = np.array_equal(self.planted_signs, self.recovered_signs)
        return supports and signs and self.largest_error < SAME_WEIGHT

    def rows(self) -> Iterator[tuple[int, int, int, float, float]]:
        """List every weight of either: neuron, its sign, input, planted weight, recovered weight."""
        for neuron in range(self.planted.shape[1]):
            sign = int(self.planted_signs[neuron] or self.recovered_signs[neuron])
            used = np.flatnonzero((self.planted[:, neuron] != 0) | (self.recovered[:, neuron] != 0))
            for feature in used:
                yield (
                    neuron,
                    sign,
                    int(feature),
                    float(self.planted[feature, neuron]),
                    float(self.recovered[feature, neuron]),
                )


@dataclass(frozen=True)
class Planted:
    """What came of the planted network."""

    weights: Weights
    psnr: float
    floor: float
    nonzeros: int
    seconds: float

    @property
    def verdict(self) -> str:
        """Say what was found: "exact", "equivalent" (other weights that fit as well) or "missed"."""
        if self.weights.same:
            return "exact"
        return "equivalent" if self.psnr > RECOVERED else "missed"


@dataclass(frozen=True)
class Score:
    """One model on one dataset: how many numbers it holds, and how well it does on held-out rows."""

    model: str
    nonzeros: int
    score: float
    seconds: float
    sparse: bool


def recover_planted(seed: int) -> Planted:
    """Plant a network with neurons of both signs, and find it again from its labels alone."""
    from thresher.estimators import SparseMLPRegressor

    problem = planted(ROWS, INPUTS, NEURONS, WEIGHTS, negative=NEGATIVE, seed=seed)
    model = SparseMLPRegressor(budget=WEIGHTS, hidden=NEURONS, random_state=seed)
    seconds = _fitted(model, problem.X, problem.y)
    return Planted(
        match(problem, model.network_),
        decibels(psnr(problem.y, model.predict(problem.X))),
        decibels(label_floor(problem)),
        model.nonzeros_,
        seconds,
    )


def match(problem: PlantedProblem, network: Network) -> Weights:
    """Put the neurons of a fitted network beside the planted ones that they are closest to."""
    assert problem.signs is not None
    hidden, output = network.layers
    bias = np.zeros((1, problem.signs.size))
    truth = np.vstack([problem.weights[0].toarray(), bias])
    guess = np.vstack([hidden.weights.toarray(), hidden.bias[None, :]])
    truth, truth_signs = _used(truth, problem.signs)
    guess, guess_signs = _used(guess, output.weights.toarray().ravel())
    width = max(truth.shape[1], guess.shape[1])
    truth, guess = _padded(truth, width), _padded(guess, width)
    truth_signs, guess_signs = _padded(truth_signs, width), _padded(guess_signs, width)
    # Neurons of different signs are as far apart as if they shared no input.
    left, right = _split_by_sign(truth, truth_signs), _split_by_sign(guess, guess_signs)
    distance = np.square(left[:, :, None] - right[:, None, :]).sum(0)
    _, order = linear_sum_assignment(distance)
    return Weights(truth, guess[:, order], truth_signs, guess_signs[order])


def fit_diabetes(seed: int, after_each: Callable[[], object]) -> list[Score]:
    """Fit the diabetes data at a few budgets; scores are R2 on a quarter of the rows, held out."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from thresher.estimators import SparseMLPRegressor

    X, y = load_diabetes(return_X_y=True, scaled=False)
    inputs = X.shape[1]
    # Left to run to its end, a dense network overfits so few rows badly; this way it has its best chance.
    network = MLPRegressor(hidden_layer_sizes=(100,), early_stopping=True, max_iter=500, random_state=seed)
    dense = make_pipeline(StandardScaler(), network)
    models = [
        *(
            (_sparse_name(budget), SparseMLPRegressor(budget, hidden=10, random_state=seed), None)
            for budget in DIABETES_BUDGETS
        ),
        ("linear regression", LinearRegression(), inputs + 1),
        ("dense network, 100 neurons", TransformedTargetRegressor(dense, transformer=StandardScaler()), 1201),
    ]
    return _scores(X, y, models, seed, after_each)


def fit_digits(seed: int, after_each: Callable[[], object]) -> list[Score]:
    """Fit the digits, one small network for each digit; scores are accuracies on a quarter of the rows."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from thresher.estimators import SparseMLPClassifier

    X, y = load_digits(return_X_y=True)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    dense = make_pipeline(StandardScaler(), MLPClassifier((100,), random_state=seed))
    models = [
        *(
            (_sparse_name(budget), SparseMLPClassifier(budget, max_iter=50, random_state=seed), None)
            for budget in DIGITS_BUDGETS
        ),
        ("logistic regression", linear, 650),
        ("dense network, 100 neurons", dense, 7510),
    ]
    return _scores(X, y, models, seed, after_each)


def _sparse_name(budget: int) -> str:
    return f"budget {budget}"


def _scores(
    X: np.ndarray,
    y: np.ndarray,
    models: list[tuple[str, Any, int | None]],
    seed: int,
    after_each: Callable[[], object],
) -> list[Score]:
    """Fit each model to the same rows; a model that does not say how many numbers it holds is sparse."""
    from sklearn.model_selection import train_test_split

    train_X, test_X, train_y, test_y = train_test_split(X, y, test_size=0.25, random_state=seed)
    scores = []
    for name, model, numbers in models:
        seconds = _fitted(model, train_X, train_y)
        score = round(float(model.score(test_X, test_y)), 4)
        scores.append(Score(name, numbers or model.nonzeros_, score, seconds, numbers is None))
        after_each()
    return scores


def _fitted(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Fit a model, and give the seconds it took."""
    from sklearn.exceptions import ConvergenceWarning

    from thresher.errors import InterruptedFitWarning

    began = time.perf_counter()
    with warnings.catch_warnings():
        # Dense networks stop after their passes, as intended.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Ctrl-C ends the demonstration, not only the fit that it meets.
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            model.fit(X, y)
        except InterruptedFitWarning:
            raise KeyboardInterrupt from None
    return round(time.perf_counter() - began, 3)


def _used(columns: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    used = columns.any(0)
    return columns[:, used].astype(np.float64), signs[used].astype(np.float64)


def _padded(array: np.ndarray, width: int) -> np.ndarray:
    missing = width - array.shape[-1]
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])


def _split_by_sign(columns: np.ndarray, signs: np.ndarray) -> np.ndarray:
    return np.vstack([columns * (signs > 0), columns * (signs < 0)])
