"""Where a network should grow: the weights and kinks that explain most of what is left to explain.

Orthogonal matching pursuit on the network as it is linear near its weights. Candidates are weights of neurons
there are, direct connections, and new neurons that read one input, with their kinks where the data is:
``relu(x_j - t)`` and ``relu(t - x_j)`` for t at quantiles of the column.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.allowed import forbidden
from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.objective.running import Pass, Point, Running
from thresher.solvers.auto.newton import Fit, measured
from thresher.solvers.auto.tuning import GrowTuning


@dataclass(frozen=True, eq=False)
class Weights:
    """Candidates that are one weight of a block: neuron and feature of each."""

    block: int
    neuron: Tensor
    feature: Tensor


@dataclass(frozen=True, eq=False)
class Kinks:
    """Candidates that are a new neuron ``relu(side * (x_j - at))``, read by one output."""

    feature: Tensor
    side: Tensor
    at: Tensor
    output: Tensor


def grow(objective: Relu, fit: Fit, count: int, tuning: GrowTuning) -> Fit:
    """Admit weights and neurons that cost `count` nonzeros together, or fewer where nothing helps."""
    view = _View(objective, fit.point)
    most = int(min(tuning.most, max(tuning.least, tuning.shortlist * count)))
    weights = [view.weights(block, most) for block in range(objective.layout.blocks)]
    kinks = view.kinks(most, count, tuning)
    columns = torch.cat([*(view.of_weights(part) for part, _ in weights), view.of_kinks(kinks[0])], 1)
    costs = torch.cat([*(torch.ones(gain.numel()) for _, gain in weights), view.cost_of(kinks[0])]).double()
    gains = torch.cat([*(gain for _, gain in weights), kinks[1]])
    gains[costs > count] = 0
    # Compared in float32: what differs by rounding only is a tie.
    order = torch.argsort((gains / costs).float(), descending=True, stable=True)[:most]
    order = order[gains[order] > 0]
    if order.numel() == 0:
        return fit
    picks, values = _pursue(view, columns[:, order], costs[order], count, view.free, tuning)
    parts = [part for part, _ in weights]
    for length in tuning.lengths:
        grown = _admitted(objective, fit, parts, kinks[0], order[picks], length * values)
        if grown.value < fit.value:
            return grown
    return fit


class _View:
    """The network at a point and all that candidates are measured with, on all rows of the objective."""

    def __init__(self, objective: Relu, point: Point) -> None:
        self.objective, self.point = objective, point
        every = slice(0, objective.data.rows)
        # Kinks are looked for in columns that are dense.
        self.batch: Batch = objective.data.batch(every)._replace(X=objective.data.read(every))
        self.running: Running = objective.run(point)
        self.run: Pass = self.running.forward(self.batch.X)
        output, y = self.run.output, self.batch.y
        self.slope = objective.loss.slope(output, y)  # (rows, outputs)
        outputs = output.shape[1]
        one = torch.eye(outputs, dtype=output.dtype).expand(len(output), outputs, outputs)
        self.root = objective.loss.scaled(output, y, one)  # (rows, outputs, outputs)
        self.bend = self.root.square().sum(1)  # (rows, outputs)
        self.deltas = [
            {block: (fed, delta.clone()) for block, fed, delta in self.running.deltas(self.run, unit)}
            for unit in self._units(output)
        ]
        self.used = torch.zeros(objective.layout.widths[1], dtype=torch.bool)
        self.used[objective.layout.pairs(point.w.indices[self.running.slices[0]], 0)[0]] = True

    @staticmethod
    def _units(output: Tensor) -> list[Tensor]:
        units = [torch.zeros_like(output) for _ in range(output.shape[1])]
        for number, unit in enumerate(units):
            unit[:, number] = 1
        return units

    @property
    def free(self) -> int:
        """Neurons that could be added; kinks are for networks with one hidden layer."""
        return int((~self.used).sum()) if self.objective.layout.layers == 2 else 0

    def weights(self, block: int, most: int) -> tuple[Weights, Tensor]:
        """Give the weights of a block that promise most, and what each alone would gain."""
        layout, share = self.objective.layout, self.batch.share[:, None]
        neurons, places = layout.shapes[block]
        inputs = layout.inputs[block]
        fed = self.deltas[0][block][0][:, :inputs]
        slope = torch.zeros(len(fed), neurons, dtype=fed.dtype)
        bend = torch.zeros_like(slope)
        for output, parts in enumerate(self.deltas):
            delta = parts[block][1]
            slope += delta * self.slope[:, [output]]
            bend += delta.square() * self.bend[:, [output]]
        slope, bend = slope * share, bend * share
        gradient, size = torch.zeros(neurons, places, dtype=fed.dtype), torch.ones(neurons, places).to(fed)
        gradient[:, :inputs], size[:, :inputs] = slope.T @ fed, bend.T @ fed.square()
        if places > inputs:
            gradient[:, -1], size[:, -1] = slope.sum(0), bend.sum(0)
        gain = torch.where(size > 1e-12, gradient.square() / size.clamp(min=1e-12), 0.0).view(-1)
        held = self.point.w.indices[self.running.slices[block]] - layout.offsets[block]
        gain[held] = 0
        allowed = self.objective.allowed
        if allowed is not None:
            rows, columns = torch.arange(neurons)[:, None], torch.arange(places)
            signs = self.objective.signs(block, rows, columns, self.point.signs)
            if signs is not None:
                gain[forbidden(signs, -gradient).view(-1)] = 0
            room = allowed.room(layout, block, self.point.w.indices)
            if room is not None:
                gain[(~room[:, None] & (columns < inputs)).view(-1)] = 0
        chosen = gain.float().topk(min(most, gain.numel())).indices
        gain = gain[chosen]
        return Weights(block, chosen // max(1, places), chosen % max(1, places)), gain

    def of_weights(self, part: Weights) -> Tensor:  # (rows * outputs, candidates)
        """Write out how outputs change with some weights, in units of the loss's curvature."""
        inputs = self.objective.layout.inputs[part.block]
        columns = []
        for parts in self.deltas:
            fed, delta = parts[part.block]
            ones = torch.ones(len(fed), 1, dtype=fed.dtype)
            columns.append(torch.cat([fed[:, :inputs], ones], 1)[:, part.feature] * delta[:, part.neuron])
        return self._weighed(torch.stack(columns, 1))

    def kinks(self, most: int, room: int, tuning: GrowTuning) -> tuple[Kinks, Tensor]:
        """Give the new neurons of one input that promise most, and what each alone would gain."""
        nothing = torch.zeros(0, dtype=torch.int64)
        if self.free == 0:
            return Kinks(nothing, nothing.double(), nothing.double(), nothing), nothing.double()
        X, share = self.batch.X, self.batch.share
        # Without biases all kinks are at zero, and where there is no room for one.
        layout = self.objective.layout
        count = tuning.kinks if layout.bias and room >= (2 if layout.fused else 3) else 0
        found, gains = [], []
        directions = None if self.objective.allowed is None else self.objective.allowed.inputs
        for output in range(self.slope.shape[1]):
            slope, bend = self.slope[:, output] * share, self.bend[:, output] * share
            steep = (X.T @ slope).abs() + ((X.square()).T @ slope).abs()
            for feature in torch.argsort(steep.float(), descending=True, stable=True)[
                : tuning.features
            ].tolist():
                at, side, gain, fall = _of_column(X[:, feature], slope, bend, share, count)
                if directions is not None:
                    # The output is to move with the input, or against it.
                    gain = torch.where(directions[feature] * side * fall < 0, 0.0, gain)
                found.append((torch.full_like(at, feature), side, at, torch.full_like(at, output)))
                gains.append(gain)
        gain = torch.cat(gains)
        chosen = torch.argsort(gain.float(), descending=True, stable=True)[:most]
        gain = gain[chosen]
        feature, side, at, output_of = (torch.cat(part)[chosen] for part in zip(*found, strict=True))
        return Kinks(feature.long(), side, at, output_of.long()), gain

    def of_kinks(self, part: Kinks) -> Tensor:  # (rows * outputs, candidates)
        """Write out what some new neurons would add to the outputs."""
        rows, outputs = self.slope.shape
        columns = torch.zeros(rows, outputs, part.feature.numel(), dtype=self.slope.dtype)
        value = ((self.batch.X[:, part.feature] - part.at) * part.side).clamp_(min=0)
        columns[:, part.output, torch.arange(part.feature.numel())] = value
        return self._weighed(columns)

    def cost_of(self, part: Kinks) -> Tensor:
        """Count the nonzeros of neurons: a weight, a bias unless the kink is at zero, an output weight."""
        moved = self.objective.moved
        raw = part.at != 0 if moved is None else (part.at != 0) | moved[part.feature]
        return 1 + raw.double() + float(not self.objective.layout.fused)

    def _weighed(self, columns: Tensor) -> Tensor:
        scaled = self.objective.loss.scaled(self.run.output, self.batch.y, columns)
        return (scaled * self.batch.share.sqrt()[:, None, None]).flatten(0, 1)

    def equations(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Give Newton's equations for candidates with what is held refitted along: a matrix and a vector."""
        A = self._weighed(self.running.jacobian(self.run))
        # The slope in the same units: root' u = slope has a solution in the range that columns live in.
        # Of torch's drivers the default one reads memory that nobody has written: its last digit varies.
        root, slope = self.root.transpose(1, 2), self.slope[:, :, None]
        u = torch.linalg.lstsq(root, slope, driver="gelsd").solution[:, :, 0]
        u = (u * self.batch.share.sqrt()[:, None]).reshape(-1)
        H = A.T @ A
        penalty = self.objective.alpha * self.objective.penalised(self.point.w.indices)
        H.diagonal().add_(penalty + 1e-9 * float(H.diagonal().mean() if len(H) else 0.0) + 1e-12)
        g = A.T @ u + penalty * self.point.w.values
        cross = A.T @ columns
        solved = torch.linalg.solve(H, torch.cat([cross, g[:, None]], 1)) if len(H) else cross.new_zeros(0, 1)
        K, b = columns.T @ columns, -(columns.T @ u)
        if len(H):
            K, b = K - cross.T @ solved[:, :-1], b + cross.T @ solved[:, -1]
        return K, b


def _of_column(
    x: Tensor, slope: Tensor, bend: Tensor, share: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # kinks, sides, gains, signs of the output weight
    """Give the gain of a kink at zero and at quantiles of a column, on either side, by cumulative sums."""
    if count == 0 and not x.min() < 0 < x.max():
        return x[:0], x[:0], x[:0], x[:0]
    ordered, order = x.sort()
    shares = share[order].cumsum(0)
    # A little below, so that rounding does not decide where a level is met exactly.
    levels = torch.linspace(0, 1, count + 2, dtype=x.dtype)[1:-1] * shares[-1] * (1 - 1e-9)
    cuts = torch.unique(ordered[torch.searchsorted(shares, levels).clamp(max=len(x) - 1)])
    cuts = torch.unique(torch.cat([cuts, cuts.new_zeros(1)]))
    cuts = cuts[(cuts > ordered[0]) & (cuts < ordered[-1])]
    place = torch.searchsorted(ordered, cuts, right=True)
    r, c = slope[order], bend[order]
    sums = torch.stack([r, r * ordered, c, c * ordered, c * ordered.square()]).cumsum(1)
    sums = torch.cat([sums.new_zeros(5, 1), sums], 1)
    below, whole = sums[:, place], sums[:, -1:]
    out = []
    for part, side in ((whole - below, 1.0), (below, -1.0)):
        gradient = (part[1] - cuts * part[0]) * side
        size = part[4] - 2 * cuts * part[3] + cuts.square() * part[2]
        gain = torch.where(size > 1e-10, gradient.square() / size.clamp(min=1e-10), 0.0)
        out.append((cuts, torch.full_like(cuts, side), gain, -gradient.sign()))
    return tuple(torch.cat(both) for both in zip(*out, strict=True))  # type: ignore[return-value]


def _pursue(
    view: _View, columns: Tensor, costs: Tensor, count: int, free: int, tuning: GrowTuning
) -> tuple[Tensor, Tensor]:
    """Pick candidates one by one, each the one that explains most of what the others leave, for its cost."""
    K, b = view.equations(columns)
    least = tuning.ridge * columns.square().sum(0) + 1e-300
    whole, aim = K.clone(), b.clone()
    left, picks, new = float(count), [], 0
    live = torch.ones(len(b), dtype=torch.bool)
    while left >= 1 and bool(live.any()):
        size = K.diagonal()
        open_ = live & (costs <= left) & (size > least)
        if new >= free:
            open_ &= costs <= 1
        if not bool(open_.any()):
            break
        score = torch.where(open_, b.square() / size.clamp(min=1e-300) / costs, -1.0)
        pick = int(score.float().argmax())
        if float(score[pick]) <= 0:
            break
        live[pick] = False
        picks.append(pick)
        left -= float(costs[pick])
        new += int(costs[pick] > 1)
        row, pivot, aimed = K[pick].clone(), float(K[pick, pick]), float(b[pick])
        K.addr_(row, row, alpha=-1 / pivot)
        b = b - row * (aimed / pivot)
    chosen = torch.tensor(picks, dtype=torch.int64)
    matrix = whole[chosen][:, chosen]
    matrix.diagonal().add_(least[chosen])
    return chosen, torch.linalg.solve(matrix, aim[chosen]) if picks else aim[:0]


def _admitted(
    objective: Relu, fit: Fit, weights: list[Weights], kinks: Kinks, chosen: Tensor, values: Tensor
) -> Fit:
    """Hold what was picked, beside what is held."""
    layout, w = objective.layout, fit.point.w
    signs = None if fit.point.signs is None else fit.point.signs.clone()
    places, numbers, first = [w.indices], [w.values], 0
    for part in weights:
        here = (chosen >= first) & (chosen < first + part.neuron.numel())
        local = chosen[here] - first
        places.append(layout.position(part.block, part.neuron[local], part.feature[local]))
        numbers.append(values[here])
        first += part.neuron.numel()
    here = chosen >= first
    local, value = chosen[here] - first, values[here]
    held = layout.pairs(w.indices[layout.split(w.indices)[0]], 0)[0]
    empty = torch.ones(layout.widths[1], dtype=torch.bool)
    empty[held] = False
    slot = empty.nonzero().flatten()[: local.numel()]
    local, value = local[: slot.numel()], value[: slot.numel()]
    size = value.abs() if layout.fused else value.abs().sqrt()
    slope = size * kinks.side[local]
    places.append(layout.position(0, slot, kinks.feature[local]))
    numbers.append(slope)
    shifted = kinks.at[local] != 0
    places.append(layout.biases(0, slot[shifted]))
    numbers.append((-slope * kinks.at[local])[shifted])
    if signs is not None:
        signs[slot] = torch.where(value < 0, -1.0, 1.0).to(signs.dtype)
    else:
        places.append(layout.position(1, kinks.output[local], slot))
        numbers.append(size * value.sign())
    indices, order = torch.cat(places).sort()
    point = Point(SparseVector(indices, torch.cat(numbers)[order], w.size), signs)
    return measured(objective, point)
