"""Sparse networks planted on purpose: the problems whose answer is known.

A planted network is drawn as the paper's authors draw it. Of each weight matrix, `budget // matrices`
positions (at most the whole matrix) are chosen uniformly without replacement and get standard normal values;
ReLU stands between the layers and there are no biases. With one output the last layer is fused, so that the
label of a row x is ``sum_i sign_i relu(x . w_i)``. Rows are standard normal. Labels are computed in float64
and stored as float32, and that rounding is all that keeps a perfect fit from an infinite PSNR.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from thresher.errors import BudgetError, DataError, ParameterError, ThresherError

# Each purpose has a stream of its own, so that a network does not depend on how many rows it labels and rows
# drawn later are never the rows that were trained on, whatever the seeds.
ROWS, WEIGHTS, SIGNS, FRESH_ROWS = range(4)

# Float64 numbers in the widest layer of one chunk of rows: 8 MB, which stays near the processor.
CHUNK_NUMBERS = 2**20


@dataclass(frozen=True)
class PlantedSettings:
    """What a planted problem was drawn from: the same settings give the same bits."""

    n: int
    d: int
    hidden: tuple[int, ...]
    budget: int
    outputs: int
    negative: float
    seed: int


@dataclass(frozen=True, eq=False)
class PlantedProblem:
    """Data, and the sparse network that labelled it.

    Attributes
    ----------
    X : float32 array of shape (n, d)
        Rows, standard normal.
    y : float32 array of shape (n,) for one output, else (n, outputs)
        Labels.
    weights : tuple of CSR arrays
        One float32 matrix for each layer, of shape (inputs, neurons). One output needs no matrix of its own.
    signs : float32 array of +1 and -1, one for each neuron of the last hidden layer, or None
        How the neurons are summed into one output; None where the outputs have weights.
    settings : PlantedSettings
        What it was drawn from.
    """

    X: NDArray[np.float32] = field(repr=False)
    y: NDArray[np.float32] = field(repr=False)
    weights: tuple[scipy.sparse.csr_array, ...] = field(repr=False)
    signs: NDArray[np.float32] | None = field(repr=False)
    settings: PlantedSettings

    @property
    def nonzeros(self) -> int:
        """The nonzero weights of all layers; signs are free."""
        return sum(layer.nnz for layer in self.weights)

    def evaluate(self, X: ArrayLike) -> NDArray[np.float64]:
        """Give the exact labels of any rows: the network in float64, without the rounding of stored labels.

        Parameters
        ----------
        X : array of shape (rows, d)
            Rows to label.

        Returns
        -------
        float64 array of shape (rows,) for one output, else (rows, outputs)
        """
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.settings.d:
            raise DataError(
                f"X has shape {rows.shape}, but this network takes {self.settings.d} inputs. "
                f"Give an array of shape (rows, {self.settings.d})."
            )
        return _evaluate(rows, self.weights, self.signs)


def planted(
    n: int = 50_000,
    d: int = 100,
    hidden: int | tuple[int, ...] | list[int] = 10,
    budget: int = 500,
    *,
    outputs: int = 1,
    negative: float = 0.0,
    seed: int = 0,
) -> PlantedProblem:
    """Plant a sparse network and label random rows with it.

    Parameters
    ----------
    n : int
        Rows.
    d : int
        Inputs.
    hidden : int, or tuple or list of int
        The width of the hidden layer, or one width for each hidden layer.
    budget : int
        Nonzero weights, split evenly over the weight matrices. A remainder is left out, and so is what
        exceeds a matrix; a budget smaller than the number of matrices leaves the labels all zero.
    outputs : int
        Outputs. One output sums the last hidden layer; more have a weight matrix of their own.
    negative : float
        The share of neurons, from 0 to 1, that one output subtracts. The paper adds them all.
    seed : int
        The same seed gives the same bits.

    Returns
    -------
    PlantedProblem

    Examples
    --------
    >>> problem = planted(n=200, d=20, hidden=5, budget=30, seed=1)
    >>> problem.X.shape, problem.y.shape, problem.nonzeros
    ((200, 20), (200,), 30)
    >>> psnr(problem.y, problem.evaluate(problem.X)) > 140
    True
    """
    settings = _check_settings(n, d, hidden, budget, outputs, negative, seed)
    weights = _draw_weights(settings)
    signs = _draw_signs(settings) if settings.outputs == 1 else None
    X = _draw_rows(settings.n, settings.d, settings.seed, ROWS)
    y = _evaluate(X, weights, signs).astype(np.float32)
    return PlantedProblem(X, y, weights, signs, settings)


def fresh_rows(
    problem: PlantedProblem, n: int, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draw rows that a planted problem does not hold, with their labels.

    Parameters
    ----------
    problem : PlantedProblem
        Whose network labels the rows.
    n : int
        Rows.
    seed : int
        The same seed gives the same bits. Any seed, the problem's own included, gives new rows.

    Returns
    -------
    X : float32 array of shape (n, d)
    y : float32 array of shape (n,) for one output, else (n, outputs)
    """
    X = _draw_rows(_whole("n", n, 1), problem.settings.d, _whole("seed", seed, 0), FRESH_ROWS)
    return X, problem.evaluate(X).astype(np.float32)


def psnr(y: ArrayLike, prediction: ArrayLike) -> float:
    """Measure a fit in dB: ``20 log10(max |y|) - 10 log10(mean squared error)``, all outputs together.

    Parameters
    ----------
    y : array
        Labels.
    prediction : array of the same shape
        What a network says of the same rows.

    Returns
    -------
    float
        The peak signal-to-noise ratio, computed in float64. A perfect fit gives infinity. Labels that are
        all zero have no peak to compare with: they give 0, whatever the prediction.

    Examples
    --------
    >>> psnr([0.0, 10.0], [1.0, 9.0])
    20.0
    """
    truth, guess = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    if truth.shape != guess.shape or truth.size == 0:
        raise DataError(
            f"y has shape {truth.shape} and prediction {guess.shape}, but a PSNR compares one prediction "
            "with each label, of at least one. Give both arrays the same shape."
        )
    peak = float(np.abs(truth).max())
    error = float(np.mean(np.square(truth - guess)))
    if peak == 0.0:
        return 0.0
    if error == 0.0:
        return math.inf
    return 20 * math.log10(peak) - 10 * math.log10(error)


def label_floor(problem: PlantedProblem) -> float:
    """Give the PSNR of the planted network itself, which only the rounding of stored labels keeps finite.

    Parameters
    ----------
    problem : PlantedProblem
        Whose labels are compared with its network in float64.

    Returns
    -------
    float
        The PSNR in dB that no fit can be expected to exceed; some 161 dB for the paper's problems.
    """
    return psnr(problem.y, problem.evaluate(problem.X))


def _draw_rows(n: int, d: int, seed: int, purpose: int) -> NDArray[np.float32]:
    return _stream(seed, purpose).standard_normal((n, d), dtype=np.float32)


def _draw_weights(settings: PlantedSettings) -> tuple[scipy.sparse.csr_array, ...]:
    """Draw each layer's positions uniformly without replacement, and standard normal values for them."""
    widths = (settings.d, *settings.hidden, *([settings.outputs] if settings.outputs > 1 else []))
    shapes = list(itertools.pairwise(widths))
    share = settings.budget // len(shapes)
    rng = _stream(settings.seed, WEIGHTS)
    layers = []
    for inputs, neurons in shapes:
        size = inputs * neurons
        positions = np.sort(rng.choice(size, min(share, size), replace=False, shuffle=False))
        # Drawn in float64: a float32 draw is exactly zero once in some ten million, and would not count.
        values = rng.standard_normal(len(positions)).astype(np.float32)
        coordinates = np.divmod(positions, neurons)
        layers.append(scipy.sparse.csr_array((values, coordinates), shape=(inputs, neurons)))
    return tuple(layers)


def _draw_signs(settings: PlantedSettings) -> NDArray[np.float32]:
    """Subtract the given share of neurons, to the nearest whole number; which ones is random."""
    neurons = settings.hidden[-1]
    signs = np.ones(neurons, dtype=np.float32)
    signs[: round(settings.negative * neurons)] = -1
    return _stream(settings.seed, SIGNS).permutation(signs)


def _stream(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose,)))


def _evaluate(
    X: NDArray[np.generic],  # (rows, d)
    weights: tuple[scipy.sparse.csr_array, ...],
    signs: NDArray[np.float32] | None,  # (neurons of the last hidden layer,)
) -> NDArray[np.float64]:
    """Run the network in float64, a chunk of rows at a time."""
    layers = [layer.astype(np.float64) for layer in weights]
    if signs is not None:
        layers.append(scipy.sparse.csr_array(signs[:, None], dtype=np.float64))
    labels = np.empty((len(X), layers[-1].shape[1]))
    rows = max(1, CHUNK_NUMBERS // max(max(layer.shape) for layer in layers))
    # Sparse products add in a fixed order: unlike a dense product, whose order depends on the machine's
    # threads, they give every row the same bits in any chunk.
    for start in range(0, len(X), rows):
        values = X[start : start + rows].astype(np.float64)
        for layer in layers[:-1]:
            values = np.maximum(values @ layer, 0.0)
        labels[start : start + rows] = values @ layers[-1]
    return labels if signs is None else labels[:, 0]


def _check_settings(
    n: int, d: int, hidden: object, budget: int, outputs: int, negative: object, seed: int
) -> PlantedSettings:
    widths = hidden if isinstance(hidden, (tuple, list)) else (hidden,)
    if not widths:
        raise ParameterError(
            f"hidden={hidden!r} names no layer. Use a width, or one width for each hidden layer: for example "
            "hidden=10 or hidden=(10, 5)."
        )
    if not isinstance(negative, (int, float, np.number)) or not 0 <= negative <= 1:
        raise ParameterError(
            f"negative={negative!r} is not a share of the neurons. Use a number from 0 to 1."
        )
    if negative > 0 and outputs != 1:
        raise ParameterError(
            f"negative={negative!r} with outputs={outputs!r}, but only one output sums neurons by signs; "
            "more have weights of both signs already. Use negative=0 or outputs=1."
        )
    return PlantedSettings(
        n=_whole("n", n, 1),
        d=_whole("d", d, 1),
        hidden=tuple(_whole("hidden", width, 1) for width in widths),
        budget=_whole("budget", budget, 1, BudgetError),
        outputs=_whole("outputs", outputs, 1),
        negative=float(negative),
        seed=_whole("seed", seed, 0),
    )


def _whole(name: str, value: object, least: int, error: type[ThresherError] = ParameterError) -> int:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= least:
        return int(value)
    raise error(f"{name}={value!r} is not allowed here. Use a whole number of {least} or more.")
