"""Lines that outputs share, and least squares of every output on them.

A neuron of one hidden layer bends all outputs that read it along one line ``w.x + b = 0``. In the
absolute-value form (see `absolute.py`) output j is then linear in what all have in common,
``f_j(x) = c_j + q_j.x + p_j.|x| + sum_i v_ij |w_i.x + b_i|``, so lines that are known from some outputs are
tried on the others by least squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.solvers.auto.equations import inverse_of, removal, solve
from thresher.solvers.auto.recovery.absolute import AbsoluteForm
from thresher.solvers.auto.recovery.tuning import RecoverTuning


@dataclass(frozen=True, eq=False)
class Stack:
    """All outputs in the absolute-value form, over lines that they share.

    Attributes
    ----------
    weights : float64 tensor of shape (lines, inputs), or (lines, inputs + 1) with the biases last
        Lines of length 1, the bias not counted.
    gains : float64 tensor of shape (outputs, lines)
    linear, folds : float64 tensors of shape (outputs, inputs)
    constants : float64 tensor of shape (outputs, 1), or (outputs, 0) where there are no biases
    values : float64 tensor of shape (outputs,)
        Mean losses.
    """

    weights: Tensor
    gains: Tensor
    linear: Tensor
    folds: Tensor
    constants: Tensor
    values: Tensor

    def form(self, output: int) -> AbsoluteForm:
        """Give one output, with the lines that it reads as its neurons."""
        gains = self.gains[output]
        used = gains != 0
        weights = self.weights[used] * gains[used].abs()[:, None]
        parts = self.linear[output], self.folds[output], self.constants[output]
        return AbsoluteForm(weights, gains[used].sign(), *parts)


class Lines:
    """Lines found so far, and the rows on which outputs are compared with them.

    Parameters
    ----------
    objective : Relu
        A squared error of any outputs and one hidden layer, in float64.
    tuning : RecoverTuning
    """

    def __init__(self, objective: Relu, tuning: RecoverTuning) -> None:
        self.objective, self.tuning = objective, tuning
        layout, data = objective.layout, objective.data
        self.inputs, self.bias, self.outputs = layout.widths[0], int(layout.bias), layout.widths[-1]
        self.weights = torch.zeros(0, self.inputs + self.bias, dtype=torch.float64)
        # The side of each line, and of each input, on which most rows are.
        self.sides = torch.zeros(0, dtype=torch.float64)
        above, below = self._rows_beside(torch.eye(self.inputs, self.inputs + self.bias, dtype=torch.float64))
        self.halves = torch.where(above >= below, 1.0, -1.0).double()
        # How strongly the output bends along each line from which it was found, in its own units.
        self.strength = torch.zeros(0, dtype=torch.float64)
        # An input that is never negative, as a count or a pixel, has no fold.
        self.foldable = (above > 0) & (below > 0)
        if objective.moved is not None:
            self.foldable &= ~objective.moved
        targets, share = data.every(data.targets).double(), data.every(data.share).double()
        means = share @ targets
        spread = (share @ (targets - means).square()).sqrt()
        # A constant output has its own size; one that is zero has none.
        self.spread = torch.where(spread > 0, spread, means.abs())
        self.peaks = targets.abs().max(0).values

    def explained(self, values: Tensor) -> Tensor:  # (outputs,), bool
        """Say which outputs are explained, where mean losses are these."""
        return 2 * values <= self.tuning.found * self.peaks.square()

    def with_nearly(self, forms: Iterable[AbsoluteForm]) -> Lines:
        """Give these lines and those of outputs that are nearly found, where they are not known better."""
        other = copy(self)
        for form in forms:
            other.add(form, self.tuning.twins, len(self.weights))
        return other

    def add(self, form: AbsoluteForm, same: float | None = None, sure: int = 0) -> None:
        """Add the lines of one output; of two versions of a line that of the stronger bend stays.

        Two are versions of one where their cosine is within `same` of 1; the first `sure` stay in any case.
        """
        same = self.tuning.same_line if same is None else same
        above, below = self._rows_beside(form.weights.double())
        sides, size = (
            torch.where(above >= below, 1.0, -1.0),
            form.weights[:, : self.inputs].double().norm(dim=1),
        )
        # Beyond all rows a line is a linear part.
        for number in ((above > 0) & (below > 0)).nonzero().flatten().tolist():
            strength, side = size[number], sides[number]
            line = form.weights[number].double() / strength
            cosine = self._unit(self.weights) @ self._unit(line[None])[0]
            near = (cosine.abs() > 1 - same).nonzero().flatten()
            if near.numel() == 0:
                self.weights = torch.cat([self.weights, line[None]])
                self.strength = torch.cat([self.strength, strength[None]])
                self.sides = torch.cat([self.sides, side[None].double()])
            elif near[0] >= sure and strength > self.strength[near[0]]:
                self._replace(int(near[0]), line, strength, side)

    def _replace(self, number: int, line: Tensor, strength: Tensor, side: Tensor) -> None:
        # Others may hold the same tensors.
        self.weights, self.strength = self.weights.clone(), self.strength.clone()
        self.sides = self.sides.clone()
        self.weights[number], self.strength[number], self.sides[number] = line, strength, side

    def _rows_beside(self, weights: Tensor) -> tuple[Tensor, Tensor]:  # both (lines,)
        """Count the rows on either side of lines."""

        def each(batch: Batch) -> tuple[Tensor, ...]:
            sums = self._sums(batch.X, weights)
            return (sums > 0).double().sum(0), (sums < 0).double().sum(0)

        above, below = self.objective.data.total(each, len(weights) + self.inputs)
        return above, below

    def _sums(self, X: Tensor, weights: Tensor) -> Tensor:  # (rows, lines)
        return X @ weights[:, : self.inputs].T + weights[:, self.inputs :].sum(1)

    @staticmethod
    def _unit(weights: Tensor) -> Tensor:
        return weights / weights.norm(dim=1, keepdim=True).clamp(min=1e-300)

    def fitted(self) -> Stack:
        """Fit every output to all lines by least squares, and drop what gains no more than an accident does.

        Of an output that is not explained, lines go that could be there by chance.
        """
        G, R, amount = self._products()
        everything = torch.ones(self.outputs, len(G), dtype=torch.bool)
        coefficients, values = self._solved(G, R, everything)
        explained = self.explained(values)
        chance = (self.tuning.certain + math.sqrt(2 * math.log(max(2, len(G))))) ** 2
        used = everything.clone()
        some = list(range(self.outputs)) if len(self.weights) else explained.nonzero().flatten().tolist()
        for output in some:
            each = (self.tuning.no_accident if explained[output] else chance) * 2 * float(values[output])
            # What folds are worth shows once an output is explained.
            first = self.bias + self.inputs if explained[output] else len(G) - len(self.weights)
            free = torch.arange(len(G)) >= first
            limits = math.inf, each / amount
            gone = removal(G, coefficients[output], free, 0, self.tuning.line_ridge, *limits)
            used[output, gone] = False
        if not bool(used.all()):
            coefficients, values = self._solved(G, R, used)
        return self._stack(coefficients, values)

    def columns(self, X: Tensor) -> Tensor:  # (rows, columns)
        """Give what outputs are linear in: a constant, inputs, and ReLUs that are on for the fewer rows.

        With the inputs, ``relu(-z)`` says what ``|z|`` says, but where few rows are beyond a line it is not
        nearly a linear part.
        """
        ones = torch.ones(len(X), self.bias, dtype=X.dtype)
        folds = (X * -self.halves)[:, self.foldable].relu()
        lines = (self._sums(X, self.weights) * -self.sides).relu()
        return torch.cat([ones, X, folds, lines], 1)

    @property
    def _width(self) -> int:
        return self.bias + self.inputs + int(self.foldable.sum()) + len(self.weights)

    def _products(self) -> tuple[Tensor, Tensor, float]:
        """Give the products of columns of size 1 with one another and with the outputs, and the rows."""

        def each(batch: Batch) -> tuple[Tensor, ...]:
            A, share = self.columns(batch.X), batch.share[:, None]
            return A.T @ (A * share), A.T @ (batch.y * share)

        G, R = self.objective.data.total(each, self._width)
        size = G.diagonal().sqrt()
        self._size = torch.where(size > 0, size, 1.0)
        return G / self._size[:, None] / self._size, R / self._size[:, None], self.objective.data.amount

    def _solved(self, G: Tensor, R: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
        """Solve for every output on its own columns; a second solution makes up for the first's rounding."""
        coefficients = torch.zeros(self.outputs, len(G), dtype=torch.float64)
        # R is what is left of the outputs, as the columns see it.
        for _ in range(2):
            whole = used.all(1)
            if bool(whole.any()):
                coefficients[whole] += (inverse_of(G, self.tuning.line_ridge) @ R[:, whole]).T
            for output in (~whole).nonzero().flatten().tolist():
                kept = used[output].nonzero().flatten()
                part = G[kept[:, None], kept]
                coefficients[output, kept] += solve(part, R[kept, output], self.tuning.line_ridge)
            R, values = self._left(coefficients)
        return coefficients, values

    def _left(self, coefficients: Tensor) -> tuple[Tensor, Tensor]:
        """Give what columns see of the residuals, and mean losses."""

        def each(batch: Batch) -> tuple[Tensor, ...]:
            A, share = self.columns(batch.X) / self._size, batch.share[:, None]
            residual = batch.y - A @ coefficients.T
            return A.T @ (residual * share), 0.5 * (residual.square() * share).sum(0)

        left, values = self.objective.data.total(each, self._width)
        return left, values

    def _stack(self, coefficients: Tensor, values: Tensor) -> Stack:
        """Write ``u relu(-z)`` as ``(u |z| - u z) / 2``."""
        raw, first = coefficients / self._size, self.bias + self.inputs
        folds = torch.zeros(self.outputs, self.inputs, dtype=torch.float64)
        last = first + int(self.foldable.sum())
        folds[:, self.foldable] = raw[:, first:last] / 2
        gains = raw[:, last:] / 2
        pulled = (gains * self.sides) @ self.weights
        linear = raw[:, self.bias : first] - folds * self.halves - pulled[:, : self.inputs]
        constants = raw[:, : self.bias] - pulled[:, self.inputs :]
        return Stack(self.weights.clone(), gains, linear, folds, constants, values)


def on_inputs(form: AbsoluteForm, features: Tensor | None) -> AbsoluteForm:
    """Give a form on some of its inputs."""
    if features is None:
        return form
    columns = torch.cat([features, torch.arange(form.inputs, form.weights.shape[1])])
    parts = form.linear[features], form.folds[features]
    return replace(form, weights=form.weights[:, columns], linear=parts[0], folds=parts[1])


def on_all_inputs(form: AbsoluteForm, features: Tensor | None, inputs: int) -> AbsoluteForm:
    """Give a form of some inputs on all of them."""
    if features is None:
        return form
    bias = form.weights.shape[1] - form.inputs
    columns = torch.cat([features, torch.arange(inputs, inputs + bias)])
    weights = form.weights.new_zeros(form.neurons, inputs + bias)
    weights[:, columns] = form.weights
    linear, folds = (form.linear.new_zeros(inputs) for _ in range(2))
    linear[features], folds[features] = form.linear, form.folds
    return replace(form, weights=weights, linear=linear, folds=folds)
