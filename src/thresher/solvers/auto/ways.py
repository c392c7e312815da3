"""The ways of small problems: linear models, growing with exchanges, wide networks that are pruned."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from thresher.linear.budget import keep_largest
from thresher.linear.vector import SparseVector
from thresher.objective.loss import Loss
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.grow import grow
from thresher.solvers.auto.judge import Candidate, Judge
from thresher.solvers.auto.linear import as_fit, l1_model, l1_path
from thresher.solvers.auto.newton import Fit, measured, refit, shrink
from thresher.solvers.auto.subset import compactly
from thresher.solvers.auto.tuning import JudgeTuning, LadderTuning, Tuning
from thresher.solvers.auto.wide import alternating, best_constant, random_start


def constant(
    judge: Judge, budget: int, alphas: tuple[float, ...], seed: int, tuning: Tuning
) -> Iterator[Candidate]:
    """Give the best constant within the budget, which needs no input."""
    part = under(judge.part, alphas[-1])
    signs = alternating(part.layout)
    places = part.layout.output_biases
    w = keep_largest(SparseVector(places, best_constant(part)[: places.numel()], part.size), budget)
    yield judge.candidate("constant", measured(part, Point(w, signs)), alphas[-1], ("constant",))


def linear(
    judge: Judge, budget: int, alphas: tuple[float, ...], seed: int, tuning: Tuning
) -> Iterator[Candidate]:
    """Give linear models along a path of L1 penalties, as they are and refitted without that penalty."""
    part, alpha = under(judge.part, alphas[0]), alphas[0]
    number = tuning.linear.ridge_squared if part.loss.link == "identity" else tuning.linear.ridge
    ridge = alphas[min(number, len(alphas) - 1)]
    ridged = under(part, ridge)
    room = budget - part.layout.output_biases.numel()
    before: Tensor | None = None
    for model in l1_path(part, room, tuning.linear):
        fit = as_fit(part, model)
        if fit.nonzeros > budget:
            return
        finish, refitted = _linear_finishes(model.step, room, tuning)
        yield replace(judge.candidate("linear", fit, alpha, ("l1", model.step), finish), shrunk=True)
        if before is None or not torch.equal(before, fit.point.w.indices):
            again = refit(ridged, measured(ridged, fit.point), tuning.grow.steps, tuning.newton)
            relaxed = judge.candidate("linear", again, ridge, ())
            before = fit.point.w.indices
        yield replace(relaxed, place=("refitted", model.step), finish=refitted)


def _linear_finishes(
    step: int, room: int, tuning: Tuning
) -> tuple[Callable[[Relu], Fit], Callable[[Relu], Fit]]:
    """Say how linear models are fitted on all rows: inputs are chosen anew, by as strong a penalty."""

    def finish(objective: Relu) -> Fit:
        return as_fit(objective, l1_model(objective, step, room, tuning.linear))

    def refitted(objective: Relu) -> Fit:
        return refit(objective, finish(objective), tuning.judge.steps, tuning.newton, rough=False)

    return finish, refitted


def grown(
    judge: Judge, budget: int, alphas: tuple[float, ...], seed: int, tuning: Tuning
) -> Iterator[Candidate]:
    """Grow from nothing in rounds, exchange weights at the end, and go down again in size."""
    growing = tuning.grow
    for alpha in alphas[growing.first_alpha :][: growing.alphas] or alphas[:1]:
        part = under(judge.part, alpha)
        fit = measured(part, Point(SparseVector.zeros(part.size, torch.float64), alternating(part.layout)))
        for number, larger in enumerate(growth(part, fit, budget, tuning)):
            fit = larger
            yield judge.candidate("growing", fit, alpha, (alpha, "round", number))
        last = yield from _exchanged(judge, part, fit, "growing", budget, alpha, tuning)
        yield from _down(judge, last, budget, tuning)


def sprouted(
    judge: Judge, budget: int, alphas: tuple[float, ...], seed: int, tuning: Tuning
) -> Iterator[Candidate]:
    """Grow a small network from nothing in rounds, to see what it can do in little time."""
    for alpha in alphas[: tuning.grow.sprouted_alphas]:
        part, most = under(judge.part, alpha), min(budget, tuning.grow.sprouted)
        fit = measured(part, Point(SparseVector.zeros(part.size, torch.float64), alternating(part.layout)))
        for number, larger in enumerate(growth(part, fit, most, tuning)):
            yield judge.candidate("growing", larger, alpha, (alpha, "round", number))


def growth(part: Relu, fit: Fit, budget: int, tuning: Tuning) -> Iterator[Fit]:
    """Grow a network to the budget in rounds, refitting after each."""
    growing, newton = tuning.grow, tuning.newton
    ratio = budget ** (1 / max(1, growing.rounds - 1))
    aim = float(max(1, fit.nonzeros))
    for _ in range(2 * growing.rounds):
        aim = min(float(budget), max(fit.nonzeros + 1.0, aim * ratio))
        if fit.nonzeros >= budget:
            return
        larger = grow(part, fit, int(aim) - fit.nonzeros, growing)
        if larger.nonzeros <= fit.nonzeros:
            return
        fit = refit(part, larger, growing.steps, newton)
        fit = shrink(part, fit, budget, newton) if fit.nonzeros > budget else fit
        yield fit


def pruned(
    judge: Judge, budget: int, alphas: tuple[float, ...], seed: int, tuning: Tuning
) -> Iterator[Candidate]:
    """Fit a wide random network, prune it to near the budget, and raise the penalty from there."""
    newton, wide = tuning.newton, tuning.wide
    count = max(wide.least, int(wide.inflation * budget))
    part = under(judge.part, alphas[0])
    if judge.start is None:
        fit = refit(part, measured(part, random_start(part, count, seed, wide)), wide.steps, newton)
    else:
        fit = refit(part, measured(part, judge.start), wide.raised, newton)
    near = max(budget, int(wide.near * budget))
    fit = shrink(part, fit, near, newton)
    found = []
    for number, alpha in enumerate(alphas):
        part = under(judge.part, alpha)
        if number:
            fit = refit(part, Fit(fit.point, part.value(fit.point)), wide.raised, newton)
        small = shrink(part, fit, budget, newton)
        found.append(judge.candidate("pruning", small, alpha, (alpha,)))
        yield found[-1]
    best = min(found, key=lambda one: one.score)
    if part.layout.layers == 2:
        part = under(judge.part, best.alpha)
        best = yield from _exchanged(judge, part, best.fit, "pruning", budget, best.alpha, tuning)
    yield from _down(judge, best, budget, tuning)


def continued(known: Point, exchanges: int | None = None) -> Callable[..., Iterator[Candidate]]:
    """Go on from a network that is known: refit it, and exchange weights, as often as growing or less."""

    def way(
        judge: Judge, budget: int, alphas: tuple[float, ...], seed: int, tuning: Tuning
    ) -> Iterator[Candidate]:
        for alpha in alphas:
            part = under(judge.part, alpha)
            fit = refit(part, measured(part, known.to(torch.float64)), tuning.newton.last, tuning.newton)
            fit = shrink(part, fit, budget, tuning.newton)
            yield judge.candidate("continued", fit, alpha, (alpha, "start"))
            if part.layout.layers == 2 and exchanges != 0:
                yield from _exchanged(judge, part, fit, "continued", budget, alpha, tuning, exchanges)

    return way


def exchange(part: Relu, fit: Fit, share: float, budget: int, tuning: Tuning) -> Fit:
    """Grow beyond the budget by a share of it, refit, and remove what costs least."""
    larger = grow(part, fit, max(1, int(share * budget)), tuning.grow)

    def narrowed(part: Relu, fit: Fit) -> Fit:
        return shrink(part, refit(part, fit, tuning.grow.wider, tuning.newton), budget, tuning.newton)

    return compactly(part, larger, narrowed)


def _exchanged(
    judge: Judge,
    part: Relu,
    fit: Fit,
    way: str,
    budget: int,
    alpha: float,
    tuning: Tuning,
    times: int | None = None,
) -> Generator[Candidate, None, Candidate]:
    """Grow beyond the budget, refit, remove what costs least: again and again, keeping the best."""
    growing = tuning.grow
    accident = growing.exchanges_rows * budget / part.data.amount
    for number, share in enumerate(growing.exchanges[:times]):
        trial = exchange(part, fit, share, budget, tuning)
        gained = 1 - trial.value / max(fit.value, 1e-300)
        fit = trial if gained > 0 else fit
        last = judge.candidate(way, fit, alpha, ("exchange", number))
        yield last
        if number + 1 >= growing.exchanges_least and gained < accident:
            break
    return last


def _down(judge: Judge, start: Candidate, budget: int, tuning: Tuning) -> Iterator[Candidate]:
    """Go down in size from a candidate, another at each size."""
    fit, part = start.fit, under(judge.part, start.alpha)
    for number, size in enumerate(ladder(budget, judge.tuning.ladder)):
        fit = shrink(part, fit, size, tuning.newton)
        yield judge.candidate(start.way, fit, start.alpha, ("size", number))


def ladder(budget: int, tuning: LadderTuning) -> list[int]:
    """Give sizes below the budget, each a share of the one before."""
    sizes: list[int] = []
    size = int(budget * tuning.share)
    while size >= tuning.smallest and len(sizes) < tuning.sizes:
        sizes.append(size)
        size = int(size * tuning.share)
    return sizes


def penalties(loss: Loss, alpha: float | None, tuning: JudgeTuning) -> tuple[float, ...]:
    """Give the penalties to try, beside a sum over rows: the user's, or several."""
    if alpha is not None:
        return (alpha,)
    return tuning.squared if loss.link == "identity" else tuning.classes


def under(objective: Relu, alpha: float) -> Relu:
    """Give the objective under a penalty beside a sum over rows."""
    return replace(objective, alpha=alpha / objective.data.amount)
