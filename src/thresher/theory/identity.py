"""When equal functions are equal networks, and what fresh rows say about a function.

A neuron leaves a kink along its line, and the kink gives its weights but not the side it opens to:
``relu(a) + relu(b) + relu(-a - b) = relu(-a) + relu(-b) + relu(a + b)``. All neurons of a set can turn over
at once where their ``v_i u_i`` sum to zero. Among networks with no two neurons on one line, nothing else is
possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.network import Network
from thresher.theory.matching import SAME_LINE, Neurons, neurons_of

# Lines this close, as a chord of unit vectors, are taken for one.
ONE_LINE = 1e-6

# A sum below this share of its terms is taken for zero: it says "cannot be told apart", never "is zero".
ZERO_SUM = 1e-7

# Neurons that take part in no obvious way beyond which subsets are too many to try: 2^20 in each half.
MOST_NEURONS = 40

# Sums of two halves that may cancel and are looked at one by one.
MOST_CANDIDATES = 100_000


@dataclass(frozen=True)
class Identity:
    """Whether a network is told from its function, among those with no two neurons on one line.

    Attributes
    ----------
    told : bool or None
        True where it is; False where two neurons share a line or a set of them can turn over; None where
        there are too many sets to try.
    reason : str
    """

    told: bool | None
    reason: str


def identity(network: Network, doubt: NDArray[np.float64] | None = None) -> Identity:
    """Decide whether no other network without collinear neurons is the same function.

    Parameters
    ----------
    network : Network
        With one hidden layer and one output. Biases are left out of the sums, since an output bias can make
        up for theirs: the answer errs on the side of not told. Direct connections can make up for any neuron
        that turns over, ``relu(a) = a + relu(-a)``: a network with them is never told.
    doubt : array of shape (live neurons, features + 1), optional
        What rounding leaves uncertain of each weight from input to output, and, last, of biases. Lines and
        sums that may be one, or zero, within it count as such.

    Examples
    --------
    >>> identity(Network.fused([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]], None, [1, 1, 1])).told
    False
    >>> identity(Network.fused([[1.0, 0.0, -1.0], [0.0, 1.0, -2.0]], None, [1, 1, 1])).told
    True
    """
    if network.direct is not None:
        return Identity(False, "with direct connections a neuron can turn over and they make up for it")
    neurons = neurons_of(network)
    lines = neurons.inputs
    turned = _turned(network, neurons, doubt)
    for one in range(len(lines)):
        chords = np.minimum(
            np.linalg.norm(lines[one + 1 :] - lines[one], axis=1),
            np.linalg.norm(lines[one + 1 :] + lines[one], axis=1),
        )
        if (chords <= ONE_LINE + turned[one] + turned[one + 1 :]).any():
            return Identity(False, "two neurons lie on one line, so a linear part can move between lines")
    vectors = lines[:, :-1] * neurons.outputs[:, :1]
    tolerance = np.full(vectors.shape[1], ZERO_SUM * float(np.abs(vectors).sum()))
    if doubt is not None:
        tolerance += doubt[:, :-1].sum(axis=0)
    if (np.abs(vectors) <= tolerance).all(axis=1).any():
        return Identity(False, "a neuron is too small to be told from none")
    return _subsets(vectors[_entangled(vectors, tolerance)], tolerance)


def _turned(network: Network, neurons: Neurons, doubt: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Say how far the direction of each neuron may be off, as a chord; of merged ones the largest."""
    found = np.zeros(len(neurons.inputs))
    if doubt is None:
        return found
    single = neurons_of(network, merge=False)
    if len(single.sizes) != len(doubt):
        return np.full(len(found), np.inf)  # A neuron's weights are too small for float64 to square.
    off = np.linalg.norm(doubt, axis=1) / single.sizes
    for place, direction in enumerate(neurons.inputs):
        found[place] = off[np.linalg.norm(single.inputs - direction, axis=1) <= SAME_LINE].max(initial=0.0)
    return found


def _entangled(vectors: NDArray[np.float64], tolerance: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Leave out neurons that no set with sum zero can hold: those alone on some feature, again and again."""
    left = np.ones(len(vectors), dtype=np.bool_)
    while True:
        used = (np.abs(vectors) > 0) & left[:, None]
        alone = used & (used.sum(axis=0) == 1) & (np.abs(vectors) > tolerance)
        if not alone.any():
            return left
        left &= ~alone.any(axis=1)


def _subsets(vectors: NDArray[np.float64], tolerance: NDArray[np.float64]) -> Identity:
    """Look for a set that sums to zero, by meeting in the middle along one random direction."""
    told = Identity(True, "no two neurons lie on one line, and no set of them can turn over")
    if len(vectors) == 0:
        return told
    if len(vectors) > MOST_NEURONS:
        return Identity(None, f"{len(vectors)} neurons share their features, too many sets to try")
    direction = np.random.default_rng(0).standard_normal(vectors.shape[1])
    half = len(vectors) // 2
    one, two = _sums(vectors[:half] @ direction), _sums(vectors[half:] @ direction)
    order = np.argsort(two)
    reach = float(np.abs(direction) @ tolerance)
    first = np.searchsorted(two[order], -one - reach)
    last = np.searchsorted(two[order], -one + reach, side="right")
    if int((last - first).sum()) > MOST_CANDIDATES:
        return Identity(None, "too many sets nearly sum to zero to look at each")
    for left in np.flatnonzero(last > first):
        for right in order[first[left] : last[left]]:
            if left == 0 and right == 0:
                continue
            chosen = np.concatenate([_members(int(left), half), _members(int(right), len(vectors) - half)])
            if (np.abs(vectors[chosen].sum(axis=0)) <= tolerance).all():
                return Identity(
                    False, f"{int(chosen.sum())} neurons sum to zero and can all turn over at once"
                )
    return told


def _sums(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the sums of all subsets; subset k holds number i where bit i of k is set."""
    sums = np.zeros(1)
    for number in numbers:
        sums = np.concatenate([sums, sums + number])
    return sums


def _members(subset: int, count: int) -> NDArray[np.bool_]:
    return (subset >> np.arange(count)) & 1 == 1


def disagreement_bound(rows: int, confidence: float) -> float:
    """Bound the share of inputs on which two functions differ when they agree on so many fresh rows.

    If the share were p, all rows would agree with probability ``(1 - p)^N <= exp(-p N)``: with confidence
    ``1 - delta`` p is at most ``ln(1 / delta) / N``.

    Examples
    --------
    >>> round(disagreement_bound(1000, confidence=0.99), 5)
    0.00461
    """
    return min(1.0, math.log(1 / (1 - confidence)) / rows)
