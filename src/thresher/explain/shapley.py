"""Shapley values: what each input adds to an answer, exactly, where neurons read few inputs."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.explain.parts import Deep, Neuron, parts_of, rows_read
from thresher.network.structure import Structure

# Inputs of one neuron, or of a network of several hidden layers, up to which all subsets are gone through.
MOST_INPUTS = 12
# Numbers that a deep network may be asked for: rows, times rows behind them, times subsets.
MOST_ANSWERS = 5 * 10**7
# Rows of a block of these.
BLOCK = 2**18


def shapley_values(network: Structure, X: Any, background: Any = None) -> np.ndarray:
    """Share each row's outputs out to the inputs by Shapley's rule, exactly.

    The value of a set of inputs is the mean output where these are as in the row and the others as in a row
    of the background, over all of its rows (interventional). An output is a sum of parts, and so are Shapley
    values: a neuron that reads k inputs needs the 2^k sets of these, however many inputs the network has.
    What is shared out is the output before any link (log-odds, logarithms, scores), less its mean over the
    background.

    Parameters
    ----------
    network : Network
        One hidden layer whose neurons read up to 12 inputs each, or a deeper network of up to 12 inputs.
    X : array-like or sparse array of shape (n, inputs)
        The rows to explain.
    background : array-like or sparse array of shape (m, inputs), optional
        What inputs are compared with; by default the rows of X.

    Returns
    -------
    array of shape (n, inputs), or (n, inputs, outputs) where there are several
        A row adds up to its output less the mean output over the background.

    References
    ----------
    Lundberg and Lee, "A unified approach to interpreting model predictions", 2017; Janzing, Minorics and
    Bloebaum, "Feature relevance quantification in explainable AI", 2020, for the interventional value.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Network
    >>> network = Network.fused([[1.0], [1.0]], None, [1], direct=[0.0, 2.0])
    >>> shapley_values(network, [[1.0, 1.0]], [[0.0, 0.0]])
    array([[1., 3.]])
    """
    read, found = shares_read(network, X, background)
    answer = np.zeros((len(found), network.inputs, network.outputs))
    answer[:, read] = found
    return answer[:, :, 0] if network.outputs == 1 else answer


def shares_read(network: Structure, X: Any, background: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Give the inputs that are read, ascending, and the shares of these alone: (n, inputs read, outputs)."""
    parts = parts_of(network)
    rows = rows_read(network, X)
    behind = rows if background is None else rows_read(network, background)
    found = np.zeros((len(rows), len(parts.read), network.outputs))
    for place, slopes in parts.linear.items():
        found[:, place] += (rows[:, place] - behind[:, place].mean())[:, None] * slopes
    for neuron in parts.neurons:
        _refuse_many(len(neuron.places), "a neuron reads")
        shares = _of_neuron(neuron, rows, behind)
        found[:, neuron.places] += shares[:, :, None] * neuron.gives
    if parts.deep is not None and len(parts.deep.places):
        _refuse_many(len(parts.deep.places), "several hidden layers read")
        found[:, parts.deep.places] += _of_deep(parts.deep, rows, behind)
    return parts.read, found


def _refuse_many(inputs: int, what: str) -> None:
    if inputs > MOST_INPUTS:
        raise ParameterError(
            f"{what} {inputs} inputs, but exact Shapley values go through all subsets of up to "
            f"{MOST_INPUTS}. Fit with max_fan_in={MOST_INPUTS} or a smaller budget, or use "
            "permutation_importance."
        )


def _shares(count: int, value: np.ndarray) -> np.ndarray:  # (n, 2^count, ...) -> (n, count, ...)
    """Turn values of all sets into Shapley values; bit i of a set's number tells whether input i is in it."""
    sets = np.arange(2**count)
    size = np.array([int(each).bit_count() for each in sets])
    weight = np.array([factorial(k) * factorial(count - k - 1) / factorial(count) for k in range(count)])
    found = np.empty((value.shape[0], count, *value.shape[2:]))
    for i in range(count):
        without = sets[(sets >> i) & 1 == 0]
        gain = value[:, without | (1 << i)] - value[:, without]
        found[:, i] = np.tensordot(weight[size[without]], gain, axes=(0, 1))
    return found


def _of_neuron(neuron: Neuron, rows: np.ndarray, behind: np.ndarray) -> np.ndarray:  # (n, inputs of it)
    """Share a neuron's value out: sorted sums of the background give the mean over it at once."""
    count = len(neuron.places)
    own, other = rows[:, neuron.places] * neuron.weights, behind[:, neuron.places] * neuron.weights
    value = np.empty((len(rows), 2**count))
    for number in range(2**count):
        inside = np.array([number >> i & 1 for i in range(count)], dtype=bool)
        known = own[:, inside].sum(axis=1)
        value[:, number] = _mean_positive(known, other[:, ~inside].sum(axis=1) + neuron.bias)
    return _shares(count, value)


def _mean_positive(known: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Give the mean of ``max(0, known + other)`` over the others, for each that is known."""
    others = np.sort(others)
    # From each place on, the sum of what follows.
    tails = np.append(np.cumsum(others[::-1])[::-1], 0.0)
    first = np.searchsorted(others, -known, side="right")
    return (tails[first] + (len(others) - first) * known) / len(others)


def _of_deep(deep: Deep, rows: np.ndarray, behind: np.ndarray) -> np.ndarray:  # (n, inputs of it, outputs)
    """Share out what several hidden layers give, by computing every mixture of rows."""
    count = len(deep.places)
    answers = len(rows) * len(behind) * 2**count
    if answers > MOST_ANSWERS:
        raise ParameterError(
            f"{len(rows):,} rows before {len(behind):,} with {2**count:,} subsets of inputs make {answers:,} "
            f"answers of a deep network, but at most {MOST_ANSWERS:,} are computed. Give fewer rows as X or "
            "background."
        )
    step = max(1, BLOCK // len(behind))
    value = []
    for number in range(2**count):
        inside = deep.places[np.array([number >> i & 1 for i in range(count)], dtype=bool)]
        means = []
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            mixed = np.tile(behind, (len(part), 1))
            mixed[:, inside] = np.repeat(part[:, inside], len(behind), axis=0)
            means.append(deep.values(mixed).reshape(len(part), len(behind), -1).mean(axis=1))
        value.append(np.concatenate(means))
    return _shares(count, np.stack(value, axis=1))
