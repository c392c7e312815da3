"""Small networks trained side by side, each without some of the rows: starts for pruning, and a teacher.

One network overfits noise in its own way, and their mean much less. A committee is one wide network whose
outputs stand side by side, so that it is trained like any other; a row does not count for the members that
are blind to it, which makes every member's loss on those rows an honest score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.linear.vector import SparseVector
from thresher.objective.allowed import Allowed
from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import Loss, expected
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.adam import Adam, AdamSchedule, train
from thresher.solvers.auto.committee_tuning import CommitteeTuning
from thresher.solvers.auto.wide import (
    alternating,
    best_constant,
    loss_of_constant,
    orientation,
    relevance,
)


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The summed loss of several networks; a row counts for those alone that are not blind to its fold.

    Attributes
    ----------
    loss : Loss
        That of one network.
    blind : tensor of shape (members,)
        The fold that each network is blind to. The last column of the targets tells the fold of a row.
    """

    loss: Loss
    blind: Tensor

    name: ClassVar[str] = "side by side"
    link: ClassVar[str] = "identity"
    quadratic: ClassVar[bool] = False

    def _each(self, output: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Give a row of outputs for each row and network, its targets, and whether it counts."""
        members = len(self.blind)
        counts = y[:, -1:] != self.blind
        targets = y[:, None, :-1].expand(-1, members, -1).flatten(0, 1)
        return output.reshape(len(targets), -1), targets, counts

    def value(self, output: Tensor, y: Tensor) -> Tensor:
        """Add up the losses of a row's networks."""
        each, targets, counts = self._each(output, y)
        return (self.loss.value(each, targets).view(counts.shape) * counts).sum(1)

    def slope(self, output: Tensor, y: Tensor) -> Tensor:
        """Give each network the slope of its own loss."""
        each, targets, counts = self._each(output, y)
        slope = self.loss.slope(each, targets).view(*counts.shape, -1)
        return slope.mul_(counts[:, :, None]).flatten(1)


@dataclass(frozen=True, eq=False)
class Committee:
    """A committee in training, or trained: two members for each fold, which are blind to it.

    Attributes
    ----------
    objective : Relu
        What one network is to minimise.
    together : Relu
        What all of them minimise.
    point : Point
        The weights of all.
    fold : int64 tensor of shape (rows,)
        The fold of a row; -1 where nobody is blind to it.
    members : int
        Twice the folds; one of the second half is blind to the same fold as one of the first.
    """

    objective: Relu
    together: Relu
    point: Point
    fold: Tensor
    members: int

    @classmethod
    def drawn(
        cls, objective: Relu, budget: int, fold: Tensor, seed: int, tuning: CommitteeTuning
    ) -> Committee:
        """Draw the members at random; where rows are plenty, so that nobody is blind, two will do."""
        data, (inputs, hidden, outputs) = objective.data, objective.layout.widths
        folds = tuning.folds if bool((fold >= 0).any()) else 1
        members, neurons = 2 * folds, tuning.width(budget, hidden)
        widths = (inputs, members * neurons, members * outputs)
        y = torch.cat([data.targets, fold[:, None].to(data.targets.dtype)], 1)
        together = Relu(
            Data(data.X, y, data.weight, data.seen, torch.float32, data.memory_limit),
            Layout(widths, objective.layout.bias, direct=objective.layout.direct),
            SideBySide(objective.loss, torch.arange(members) % folds),  # type: ignore[arg-type]
            memory_limit=objective.memory_limit,
        )
        point = _drawn(objective, together.layout, members, np.random.default_rng([seed, 7]), tuning)
        if objective.allowed is not None:
            # Neurons that a fused output adds up with a sign keep that of the weight they begin with.
            neuron, size = _outer_weights(together.layout, point)
            sides = torch.ones(widths[1], dtype=torch.int8)
            sides[neuron[size < 0]] = -1
            allowed = objective.allowed.beside(sides, widths[-1])
            point = replace(allowed, fan_in=None).turned(together.layout, point)
            together = replace(together, allowed=allowed)
        return cls(objective, together, point, fold, members)

    def trained(self, passes: float, seed: int, tuning: CommitteeTuning) -> Iterator[tuple[Committee, float]]:
        """Train all members by minibatches; gives the committee after every pass, and what that took."""
        data, layout = self.together.data, self.together.layout
        penalty = tuning.penalty(1.0, 0.0)

        def decay(indices: Tensor) -> Tensor:
            return ~layout.is_bias(indices) * (penalty / data.amount)

        batch = tuning.batch(data.rows)
        enough = tuning.passes(data.rows) * (1.0 if self.members > 2 else tuning.alone)
        passes = min(passes, enough)
        rate = min(tuning.highest, tuning.rate * (enough / passes) ** 0.5)
        steps = max(1, int(passes * max(1, data.rows // batch)))
        schedule = AdamSchedule(
            passes,
            rate,
            tuning.last * rate,
            "cosine",
            tuning.warm_up * steps,
            betas=tuning.betas,
            epsilon=tuning.epsilon,
        )
        random = np.random.default_rng([seed, 8])

        def measure(point: Point, number: int) -> float:
            due = self.objective.loss.quadratic and number % tuning.every == 0
            now = replace(self, point=point)
            return tuning.penalty(now.noise(), now.fitted_noise()) if due else math.nan

        trained = train(
            self.together,
            self.point,
            schedule,
            batch,
            random,
            decay=decay,
            measure=measure,
            exchange=self._narrowed(tuning) if self.together.allowed is not None else None,
        )
        for point, measured, taken in trained:
            penalty = penalty if math.isnan(measured) else measured
            yield replace(self, point=point), taken

    def _narrowed(self, tuning: CommitteeTuning) -> Callable[[Adam], None] | None:
        """Say how neurons come down to the inputs that each may read: the smallest weights go first."""
        allowed, layout = self.together.allowed, self.together.layout
        most = None if allowed is None else allowed.fan_in
        if most is None:
            return None

        def narrow(adam: Adam) -> None:
            if adam.done % tuning.narrowed_every and adam.done < adam.steps:
                return
            falling = min(1.0, adam.share / tuning.narrowed)
            count = max(most, round(tuning.fan * (most / tuning.fan) ** falling))
            held = Allowed(count).within_fan_in(layout, adam.indices, adam.values.abs())
            if not bool(held.all()):
                adam.keep(held)

        return narrow

    def outputs(self) -> Tensor:  # (rows, members, outputs)
        """Run all rows through all members."""
        running = self.together.run(self.point)
        chunks = self.together.data.chunks(self.together.layout.widths[1])
        every = torch.cat([running.forward(part.X).output for part in chunks])
        return every.double().view(len(every), self.members, -1)

    def losses(self) -> Tensor:  # (rows,)
        """Estimate what the mean of all members would lose on each row if none had seen it.

        One blind member loses its bias and all of its variance, the mean of two half of that; with as many as
        there are, their share of it is left, at least that of members that lose nothing but variance.
        """
        data, half = self.objective.data, self.members // 2
        every, row, fold = self.outputs(), torch.arange(data.rows), self.fold.clamp(min=0)
        pair = every[row, fold], every[row, fold + half]

        def value(output: Tensor) -> Tensor:
            return self.objective.loss.value(output, data.targets).double()

        alone, together = 0.5 * (value(pair[0]) + value(pair[1])), value(0.5 * (pair[0] + pair[1]))
        estimate, share = alone - 2 * (alone - together) * (1 - 1 / self.members), data.share.double()
        least = alone / self.members
        return estimate if float(share @ estimate) >= float(share @ least) else least

    def score(self) -> float:
        """Estimate what the mean of all members would lose on rows that none has seen."""
        return float(self.objective.data.share.double() @ self.losses())

    def noise(self) -> float:
        """Give what members leave on rows they are blind to, as a share of what the best constant leaves."""
        if self.objective.loss.link == "log":
            # Losses below zero have no shares.
            return 1.0
        return min(1.0, self.score() / max(loss_of_constant(self.objective), 1e-300))

    def fitted_noise(self) -> float:
        """Give what members leave less on rows they see than on others, as a share of a constant's."""
        data, half = self.objective.data, self.members // 2
        every, targets = self.outputs(), data.targets.repeat_interleave(self.members, 0)
        losses = self.objective.loss.value(every.flatten(0, 1), targets).double().view(len(every), -1)
        blind = self.fold[:, None] == torch.arange(self.members) % half
        if not bool(blind.any()):
            return 0.0
        share = data.share.double()[:, None]
        unseen, seen = ((losses * share * of).sum() / (share * of).sum() for of in (blind, ~blind))
        return min(1.0, max(0.0, float(unseen - seen) / max(loss_of_constant(self.objective), 1e-300)))

    def teach(self, targets: Tensor, share: float, fold: int | None = None) -> Tensor:
        """Move targets by a share of the way to the mean of what the members predict.

        With a fold, those alone are asked that are blind to it.
        """
        output = self.outputs()
        if fold is not None:
            output = output[:, fold :: self.members // 2].contiguous()
        each = expected(self.objective.loss, output.flatten(0, 1)).view(output.shape)
        if self.objective.loss.link == "identity":
            each = each.clamp(targets.min(), targets.max())
        mean = each.mean(1)
        known = targets.to(mean.dtype)
        if not targets.is_floating_point():
            known = torch.nn.functional.one_hot(targets[:, 0], mean.shape[1]).to(mean.dtype)
        return known.lerp(mean, share)

    def nearest(self, count: int) -> Iterator[Point]:
        """Give the members that are nearest to the mean of all."""
        output = self.outputs()
        away = (output - output.mean(1, keepdim=True)).square().sum(2)
        order = (self.objective.data.share.double() @ away).argsort(stable=True)
        for number in order[:count].tolist():
            yield self.member(number)

    def member(self, number: int) -> Point:
        """Give one member as a network of the objective."""
        here, there = self.together.layout, self.objective.layout
        neurons, outputs = here.widths[1] // self.members, there.widths[-1]
        w, parts = self.point.w.to(torch.float64), here.split(self.point.w.indices)
        found = []
        for block, part in enumerate(parts):
            neuron, feature = here.pairs(w.indices[part], block)
            each = neurons if block == 0 else outputs
            own = neuron // each == number
            found.append((neuron[own] % each, feature[own], w.values[part][own]))
        signs = alternating(there)
        inner, outer = found[0], found[1]
        bias = outer[1] == here.inputs[1]
        if there.fused:
            assert signs is not None
            size = torch.zeros(neurons, dtype=torch.float64)
            size[outer[1][~bias] % neurons] = outer[2][~bias]
            signs[:neurons] = torch.where(size < 0, -1.0, 1.0)
            inner = (inner[0], inner[1], inner[2] * size.abs()[inner[0]])
            outer = (outer[0][bias], outer[1][bias], outer[2][bias])
            source = torch.full_like(outer[1], there.inputs[1])
        else:
            source = torch.where(bias, there.inputs[1], outer[1] % neurons)
        places = [there.position(0, inner[0], inner[1]), there.position(1, outer[0], source)]
        values = [inner[2], outer[2]]
        if there.direct:
            places.append(there.position(there.layers, found[2][0], found[2][1]))
            values.append(found[2][2])
        indices, order = torch.cat(places).sort()
        return Point(SparseVector(indices, torch.cat(values)[order], there.size), signs)


def _outer_weights(layout: Layout, point: Point) -> tuple[Tensor, Tensor]:
    """Give the weights that read neurons: which neuron, and the weight."""
    part = layout.split(point.w.indices)[1]
    source = layout.pairs(point.w.indices[part], 1)[1]
    inside = source < layout.inputs[1]
    return source[inside], point.w.values[part][inside]


def _drawn(
    objective: Relu, layout: Layout, members: int, random: np.random.Generator, tuning: CommitteeTuning
) -> Point:
    """Draw members that each read some inputs, any of those that are not the same for all rows.

    Which tell much is for the members to find out on their own rows: what is chosen on all of them would make
    scores on rows that a member is blind to too good.
    """
    neurons, outputs = layout.widths[1], layout.widths[-1] // members
    pool = (relevance(objective) > 0).nonzero().flatten()
    fan = min(pool.numel(), tuning.fan)
    if fan == pool.numel():
        feature = pool.expand(neurons, fan)
    else:
        drawn = [random.choice(pool.numel(), fan, replace=False) for _ in range(neurons)]
        feature = pool[from_host(np.sort(np.stack(drawn)))]

    def normal(*shape: int) -> Tensor:
        return from_host(random.standard_normal(shape))

    neuron = torch.arange(neurons)
    places = [layout.position(0, neuron[:, None], feature).view(-1)]
    values = [normal(neurons * fan) / max(1, fan) ** 0.5]
    each = neurons // members
    of = neuron // each * outputs
    side = orientation(objective)
    for output in range(outputs):
        places.append(layout.position(1, of + output, neuron))
        values.append(normal(neurons) * side[output] / each**0.5)
    if layout.bias:
        row = from_host(random.integers(0, objective.data.rows, neurons))
        towards = (values[0].view(neurons, fan) * _at(objective, row, feature)).sum(1)
        places += [layout.biases(0, neuron), layout.output_biases]
        values += [-tuning.kinks * towards, best_constant(objective).repeat(members)]
    if layout.direct:
        direct = layout.position(layout.layers, torch.arange(members * outputs)[:, None], pool[None])
        places.append(direct.view(-1))
        values.append(torch.zeros(direct.numel(), dtype=torch.float64))
    indices, order = torch.cat(places).sort()
    return Point(SparseVector(indices, torch.cat(values)[order].float(), layout.size))


def _at(objective: Relu, rows: Tensor, feature: Tensor) -> Tensor:  # (neurons, fan)
    """Read some inputs of a row for each neuron."""
    used, place = rows.unique(return_inverse=True)
    X = objective.data.read(to_host(used))
    return X[place[:, None], feature].double()
