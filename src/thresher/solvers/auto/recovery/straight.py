"""Straight neurons: the linear parts of several outputs, written with fewer weights where they share terms.

A neuron that is on for all rows, such as a sum of pixels, bends nothing: outputs that read it have multiples
of its weights in their linear parts, ``q_j = v_j w``. Then columns of the matrix of linear parts, one for
each input, are multiples of one vector v, which gives the neuron away. An input that other neurons or direct
connections read as well has a column that is a sum, of which a known v explains some entries.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Columns whose cosine differs from 1 by less than this are multiples of one another.
PARALLEL = 1e-7
# Entries of a column that a multiple of a known vector brings below this share of themselves are explained.
EXPLAINED = 1e-4


def straight_neurons(linear: Tensor, tolerance: float) -> tuple[Tensor, Tensor, Tensor]:
    """Factor linear parts into neurons that several outputs read and direct connections.

    Parameters
    ----------
    linear : float64 tensor of shape (outputs, inputs)
    tolerance : float
        What is left of an entry up to this is taken for zero.

    Returns
    -------
    weights : tensor of shape (neurons, inputs)
    gains : tensor of shape (outputs, neurons)
    rest : tensor of shape (outputs, inputs)
        ``linear - gains @ weights``, and zero where that is zero but for the tolerance.
    """
    outputs, inputs = linear.shape
    rest, found = _without(linear, tolerance), linear.new_zeros(0, outputs)
    weights = linear.new_zeros(0, inputs)
    while True:
        fresh = _shared_directions(rest)
        if len(fresh) == 0:
            break
        found, weights = (
            torch.cat([found, fresh]),
            torch.cat([weights, weights.new_zeros(len(fresh), inputs)]),
        )
        for column in ((rest != 0).sum(0) > 1).nonzero().flatten().tolist():
            _explain(rest[:, column], found, weights[:, column], tolerance)
        used = (weights != 0).sum(1)
        if bool((used[-len(fresh) :] == 0).all()):
            break
    pays = _pays((weights != 0).sum(1), (found != 0).sum(1))
    rest = rest + found[~pays].T @ weights[~pays]
    return weights[pays], found[pays].T.contiguous(), _without(rest, tolerance)


def _without(linear: Tensor, tolerance: float) -> Tensor:
    return torch.where(linear.abs() > tolerance, linear, 0.0)


def _pays(reads: Tensor, read_by: Tensor) -> Tensor:
    """Say whether a neuron takes fewer weights than direct connections."""
    return reads * read_by > reads + read_by


def _shared_directions(rest: Tensor) -> Tensor:  # (directions, outputs)
    """Find vectors of which several columns are multiples, where a neuron then pays."""
    counts = (rest != 0).sum(0)
    columns = (counts > 1).nonzero().flatten()
    if columns.numel() < 2:
        return rest.new_zeros(0, len(rest))
    unit = rest[:, columns] / rest[:, columns].norm(dim=0)
    alike = (unit.T @ unit).abs() > 1 - PARALLEL
    alike &= ((rest[:, columns] != 0).T[:, None] == (rest[:, columns] != 0).T[None]).all(2)
    leader = alike.to(torch.int8).argmax(1)
    sizes = torch.bincount(leader, minlength=columns.numel())
    chosen = _pays(sizes, counts[columns]).nonzero().flatten()
    # The largest column of each group is the least spoiled by rounding.
    size = rest[:, columns].norm(dim=0)
    best = [int(torch.where(leader == one, size, -1.0).argmax()) for one in chosen.tolist()]
    return unit[:, best].T.contiguous()


def _explain(column: Tensor, found: Tensor, weights: Tensor, tolerance: float) -> None:
    """Take multiples of known vectors from a column as long as that zeroes more than one entry, in place."""
    while True:
        ratios = torch.where(
            found != 0, column / torch.where(found != 0, found, 1.0), 0.0
        )  # (found, outputs)
        # Every entry proposes the multiple that zeroes it; the one that zeroes the most wins.
        left = (column - ratios[:, :, None] * found[:, None]).abs()  # (found, proposals, outputs)
        zeroed = (left <= (EXPLAINED * column.abs()).clamp(min=tolerance)) & (column != 0)
        spoiled = (left > tolerance) & (column == 0)
        gain = (zeroed.sum(2) - spoiled.sum(2)) * (ratios != 0)
        best = int(gain.argmax())
        which, proposal = divmod(best, gain.shape[1])
        if int(gain[which, proposal]) < 2:
            return
        multiple = ratios[which, zeroed[which, proposal]].median()
        column -= multiple * found[which]
        column[zeroed[which, proposal]] = 0
        column[column.abs() <= tolerance] = 0
        weights[which] += multiple
