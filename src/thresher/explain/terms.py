"""An output as a sum of terms that can be read: slopes, kinks at thresholds, neurons of several inputs.

Terms that are the same but for a factor are one, and where rows are known, so is what is the same on all of
them: a neuron that is on for every row is linear, and one that is never on adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from thresher.explain.parts import Neuron, Parts

# Numbers that differ by less than this share are the same but for rounding.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Linear:
    """``slope * x``; of an input that is 0 or 1, what is added where it is 1."""

    place: int
    slope: float

    @property
    def places(self) -> tuple[int, ...]:
        """Give the inputs read."""
        return (self.place,)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Give the numbers that are written."""
        return (self.slope,)

    def rounded(self, numbers: tuple[float, ...]) -> Linear:
        """Give the term with other numbers."""
        return replace(self, slope=numbers[0])

    def on(self, X: np.ndarray) -> np.ndarray:
        """Say on which rows the term adds anything."""
        return X[:, self.place] != 0

    def values(self, X: np.ndarray) -> np.ndarray:  # (n, inputs read) -> (n,)
        """Give what the term adds."""
        return self.slope * X[:, self.place]

    def size(self, spread: np.ndarray) -> float:
        """Say how much the term can matter where no rows are known."""
        return abs(self.slope) * float(spread[self.place])


@dataclass(frozen=True, eq=False)
class Hinge:
    """``slope * max(0, x - threshold)``, or with a side of -1 ``slope * max(0, threshold - x)``."""

    place: int
    side: int
    slope: float
    threshold: float

    @property
    def places(self) -> tuple[int, ...]:
        """Give the inputs read."""
        return (self.place,)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Give the numbers that are written."""
        return self.slope, self.threshold

    def rounded(self, numbers: tuple[float, ...]) -> Hinge:
        """Give the term with other numbers."""
        return replace(self, slope=numbers[0], threshold=numbers[1])

    def on(self, X: np.ndarray) -> np.ndarray:
        """Say on which rows the term adds anything."""
        return self.side * (X[:, self.place] - self.threshold) > 0

    def values(self, X: np.ndarray) -> np.ndarray:  # (n, inputs read) -> (n,)
        """Give what the term adds."""
        return self.slope * np.maximum(self.side * (X[:, self.place] - self.threshold), 0.0)

    def size(self, spread: np.ndarray) -> float:
        """Say how much the term can matter where no rows are known."""
        return abs(self.slope) * float(spread[self.place])


@dataclass(frozen=True, eq=False)
class Several:
    """``sign * max(0, weights @ x + bias)`` of several inputs."""

    read: tuple[int, ...]
    sign: int
    weights: tuple[float, ...]
    bias: float

    @property
    def places(self) -> tuple[int, ...]:
        """Give the inputs read."""
        return self.read

    @property
    def numbers(self) -> tuple[float, ...]:
        """Give the numbers that are written."""
        return (*self.weights, self.bias)

    def rounded(self, numbers: tuple[float, ...]) -> Several:
        """Give the term with other numbers."""
        return replace(self, weights=numbers[:-1], bias=numbers[-1])

    def on(self, X: np.ndarray) -> np.ndarray:
        """Say on which rows the term adds anything."""
        return X[:, list(self.read)] @ np.array(self.weights) + self.bias > 0

    def values(self, X: np.ndarray) -> np.ndarray:  # (n, inputs read) -> (n,)
        """Give what the term adds."""
        return self.sign * np.maximum(X[:, list(self.read)] @ np.array(self.weights) + self.bias, 0.0)

    def size(self, spread: np.ndarray) -> float:
        """Say how much the term can matter where no rows are known."""
        return float(np.linalg.norm(np.array(self.weights) * spread[list(self.read)]))


Term = Linear | Hinge | Several


@dataclass(frozen=True, eq=False)
class Sum:
    """One output, before any link: a constant and terms, those that matter most first.

    Attributes
    ----------
    constant : float
    terms : tuple of Term
    silent : int
        Neurons that were never on, on the rows that were given, and were left out.
    always : int
        Neurons that were on for all of these rows, and were written as linear parts.
    """

    constant: float
    terms: tuple[Term, ...]
    silent: int = 0
    always: int = 0

    def values(self, X: np.ndarray) -> np.ndarray:  # (n, inputs read) -> (n,)
        """Give the output."""
        return self.constant + sum((term.values(X) for term in self.terms), start=np.zeros(len(X)))

    @property
    def numbers(self) -> tuple[float, ...]:
        """Give all numbers that are written."""
        return (self.constant, *(number for term in self.terms for number in term.numbers))

    def rounded(self, numbers: tuple[float, ...]) -> Sum:
        """Give the sum with other numbers."""
        terms, start = [], 1
        for term in self.terms:
            end = start + len(term.numbers)
            terms.append(term.rounded(numbers[start:end]))
            start = end
        return replace(self, constant=numbers[0], terms=tuple(terms))


def sum_of(
    parts: Parts, output: int, indicators: frozenset[int], spread: np.ndarray, X: np.ndarray | None = None
) -> Sum:
    """Write an output as a sum of terms, ordered by what each moves it by.

    Parameters
    ----------
    parts : Parts
        Of a network with one hidden layer at most.
    output : int
    indicators : set of int
        Inputs that are 0 or 1, of which any function is linear.
    spread : array of shape (inputs read,)
        Standard deviations of the inputs, by which terms are ordered where there are no rows.
    X : array of shape (n, inputs read), optional
        Rows.
    """
    collected = _Collected(float(parts.constant[output]))
    for place, slopes in parts.linear.items():
        collected.add_linear(place, float(slopes[output]))
    silent = always = 0
    for neuron in parts.neurons:
        gives = float(neuron.gives[output])
        if gives == 0:
            continue
        sums = None if X is None else neuron.sums(X)
        if sums is not None and (sums <= 0).all():
            silent += 1
        elif sums is not None and (sums >= 0).all():
            always += 1
            collected.add_sum(neuron, gives)
        else:
            collected.add_neuron(neuron, gives, indicators)
    terms = list(collected.terms())
    matters = [term.size(spread) if X is None else float(term.values(X).std()) for term in terms]
    order = np.argsort(-np.array(matters), kind="stable")
    return Sum(collected.constant, tuple(terms[place] for place in order), silent, always)


class _Collected:
    """Terms of one output while they are gathered, like with like."""

    def __init__(self, constant: float) -> None:
        self.constant = constant
        self.linear: dict[int, float] = {}
        self.hinges: list[Hinge] = []
        self.several: list[Several] = []

    def add_linear(self, place: int, slope: float) -> None:
        self.linear[place] = self.linear.get(place, 0.0) + slope

    def add_sum(self, neuron: Neuron, gives: float) -> None:
        """Add a neuron that is on wherever it matters."""
        self.constant += gives * neuron.bias
        for place, weight in zip(neuron.places.tolist(), neuron.weights.tolist(), strict=True):
            self.add_linear(place, gives * weight)

    def add_neuron(self, neuron: Neuron, gives: float, indicators: frozenset[int]) -> None:
        if len(neuron.places) > 1:
            size = abs(gives)
            weights = tuple((size * neuron.weights).tolist())
            sign = 1 if gives > 0 else -1
            self._add_several(Several(tuple(neuron.places.tolist()), sign, weights, size * neuron.bias))
            return
        place, weight = int(neuron.places[0]), float(neuron.weights[0])
        if place in indicators:
            low, high = max(neuron.bias, 0.0), max(neuron.bias + weight, 0.0)
            self.constant += gives * low
            self.add_linear(place, gives * (high - low))
            return
        side = 1 if weight > 0 else -1
        self._add_hinge(Hinge(place, side, gives * abs(weight), -neuron.bias / weight + 0.0))

    def _add_hinge(self, hinge: Hinge) -> None:
        for number, other in enumerate(self.hinges):
            near = abs(hinge.threshold - other.threshold) <= SAME * abs(other.threshold)
            if other.place != hinge.place or not near:
                continue
            if other.side == hinge.side:
                self.hinges[number] = replace(other, slope=other.slope + hinge.slope)
                return
            if abs(other.slope + hinge.slope) <= SAME * abs(other.slope):
                # The two sides of a straight line.
                slope = other.side * other.slope
                self.add_linear(hinge.place, slope)
                self.constant -= slope * other.threshold
                del self.hinges[number]
                return
        self.hinges.append(hinge)

    def _add_several(self, term: Several) -> None:
        own = np.array(term.numbers)
        for number, other in enumerate(self.several):
            theirs = np.array(other.numbers)
            if other.read != term.read:
                continue
            factor = float(np.linalg.norm(own) / np.linalg.norm(theirs))
            if np.abs(own - factor * theirs).max() > SAME * np.abs(own).max():
                continue
            size = other.sign + term.sign * factor
            total = tuple((abs(size) * theirs).tolist())
            sign = 1 if size > 0 else -1
            self.several[number] = replace(other, sign=sign, weights=total[:-1], bias=total[-1])
            return
        self.several.append(term)

    def terms(self) -> Iterator[Term]:
        """Give the terms that add anything."""
        yield from (Linear(place, slope) for place, slope in self.linear.items() if slope != 0)
        yield from (hinge for hinge in self.hinges if hinge.slope != 0)
        yield from (term for term in self.several if any(term.weights))
