"""Small problems, where Newton's equations are cheap: which ways are tried, and how the winner is finished.

Where there are rows enough, a committee is trained and what it says is taught to a student within the budget.
Linear models and a network that is grown are compared with it on rows held out, and where it leaves little,
networks that explain the targets entirely are looked for. Few rows, deep networks and networks that are known
are searched on rows held out in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from itertools import zip_longest

import torch

from thresher.device import from_host
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.capacity import borne
from thresher.solvers.auto.clean import cleaned, some_rows
from thresher.solvers.auto.committee import Committee
from thresher.solvers.auto.falling import within
from thresher.solvers.auto.judge import (
    Candidate,
    Judge,
    Progress,
    chosen,
    folds_of,
    judges_of,
    mean_score,
)
from thresher.solvers.auto.newton import Fit, measured, refit
from thresher.solvers.auto.student import alpha_for, student, taught, trust
from thresher.solvers.auto.subset import compact, compactly
from thresher.solvers.auto.tuning import Tuning
from thresher.solvers.auto.ways import (
    constant,
    continued,
    grown,
    ladder,
    linear,
    penalties,
    pruned,
    sprouted,
    under,
)
from thresher.solvers.auto.wide import loss_of_constant

Way = Callable[[Judge, int, tuple[float, ...], int, Tuning], Iterator[Candidate]]


class Small:
    """The search on a small problem.

    Parameters
    ----------
    objective : Relu
    budget : int
    passes : float
        Passes over the data that it may take.
    seed : int
    alpha : float, optional
        The penalty beside a sum over rows; None leaves it open.
    tuning : Tuning
    back : callable, optional
        Gives a network the coordinates that the objective was made of: those of what is given to others.
    descends : bool
        Whether what is known is the network of a larger budget, which is cut down.

    Attributes
    ----------
    passes : float
        Passes taken.
    tried : list of Candidate
    committee : Committee, optional
    """

    def __init__(
        self,
        objective: Relu,
        budget: int,
        passes: float,
        seed: int,
        alpha: float | None,
        tuning: Tuning,
        back: Callable[[Point], Point] = lambda point: point,
        descends: bool = False,
    ) -> None:
        self.objective, self.budget, self.limit = objective.to(torch.float64), budget, passes
        self.seed, self.alpha, self.tuning, self.back = seed, alpha, tuning, back
        self.descends = descends
        self.alphas = penalties(objective.loss, alpha, tuning.judge)
        self.passes, self.tried = 0.0, list[Candidate]()
        self.committee: Committee | None = None
        self.known: Point | None = None
        # A search is long enough to make another network of another last digit.
        # Where inputs are centred every neuron pays for a bias, so that origins make no difference.
        self.rounded = replace(
            self.objective,
            data=self.objective.data.rounded(tuning.judge.digit),
            biased=self.objective.origins is not None and budget >= tuning.judge.centred,
        )
        self.fold = folds_of(self.rounded, budget, seed, tuning.judge)
        self.judges = judges_of(self.rounded, budget, seed, tuning.judge)

    def search(self, known: Point | None) -> Generator[Candidate | Progress, None, Candidate]:
        """Give candidates, and progress before there is one; return the winner, in its own coordinates."""
        self.known = known
        ways = self._ways(known)
        while True:
            try:
                found = next(ways)
            except StopIteration as end:
                return end.value
            yield replace(found, fit=self._given(found.fit)) if isinstance(found, Candidate) else found

    def _given(self, fit: Fit) -> Fit:
        return Fit(self.back(fit.point), fit.value)

    def _ways(self, known: Point | None) -> Generator[Candidate | Progress, None, Candidate]:
        layout, data = self.objective.layout, self.objective.data
        simple: list[Way] = [constant]
        if layout.direct and self.budget > int(layout.bias):
            simple.append(linear)
        ways: list[Way] = [grown, pruned] if layout.layers == 2 else [pruned]
        tuning = self.tuning
        enough = data.amount >= tuning.committee.fewest and data.columns <= tuning.committee.inputs
        every = judges_of(self.rounded, self.budget, self.seed, tuning.judge, tuning.judge.folds_linear)
        if known is not None and self.descends:
            # The larger budget was searched for: what is left is to say what less of it can do.
            yield from self._offered([continued(known, tuning.path.exchanges), constant], self.judges)
            return self._winner(self.tried)
        if known is not None or layout.layers != 2 or not enough or self.budget <= layout.widths[-1]:
            yield from self._offered([] if known is None else [continued(known)], self.judges)
            yield from self._offered(simple, every)
            yield from self._offered(ways, self.judges)
            return self._winner(self.tried)
        yield from self._trained()
        yield from self._offered(simple, every)
        best = self._winner(self.tried)
        line = chosen(self.tried, 0.0, tuning.linear.margin)
        asked = self._asked(every)
        bent = yield from self._grown()
        errors = tuning.judge.errors, tuning.judge.errors_network
        # The best of many networks on few rows is often the best by chance.
        if not self._better(asked, line, errors[0]) and not self._better(bent, line, errors[1]):
            return best
        held, rival = mean_score(asked, asked[0]), self._rival(bent, line)
        if self.objective.loss.quadratic and held <= tuning.judge.explainable:
            before = len(self.tried)
            yield from self._offered(ways, self.judges[:1])
            found = self.tried[before:]
            if min((one.score for one in found), default=math.inf) <= tuning.judge.exact:
                return self._winner(found)
        yield from self._taught(held, rival)
        return self.tried[-1]

    def _winner(self, found: list[Candidate]) -> Candidate:
        exact = [one for one in found if one.score <= self._level]
        if exact:
            return min(exact, key=lambda one: (one.nonzeros, one.score))
        errors, margin = self.tuning.judge.errors, self.tuning.linear.margin
        folds = {judge.fold for judge in self.judges}
        best = chosen(found, errors, margin)
        # What was scored on more folds than others is chosen there, then compared on the rows of all.
        more = {one.way for one in found if one.fold not in folds}
        rivals = [one for one in found if one.fold in folds and (one.key == best.key or one.way not in more)]
        if not rivals:
            return best
        rival = chosen(rivals, errors, margin)
        if not more or rival.key == best.key:
            return rival
        # The best of many networks on few rows is often the best by chance.
        pair = [one for one in rivals if one.key in (best.key, rival.key)]
        return chosen(pair, self.tuning.judge.errors_network, margin)

    @property
    def _level(self) -> float:
        """The score at which the targets are explained; other losses have no such level."""
        return self.tuning.judge.done if self.objective.loss.quadratic else -math.inf

    def _offered(self, ways: list[Way], judges: list[Judge]) -> Iterator[Candidate]:
        """Go some ways on the rows of each judge."""
        first = len({one.place[0] for one in self.tried})
        plans = [(way, self.budget) for way in ways]
        # Targets that can be explained may need less than the budget: what smaller ones find is a candidate.
        sizes = ladder(self.budget, self.tuning.judge.exact_ladder) if grown in ways or pruned in ways else []
        plans += [(way, size) for size in sizes for way in ways[-2:]]
        for number, (way, size) in enumerate(plans):
            least = min((one.score for one in self.tried), default=math.inf)
            explained = self.objective.loss.quadratic and least <= self.tuning.judge.exact
            spent = self.passes >= self.limit
            if self.tried and (least <= self._level or spent or (size < self.budget and not explained)):
                return
            # The folds go side by side, so that spent passes leave all of them equally far.
            folds = [
                way(judge, size, self.alphas, self.seed + fold, self.tuning)
                for fold, judge in enumerate(judges)
            ]
            for candidates in zip_longest(*folds):
                for judge, candidate in zip(judges, candidates, strict=True):
                    if candidate is not None:
                        # More folds than there are for all ways do not count as more passes.
                        once = min(1.0, len(self.judges) / len(judges))
                        self.passes += once * judge.share * self.tuning.judge.pass_share
                        for one in self._and_exact(judge, candidate):
                            self.tried.append(replace(one, place=(first + number, *one.place)))
                            yield self.tried[-1]
                if self.passes >= self.limit:
                    break

    def _and_exact(self, judge: Judge, candidate: Candidate) -> Iterator[Candidate]:
        """Give a candidate, and without any penalty where it nearly explains the targets."""
        yield candidate
        tuning, best = self.tuning.judge, min((one.score for one in self.tried), default=math.inf)
        explained = judge.part.loss.quadratic and candidate.score <= min(best, tuning.exact)
        if explained and self.alpha is None:
            part = under(judge.part, 0.0)
            fit = Fit(candidate.fit.point, part.value(candidate.fit.point))
            fit = refit(part, fit, tuning.exact_steps, self.tuning.newton, rough=False)
            yield judge.candidate(candidate.way, fit, 0.0, (*candidate.place, "exact"))

    def _trained(self) -> Iterator[Progress]:
        """Train the committee."""
        tuning, rows = self.tuning.committee, self.objective.data.rows
        blind = torch.full((rows,), -1) if self.fold is None else from_host(self.fold)
        committee = Committee.drawn(self.rounded, self.budget, blind, self.seed, tuning)
        for trained, passes in committee.trained(self.limit, self.seed, tuning):
            # The search that follows has passes of its own.
            self.passes, self.limit = self.passes + passes, self.limit + passes
            self.committee = trained
            yield Progress("committee")
        self.judges = [
            replace(judge, start=trained.member(number)) for number, judge in enumerate(self.judges)
        ]

    def _asked(self, judges: list[Judge]) -> list[Candidate]:
        """Score the committee on the rows of some judges, as if it had not seen them."""
        assert self.committee is not None
        losses, data, found = self.committee.losses(), self.objective.data, list[Candidate]()
        for judge in judges:
            rows = torch.ones(data.rows, dtype=torch.bool)
            if self.fold is not None:
                rows = from_host(self.fold) == judge.fold
            shares = data.share.double()[rows]
            fit = Fit(self.committee.member(judge.fold), math.nan)
            one = (losses[rows], shares / shares.sum(), judge.unseen.data.amount, ("mean",), judge.fold)
            found.append(Candidate("committee", fit, 0.0, *one))
        return found

    def _grown(self) -> Generator[Candidate, None, list[Candidate]]:
        """Grow a small network, to see whether a committee and linear models miss something."""
        before = len(self.tried)
        yield from self._offered([sprouted], self.judges)
        small = self.tried[before:]
        best = chosen(small, 0.0, 1.0) if small else None
        return [one for one in small if best is not None and one.key == best.key]

    def _better(self, found: list[Candidate], line: Candidate, errors: float) -> bool:
        """Say whether networks do better than linear models on the same rows, by so many standard errors."""
        folds = {one.fold for one in found}
        lines = [one for one in self.tried if one.key == line.key and one.fold in folds]
        return bool(found) and chosen([*found, *lines], errors, self.tuning.linear.margin).key == found[0].key

    def _rival(self, bent: list[Candidate], line: Candidate) -> float:
        """Give what a grown network loses on rows held out, if that is clearly less than all others do."""
        if not bent or self.objective.loss.link == "log":
            # Losses below zero have no shares.
            return math.inf
        asked, folds = self._asked(self.judges), {one.fold for one in bent}
        least = mean_score([one for one in self.tried if one.fold in folds], line)
        rival = mean_score(bent, bent[0])
        clear = self.tuning.student.clear * loss_of_constant(self.rounded)
        return rival if rival < min(least, mean_score(asked, asked[0])) - clear else math.inf

    def _taught(self, held: float, rival: float) -> Iterator[Candidate]:
        """Teach a student what the committee says, and trust it the less the better another network does."""
        assert self.committee is not None
        left = self.committee.noise()
        noise, excess = self._apart(left, rival)
        alpha = self.alpha
        if alpha is None:
            alpha = alpha_for(self.objective.loss, noise, self.tuning.student)
        loss, amount = self.objective.loss, self.objective.data.amount
        # Where inputs are centred every neuron pays for a bias, so that origins make no difference.
        biased = under(replace(self.rounded, biased=self.rounded.origins is not None), alpha)
        share, budget = trust(loss, amount, self.budget, noise, self.tuning.student, excess), self.budget
        if self.fold is not None and noise > self.tuning.capacity.noise:
            folds = len(self.judges)
            budget = borne(biased, self.committee, folds, budget, share, self.tuning)
            share = trust(loss, amount, budget, noise, self.tuning.student, excess)
        part = taught(biased, self.committee, share)
        score = min(held, rival) * torch.ones(1, dtype=torch.float64)
        one = torch.ones_like(score)
        found = student(part, self.committee, budget, noise, share, self.tuning)
        for number, (way, fit) in enumerate(found):
            self.passes += self.tuning.judge.pass_share

            def finish(objective: Relu, fit: Fit = fit) -> Fit:
                return self._finished(objective, fit, share, alpha)

            place = (len(self.tried), "student", number)
            self.tried.append(Candidate(way, fit, alpha, score, one, 1.0, place, finish=finish))
            yield self.tried[-1]

    def _apart(self, left: float, rival: float) -> tuple[float, float]:
        """Tell noise from what the committee leaves in excess of it: another network leaves less."""
        asked = self._asked(self.judges)
        held = mean_score(asked, asked[0])
        noise = left * min(1.0, rival / max(held, 1e-300))
        return noise, left - noise

    def _finished(self, objective: Relu, fit: Fit, share: float, alpha: float) -> Fit:
        assert self.committee is not None
        part, tuning = under(taught(objective, self.committee, share), alpha), self.tuning

        def finished(part: Relu, fit: Fit) -> Fit:
            # Some rows take it most of the way.
            few = some_rows(part, int(tuning.student.last_rows * part.data.rows))
            fit = refit(few, measured(few, fit.point), tuning.judge.steps, tuning.newton)
            return refit(part, measured(part, fit.point), tuning.judge.steps, tuning.newton)

        fit = compactly(part, measured(part, fit.point), finished)
        return Fit(fit.point, objective.value(fit.point))

    def cut(self) -> Fit:
        """Cut down a member of the committee, before there is a candidate."""
        assert self.committee is not None
        point = self.committee.member(0)
        point = within(self.objective, point, point.w.values.abs(), self.budget)
        return self._given(measured(self.objective, point))

    def finished(self, best: Candidate) -> Fit:
        """Fit the winner on all rows, and clean it."""
        fit = finished(self.objective, best, self.alpha is None, self.tuning)
        return self._given(self._no_worse(fit))

    def _no_worse(self, fit: Fit) -> Fit:
        """Give the network that was known where it fits all rows better than what was found."""
        if self.known is None or self.descends:
            return fit
        bare = under(self.objective, 0.0)
        known = measured(bare, self.known.to(torch.float64))
        return known if known.value < bare.value(fit.point) else fit


def finished(whole: Relu, best: Candidate, free: bool, tuning: Tuning) -> Fit:
    """Fit a candidate on all rows, and clean it; the penalty is given up where it is `free` to be."""
    fit = best.fit
    if best.finish is not None:
        fit = best.finish(under(whole, best.alpha))
    subset = compact(whole, fit.point)
    objective, point = under(subset.part, best.alpha), subset.drop(fit.point)
    fit = Fit(point, objective.value(point))
    if best.finish is None:
        fit = refit(objective, fit, tuning.judge.steps, tuning.newton, rough=False)
    explained = objective.loss.quadratic and min(best.score, fit.value) <= tuning.judge.exact
    if explained and free:
        # The targets can be explained: no penalty is to stand in the way of the last digit.
        objective = under(subset.part, 0.0)
        fit = Fit(fit.point, objective.value(fit.point))
        fit = refit(objective, fit, tuning.judge.exact_steps, tuning.newton, rough=False)
    refits = not best.shrunk or (explained and free)
    fit = cleaned(objective, fit, tuning.clean, tuning.newton, refits=refits)
    return Fit(subset.lift(fit.point), fit.value)
