"""Weight recovery: match a fitted network to a planted one, neuron by neuron.

Networks are compared as sets of neurons: their order, a positive factor moved from a neuron's weights to its
output, and a neuron written as several on the same side of the same line make no difference. Direct
connections are two neurons for each output, ``w x = relu(w x) - relu(-w x)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from thresher.data.planted import PlantedProblem
from thresher.errors import DataError, ParameterError
from thresher.network import Network
from thresher.theory.forms import network_of

# Directions this close, as a chord of unit vectors, are one.
SAME_LINE = 1e-9


@dataclass(frozen=True, eq=False)
class Neurons:
    """Neurons with unit inputs, so that two networks can be compared.

    Attributes
    ----------
    inputs : array of shape (neurons, features + 1)
        Weights and, last, the bias, of Euclidean length 1.
    outputs : array of shape (neurons, outputs)
    constant : array of shape (outputs,)
    """

    inputs: NDArray[np.float64]
    outputs: NDArray[np.float64]
    constant: NDArray[np.float64]

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Give the Euclidean norm of every neuron's weights from input to output."""
        return np.linalg.norm(self.outputs, axis=1)


def neurons_of(network: Network, merge: bool = True) -> Neurons:
    """List the neurons of a network with one hidden layer, those that do nothing left out.

    Parameters
    ----------
    network : Network
    merge : bool
        Whether neurons on the same side of the same line become one; a neuron without inputs, which is
        constant, is then added to the output.
    """
    if len(network.layers) != 2:
        raise ParameterError(
            f"the network has {len(network.layers) - 1} hidden layers, but neurons are matched in networks "
            f"with one. Compare predictions instead."
        )
    hidden, last = network.layers
    inputs = np.column_stack([hidden.weights.toarray().T, hidden.bias]).astype(np.float64)
    outputs = last.weights.toarray().astype(np.float64)
    constant = last.bias.astype(np.float64)
    if network.direct is not None:
        linear = np.column_stack([network.direct_coef.T, np.zeros(network.outputs)])
        inputs = np.vstack([inputs, linear, -linear])
        outputs = np.vstack([outputs, np.eye(network.outputs), -np.eye(network.outputs)])
    lengths = np.linalg.norm(inputs, axis=1)
    live = (lengths > 0) & (np.abs(outputs).max(axis=1) > 0)
    inputs, outputs = inputs[live] / lengths[live, None], outputs[live] * lengths[live, None]
    if merge:
        flat = ~inputs[:, :-1].any(axis=1)
        constant = constant + (np.maximum(inputs[flat, -1:], 0) * outputs[flat]).sum(axis=0)
        inputs, outputs = _merged(inputs[~flat], outputs[~flat])
    return Neurons(inputs, outputs, constant)


def _merged(
    inputs: NDArray[np.float64], outputs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add up the outputs of neurons with the same direction."""
    kept: list[int] = []
    sums = outputs.copy()
    for neuron, direction in enumerate(inputs):
        near = [other for other in kept if np.linalg.norm(inputs[other] - direction) <= SAME_LINE]
        if near:
            sums[near[0]] += outputs[neuron]
        else:
            kept.append(neuron)
    alive = [neuron for neuron in kept if sums[neuron].any()]
    return inputs[alive], sums[alive]


@dataclass(frozen=True)
class Match:
    """How a fitted network compares with the planted one.

    Attributes
    ----------
    precision, recall : float
        Share of the fitted weights that are planted, and of the planted ones that were found.
    largest_error : float
        The largest difference of two weights, neurons missed or invented included, relative to the largest
        planted weight. Weights are those from input to output, ``u_ij v_ik``.
    missed, invented : tuple of int
        Planted neurons without a partner, and fitted ones, numbered after merging.
    pairs : tuple of (int, int)
        Planted and fitted neurons that belong together.
    """

    precision: float
    recall: float
    largest_error: float
    missed: tuple[int, ...]
    invented: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    def equivalent(self, tolerance: float = 1e-6) -> bool:
        """Say whether the networks are one up to order, scaling and merging, to a relative tolerance."""
        return not self.missed and not self.invented and self.largest_error <= tolerance


def match(fitted: Network, planted: Network | PlantedProblem, negligible: float = 1e-9) -> Match:
    """Match the neurons of a fitted network to those of a planted one.

    Neurons are paired so that the weights differ least in all. Two neurons that open on opposite sides, or
    share nothing, are no partners.

    Parameters
    ----------
    fitted : Network
    planted : Network or PlantedProblem
    negligible : float
        Weights below this share of the largest planted one do not count for precision and recall.

    Examples
    --------
    >>> one = Network.fused([[1.0, 0.0], [0.0, 2.0]], None, [1, -1])
    >>> two = Network.fused([[0.0, 1.0], [2.0, 0.0]], None, [-1, 1])
    >>> found = match(two, one)
    >>> found.pairs, found.equivalent()
    (((0, 1), (1, 0)), True)
    """
    truth = neurons_of(network_of(planted) if isinstance(planted, PlantedProblem) else planted)
    guess = neurons_of(fitted)
    if truth.inputs.shape[1] != guess.inputs.shape[1] or truth.outputs.shape[1] != guess.outputs.shape[1]:
        raise DataError(
            f"the fitted network has {guess.inputs.shape[1] - 1} inputs and {guess.outputs.shape[1]} "
            f"outputs, the planted one {truth.inputs.shape[1] - 1} and {truth.outputs.shape[1]}: they must "
            "be the same."
        )
    paths = [part.inputs[:, :, None] * part.outputs[:, None, :] for part in (truth, guess)]
    scale = float(np.abs(paths[0]).max(initial=0.0)) or 1.0
    pairs = _pairs(truth, guess, paths)
    missed = tuple(sorted(set(range(len(truth.inputs))) - {one for one, _ in pairs}))
    invented = tuple(sorted(set(range(len(guess.inputs))) - {two for _, two in pairs}))
    errors = [np.abs(paths[0][one] - paths[1][two]).max() for one, two in pairs]
    errors += [np.abs(paths[0][one]).max() for one in missed] + [
        np.abs(paths[1][two]).max() for two in invented
    ]
    errors.append(np.abs(truth.constant - guess.constant).max(initial=0.0))
    supports = [np.abs(part).max(axis=2) > negligible * scale for part in paths]
    common = sum(int((supports[0][one] & supports[1][two]).sum()) for one, two in pairs)
    sizes = [int(part.sum()) for part in supports]
    return Match(
        precision=common / sizes[1] if sizes[1] else 1.0,
        recall=common / sizes[0] if sizes[0] else 1.0,
        largest_error=float(max(errors)) / scale,
        missed=missed,
        invented=invented,
        pairs=tuple(pairs),
    )


def _pairs(truth: Neurons, guess: Neurons, paths: list[NDArray[np.float64]]) -> list[tuple[int, int]]:
    """Assign neurons to each other at the least cost; staying alone costs a neuron's own size."""
    rows, columns = len(truth.inputs), len(guess.inputs)
    apart = paths[0][:, None] - paths[1][None]
    cost = np.sqrt((apart**2).sum(axis=(2, 3))).reshape(rows, columns)
    alone = truth.sizes[:, None] + guess.sizes[None]
    strangers = (truth.inputs @ guess.inputs.T <= 0) | (cost >= alone * (1 - 1e-12))
    whole = np.zeros((rows + columns, rows + columns))
    whole[:rows, :columns] = np.where(strangers, 2 * alone + 1, cost)
    whole[:rows, columns:] = truth.sizes[:, None]
    whole[rows:, :columns] = guess.sizes[None]
    chosen = zip(*linear_sum_assignment(whole), strict=True)
    return [
        (int(one), int(two))
        for one, two in chosen
        if one < rows and two < columns and not strangers[one, two]
    ]
