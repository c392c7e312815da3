"""Exact recovery of several outputs: one after the other, each told the lines that others have found.

An output by itself is a network of one output with fewer weights, where recovery nearly always succeeds. What
it finds are the lines along which it bends, and other outputs bend along many of the same. So least squares
on all lines that are known come first, which explain an output that reads no others; the easiest of those
that are left is searched next, from what they say of it.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from thresher.objective.data import Batch, Data
from thresher.objective.relu import Relu
from thresher.solvers.auto.equations import matrix_bytes
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.recovery.absolute import AbsoluteForm
from thresher.solvers.auto.recovery.joint import Joint
from thresher.solvers.auto.recovery.lines import Lines, Stack
from thresher.solvers.auto.recovery.output_search import OutputSearch, Told
from thresher.solvers.auto.recovery.problem import Problem, Progress, problem_size
from thresher.solvers.auto.recovery.recover import searched


def outputs_size(problem: Problem) -> int:
    """Count the numbers that recovery fits freely to one output, at most."""
    return problem_size(_with_room(problem))


def _with_room(problem: Problem) -> Problem:
    """Let students hold what several outputs need."""
    tuning = problem.tuning
    return replace(problem, tuning=replace(tuning, weights=max(tuning.weights, tuning.many_weights)))


def outputs_may_be_exact(problem: Problem) -> bool:
    """Say whether recovery output by output takes this problem, and could tell a network from an accident."""
    objective, tuning = problem.objective, problem.tuning
    layout, data = objective.layout, objective.data
    fits = layout.layers == 2 and not layout.fused and objective.loss.name == "squared"
    if not fits or problem.budget > tuning.most or data.sparse:
        return False
    # Least squares on inputs and their folds hold matrices as large as those of Newton's equations.
    if matrix_bytes(2 * layout.widths[0], tuning.newton) > max(objective.memory_limit, tuning.newton.small):
        return False
    if data.amount < tuning.rows_each * outputs_size(problem):
        return False
    # Targets of two values are labels, of which a sparse network is not the source.
    return all(len(column.unique()) != 2 for column in data.every(data.targets).T)


def recover_outputs(problem: Problem, rival: float = math.inf) -> Generator[Progress, None, bool]:
    """Search for the network of several outputs that explains the targets; see `recover.recover`."""
    search = Outputs(_with_room(problem), rival)
    while (output := search.next()) is not None:
        yield from search.searched(output)
    return (yield from search.answer())


class Outputs:
    """A recovery of several outputs under way: the lines known, what they explain, and what was tried."""

    def __init__(self, problem: Problem, rival: float) -> None:
        self.problem, self.rival, self.tuning = problem, rival, problem.tuning
        tuning, exact = problem.tuning, problem.objective.to(torch.float64)
        order = np.random.default_rng([problem.seed, 4]).permutation(exact.data.rows)
        rows = max(tuning.sample, int(tuning.sample_each * problem.budget), 8 * exact.layout.widths[0])
        largest = largest_product(exact.data.take(np.sort(order[: tuning.sample])), exact.layout.widths[0])
        self.coherence = max(1.0, math.sqrt(largest / tuning.coherent))
        # Shorter steps stand larger values.
        steady = steady_inputs(problem.objective, tuning.highest * self.coherence)
        self.steady = steady.nonzero().flatten()
        if not bool(steady.all()):
            # Inputs that are rarely on are fitted to few rows of a sample, and spoil all others.
            rows = exact.data.rows
        few = replace(exact, data=exact.data.take(np.sort(order[:rows])))
        self.lines = Lines(few, tuning)
        self.joint = Joint(exact, few, problem.budget, float(self.lines.peaks.norm()), tuning)
        self.outputs, self.passes = exact.layout.widths[-1], 0.0
        self.tried = [0] * self.outputs
        self.failed, self.successes = 0, 0
        # What searches came closest with, for outputs that are not found.
        self.nearest: dict[int, tuple[AbsoluteForm, float]] = {}
        self.stack = self.lines.fitted()

    @property
    def _missing(self) -> list[int]:
        """Outputs that the lines do not explain."""
        return (~self.lines.explained(self.stack.values)).nonzero().flatten().tolist()

    def next(self) -> int | None:
        """Choose the output to search: the one of which the lines leave the least."""
        if self.successes == 0 and self.failed >= self.tuning.in_vain:
            return None
        left = self.stack.values / self.lines.spread.square().clamp(min=1e-300)
        open_ones = [one for one in self._missing if self.tried[one] < self.tuning.searches]
        return min(open_ones, key=lambda output: (self.tried[output], float(left[output])), default=None)

    @property
    def _heard(self) -> Lines:
        """The lines that are known, and those of outputs that are nearly found."""
        nearest = sorted((self.nearest[output] for output in self._near), key=lambda one: one[1])
        return self.lines.with_nearly(form for form, _ in nearest)

    @property
    def _near(self) -> list[int]:
        """Outputs of which a search has left next to nothing."""
        most = self.tuning.almost * self.lines.spread.square()
        return [one for one in self._missing if 2 * self._closest(one) <= float(most[one])]

    def _closest(self, output: int) -> float:
        """Give the least mean loss that a search has left of an output."""
        return self.nearest[output][1] if output in self.nearest else math.inf

    def searched(self, output: int) -> Generator[Progress, None, None]:
        """Search one output, and try the lines that it finds on all of them."""
        search = self._search(output)
        self.tried[output] += 1
        most = self.tuning.alone * search.unit
        before = self.passes
        for progress in searched(search):
            self.passes = before + progress.passes / self.outputs
            yield replace(progress, passes=self.passes, found=False)
            if progress.passes > most:
                break
        closest = search.closest()
        if search.found is not None:
            self.lines.add(search.found)
            self.stack = self.lines.fitted()
            self.successes += 1
            return
        self.failed += 1
        if closest is not None and closest[1] < self._closest(output):
            self.nearest[output] = closest
            self.successes += int(output in self._near)
        if 2 * min(search.values, default=math.inf) > search.nothing * search.spread**2:
            # Nothing like a network was seen.
            self.failed = max(self.failed, self.tuning.in_vain)

    def _search(self, output: int) -> OutputSearch:
        problem, objective = self.problem, self.problem.objective
        layout = replace(objective.layout, widths=(*objective.layout.widths[:-1], 1), fused=True)
        one = slice(output, output + 1)
        middle = None if objective.middle is None else objective.middle[one]
        alone, exact = (
            replace(
                part, data=part.data.with_targets(part.data.targets[:, one]), layout=layout, middle=middle
            )
            for part in (objective, self.lines.objective)
        )
        stack = self._heard.fitted() if self._near else self.stack
        seed = problem.seed + 1000 * self.tried[output]
        guess = min(problem.budget, self._needed())
        alone = replace(alone, data=self._steadied(alone.data, stack.linear[output]))
        alone_problem = replace(problem, objective=alone, budget=guess, seed=seed)
        told = Told(
            exact=exact,
            known=stack.form(output),
            # Every other search is measured by what least squares leave: each finds what the other misses.
            left=float(stack.values[output]) if self._measured_by_rest(output) else math.inf,
            steady=self.steady,
            coherence=self.coherence,
            folding=self.lines.foldable,
            most=problem.budget,
            finish=partial(self.cut_short, output),
        )
        return OutputSearch(alone_problem, self.rival, told)

    def _measured_by_rest(self, output: int) -> bool:
        """Say whether a search is measured by what least squares leave of its output.

        Where inputs alone explain nearly all, as in logits of images, the first one is: steps that suit the
        whole output would undo the linear part.
        """
        alone = len(self.lines.weights) == 0
        return bool(self.tried[output] % 2) != alone

    def _steadied(self, data: Data, linear: Tensor) -> Data:
        """Take what inputs that students do not see are known to add off the targets."""
        unseen = torch.ones(self.lines.inputs, dtype=torch.bool)
        unseen[self.steady] = False
        if not bool(unseen.any()):
            return data
        known = [(batch.X[:, unseen] @ linear[unseen].to(batch.X.dtype)) for batch in data.chunks(1)]
        return data.with_targets(data.targets - torch.cat(known)[:, None])

    def _needed(self) -> int:
        """Guess the weights that an output reads: if half of the budget is in each layer, evenly spread."""
        half, hidden = self.problem.budget / 2, self.problem.hidden
        read = min(half, half**2 / (self.outputs * hidden))
        return self.tuning.needed_least + int(self.tuning.needed * read)

    def answer(self) -> Generator[Progress, None, bool]:
        """Make one network of all outputs, if there is something to make it of."""
        if any(output not in self.nearest for output in self._missing):
            return False
        fit = self.joint.network(self._with(self.nearest))
        found = fit.nonzeros <= self.joint.allowed and self.joint.explains(fit)
        if not found:
            fit = self.joint.within(fit)
        yield Progress("candidate", self.passes, fit.value, fit.nonzeros, fit=fit, found=found)
        return found

    def _with(self, nearest: dict[int, tuple[AbsoluteForm, float]]) -> Stack:
        """Take outputs that are not explained as searches came closest, over shared lines if those serve."""
        stack = self._heard.fitted() if self._near else self.stack
        for output in self._missing:
            form, value = nearest[output]
            if stack.values[output] > self.tuning.raised_above * value:
                stack = _replaced(stack, output, form, value, self.lines.inputs)
        return stack

    def cut_short(self, output: int, form: AbsoluteForm) -> Fit:
        """Make a network of what there is while an output is searched: others are constants."""
        nothing = replace(form, weights=form.weights[:0], signs=form.signs[:0])
        nothing = replace(nothing, linear=0 * form.linear, folds=0 * form.folds, constant=0 * form.constant)
        nearest = {other: (nothing, 0.5 * float(self.lines.spread[other] ** 2)) for other in self._missing}
        nearest |= self.nearest | {output: (form, 0.0)}
        return self.joint.within(self.joint.network(self._with(nearest)))


def _replaced(stack: Stack, output: int, form: AbsoluteForm, value: float, inputs: int) -> Stack:
    """Give a stack where one output has another form, with lines of its own."""
    weights = form.weights.double()
    size = weights[:, :inputs].norm(dim=1)
    gains = torch.cat([stack.gains, stack.gains.new_zeros(len(stack.gains), form.neurons)], 1)
    gains[output] = 0
    gains[output, stack.gains.shape[1] :] = size * form.signs.double()
    parts = {"linear": form.linear, "folds": form.folds, "constants": form.constant}
    changed = {}
    for name, part in parts.items():
        changed[name] = getattr(stack, name).clone()
        changed[name][output] = part.double()
    values = stack.values.clone()
    values[output] = value
    return replace(
        stack,
        weights=torch.cat([stack.weights, weights / size[:, None]]),
        gains=gains,
        values=values,
        **changed,
    )


def largest_product(data: Data, inputs: int) -> float:
    """Give the largest eigenvalue of the mean products of inputs, which have unit size.

    Its root says by how much a step on all weights moves answers more than one on independent inputs does:
    pixels rise and fall together, so that steps which are as large on each of them add up.
    """

    def products(batch: Batch) -> tuple[Tensor, ...]:
        return (batch.X.T @ (batch.X * batch.share[:, None]),)

    (found,) = data.total(products, inputs)
    return float(torch.linalg.eigvalsh(found)[-1])


def steady_inputs(objective: Relu, highest: float) -> Tensor:  # (inputs,), bool
    """Say which inputs have no value that is more than so many times their root mean square.

    In a column that is zero on nearly all rows the others are huge once it has unit size, and a step that
    meets one of them undoes what a training has learned.
    """
    data = objective.data
    peaks, squares = (torch.zeros(objective.layout.widths[0], dtype=torch.float64) for _ in range(2))
    for batch in data.chunks(1):
        peaks = torch.maximum(peaks, batch.X.abs().max(0).values.double())
        squares += (batch.share @ batch.X.square()).double()
    peaks, (squares,) = data.ranks.highest(peaks), data.ranks.sum(squares)
    steady = (peaks > 0) & (peaks <= highest * squares.sqrt())
    return steady if bool(steady.any()) else torch.ones_like(steady)
