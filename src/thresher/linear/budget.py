"""The budget: keep exactly the s largest entries, in memory or in a stream, at every step of a schedule."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from thresher.errors import BudgetError
from thresher.linear.vector import SparseVector

# Entries that a stream looks at together.
SLICE = 2**16
# The digits of a double that are compared: those of a single. What is left differs by the order of a sum.
COMPARED = ~(2**29 - 1)

Schedule = Callable[[int], int]
"""The budget at each step, counted from 0."""


def keep_largest(vector: Tensor | SparseVector, budget: int) -> SparseVector:
    """Keep the `budget` entries of largest magnitude and set the rest to zero: H_s of the paper.

    Exactly `budget` entries stay, unless fewer are nonzero. Of entries with equal magnitude the one with the
    lower index stays, and doubles that agree in the digits of single precision count as equal, so the result
    depends neither on the order of a sort nor on the rounding of sums: neurons with the same gates have the
    same gradients, and rows that are added up in another order must not choose among them.

    Parameters
    ----------
    vector : tensor of shape (size,) or SparseVector
        What to threshold.
    budget : int
        How many entries may stay.

    Returns
    -------
    SparseVector

    Examples
    --------
    >>> keep_largest(torch.tensor([1.0, -3.0, 3.0, 0.5]), 2).indices.tolist()
    [1, 2]
    >>> keep_largest(torch.tensor([2.0, 2.0, -2.0]), 2).indices.tolist()
    [0, 1]
    """
    if isinstance(vector, Tensor):
        vector = SparseVector.from_dense(vector)
    magnitude = vector.values.abs()
    kept = largest(magnitude, min(budget, int((magnitude > 0).sum())))
    return SparseVector(vector.indices[kept], vector.values[kept], vector.size)


def largest(magnitude: Tensor, budget: int) -> Tensor:
    """Give the ascending positions of the `budget` largest entries, ties by position.

    Examples
    --------
    >>> largest(torch.tensor([1.0, 5.0, 5.0, 2.0, 5.0]), 2).tolist()
    [1, 2]
    """
    if budget >= magnitude.numel():
        return torch.arange(magnitude.numel())
    if budget <= 0:
        return torch.zeros(0, dtype=torch.int64)
    magnitude = _compared(magnitude)
    # topk leaves open which of several equal entries it returns; its smallest value is unique.
    threshold = torch.topk(magnitude, budget, sorted=False).values.min()
    kept = magnitude > threshold
    ties = (magnitude == threshold).nonzero().flatten()
    kept[ties[: budget - int(kept.sum())]] = True
    return kept.nonzero().flatten()


def _compared(magnitude: Tensor, out: Tensor | None = None) -> Tensor:
    """Cut doubles down to the digits that are compared."""
    if magnitude.dtype is not torch.float64:
        return magnitude
    memory = None if out is None else out.view(torch.int64)
    return torch.bitwise_and(magnitude.view(torch.int64), COMPARED, out=memory).view(torch.float64)


class StreamingTop:
    """Find the s largest entries of a vector that arrives in blocks, in O(s) memory.

    Blocks may come in any order; the answer is that of :func:`keep_largest` on the whole vector.

    Parameters
    ----------
    budget : int
        How many entries to keep.
    size : int
        Length of the whole vector.

    Examples
    --------
    >>> top = StreamingTop(2, size=6)
    >>> top.offer(3, torch.tensor([5.0, 0.0, -1.0]))
    >>> top.offer(0, torch.tensor([0.5, -7.0, 1.0]))
    >>> top.result().indices.tolist()
    [1, 3]
    """

    def __init__(self, budget: int, size: int) -> None:
        self.budget, self.size = budget, size
        self._indices: list[Tensor] = []
        self._values: list[Tensor] = []
        self._held = 0
        self._floor = 0.0

    def offer(self, start: int, block: Tensor) -> None:
        """Show the entries at positions `start`, `start` + 1, ... of the vector."""
        self.offer_at(lambda places: places + start, block)

    def offer_at(self, positions: Callable[[Tensor], Tensor], block: Tensor) -> None:
        """Show entries whose positions follow from their places in the block; only a few are asked for."""
        if self.budget <= 0 or block.numel() == 0:
            return
        # A selection needs several times the memory of what it selects from, so long blocks are cut.
        size = min(max(SLICE, 4 * self.budget), block.numel())
        # Taking and letting go of this memory for every slice would make the heap grow.
        magnitude, candidate = block.new_empty(size), torch.empty(size, dtype=torch.bool)
        for first in range(0, block.numel(), size):
            part = block[first : first + size]
            found = self._candidates(part, magnitude[: part.numel()], candidate[: part.numel()])
            if found.numel():
                self._take(positions(found + first), part[found])

    def _candidates(self, block: Tensor, magnitude: Tensor, candidate: Tensor) -> Tensor:
        """Give the places of entries that may be among the largest."""
        _compared(torch.abs(block, out=magnitude), out=magnitude)
        # What is below the s-th largest so far cannot return; an equal one may still win by its index.
        compare = torch.ge if self._floor > 0 else torch.gt
        places = compare(magnitude, self._floor, out=candidate).nonzero().flatten()
        if places.numel() > self.budget:
            # Equal ones all stay for now: the first in the block need not be the first of the vector.
            among = magnitude[places]
            places = places[among >= torch.topk(among, self.budget, sorted=False).values.min()]
        return places

    def _take(self, indices: Tensor, values: Tensor) -> None:
        self._indices.append(indices)
        self._values.append(values)
        self._held += indices.numel()
        if self._held > 2 * self.budget:
            self._compress()

    def result(self) -> SparseVector:
        """Give the largest entries seen so far."""
        self._compress()
        if not self._indices:
            return SparseVector.zeros(self.size)
        return SparseVector(self._indices[0], self._values[0], self.size)

    def _compress(self) -> None:
        if not self._indices:
            return
        indices, values = torch.cat(self._indices), torch.cat(self._values)
        order = torch.argsort(indices)
        top = keep_largest(SparseVector(indices[order], values[order], self.size), self.budget)
        self._indices, self._values, self._held = [top.indices], [top.values], top.nonzeros
        if top.nonzeros == self.budget:
            self._floor = float(_compared(top.values.abs()).min())


def check_budget(budget: object, size: int | None = None) -> int:
    """Refuse a budget that is not a whole number of 1 or more; cut one that exceeds the network's size."""
    whole = isinstance(budget, int) or (hasattr(budget, "__index__") and not hasattr(budget, "__len__"))
    if not whole or isinstance(budget, bool) or int(budget) < 1:  # type: ignore[call-overload]
        all_of_it = "" if size is None else f"; all weights of this network are {size:,}"
        raise BudgetError(
            f"budget={budget!r}, but a network needs at least one weight. Use a whole number of 1 or more"
            f"{all_of_it}."
        )
    whole_number = int(budget)  # type: ignore[call-overload]
    return whole_number if size is None else min(whole_number, size)


def constant(budget: int) -> Schedule:
    """Allow the same budget at every step."""
    return lambda step: budget
