"""Wide random networks: fitted whole by Newton's method, then pruned to the budget."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.linear.vector import SparseVector
from thresher.objective.data import Batch
from thresher.objective.layout import Layout, spread_evenly
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.tuning import WideTuning


def random_start(objective: Relu, count: int, seed: int, tuning: WideTuning) -> Point:
    """Draw a network of about `count` weights whose kinks lie where the data is."""
    layout, random = objective.layout, np.random.default_rng([seed, 4])
    scores = relevance(objective)
    if layout.layers > 2:
        return scattered_start(objective, count, seed)
    return _joined(objective, _kinked(objective, count, scores, random, tuning))


def scattered_start(objective: Relu, count: int, seed: int) -> Point:
    """Draw a network of `count` weights at random places, of inputs that are not always zero.

    Where these outnumber the weights, those that tell more by themselves are drawn more often: what they tell
    together is only seen by neurons that read several of them.
    """
    layout, random = objective.layout, np.random.default_rng([seed, 4])
    usable = _usable(objective)
    first, *others = spread_evenly(layout, count)
    draw = _telling if first < len(usable) else _anywhere
    parts = [_drawn(layout, 0, *draw(objective, usable, first, random), random)]
    parts += [_scattered(layout, block, share, random) for block, share in enumerate(others, 1)]
    return _joined(objective, parts)


def _joined(objective: Relu, parts: list[tuple[Tensor, Tensor]]) -> Point:
    """Make a point of parts, and of output biases that give the best constant."""
    layout, dtype = objective.layout, objective.data.dtype
    if layout.bias:
        places, constant = layout.output_biases, best_constant(objective)
        parts = [*[(at[~torch.isin(at, places)], of[~torch.isin(at, places)]) for at, of in parts]]
        parts.append((places, constant))
    indices, order = torch.cat([at for at, _ in parts]).sort()
    values = torch.cat([of for _, of in parts])[order].to(dtype)
    signs = alternating(layout)
    if signs is not None:
        signs = (signs * orientation(objective)).to(dtype)
    point = Point(SparseVector(indices, values, layout.size), signs)
    if objective.allowed is not None:
        point = objective.allowed.turned(layout, point)
    return point.at(objective.closed(point.w.indices))


def fan_in_of(objective: Relu) -> int:
    """Give the most inputs that a neuron may read."""
    fan_in = None if objective.allowed is None else objective.allowed.fan_in
    return objective.layout.widths[0] if fan_in is None else fan_in


def _usable(objective: Relu) -> np.ndarray:
    """Give the places of a neuron of the first layer whose input is not always zero."""
    (seen,) = objective.data.total(lambda batch: (batch.X.abs().T @ torch.ones_like(batch.share),))
    places = to_host(torch.nonzero(seen).flatten())
    return np.append(places, len(seen)) if objective.layout.bias else places


def alternating(layout: Layout) -> Tensor | None:
    """Let a fused output add and subtract neurons by turns."""
    if not layout.fused:
        return None
    signs = torch.ones(layout.widths[-2], dtype=torch.float64)
    signs[1::2] = -1
    return signs


def best_constant(objective: Relu) -> Tensor:  # (outputs,)
    """Give the best output that is the same for all rows."""
    constant = torch.zeros(objective.layout.widths[-1], dtype=torch.float64)
    if not objective.centred:
        best = objective.constant()
        constant[: best.numel()] = best
    return constant


def loss_of_constant(objective: Relu) -> float:
    """Give the mean loss of the best constant."""
    best = best_constant(objective)

    def each(batch: Batch) -> tuple[Tensor, ...]:
        return (objective.loss.value(best.expand(len(batch.y), -1), batch.y) @ batch.share.double(),)

    return float(objective.data.total(each)[0])


def orientation(objective: Relu) -> Tensor:  # (outputs,), +1 or -1
    """Say to which side each target is skewed, so that mirrored targets begin with a mirrored network."""
    data, outputs = objective.data, objective.layout.widths[-1]
    if not data.targets.is_floating_point() or data.targets.shape[1] != outputs:
        return torch.ones(outputs, dtype=torch.float64)
    (mean,) = data.total(lambda batch: (batch.share.double() @ batch.y.double(),))
    (skewness,) = data.total(lambda batch: (batch.share.double() @ (batch.y.double() - mean).pow(3),))
    return torch.where(skewness < 0, -1.0, 1.0).double()


def relevance(objective: Relu) -> Tensor:  # (inputs,)
    """Say how much each input tells by itself: what its better half, above or below zero, explains."""
    zero = torch.zeros(objective.layout.widths[-1], dtype=objective.data.dtype)
    if objective.layout.bias:
        zero = best_constant(objective).to(zero)

    def each(batch: Batch) -> tuple[Tensor, ...]:
        slope = objective.slope(zero.expand(len(batch.X), -1).contiguous(), batch)
        halves = (batch.X.clamp(**side) for side in ({"min": 0}, {"max": 0}))
        return tuple(sums for half in halves for sums in (half.T @ slope, half.square().T @ batch.share))

    up, up_size, down, down_size = objective.data.total(each)
    one = up.square().sum(1) / up_size.clamp(min=1e-300)
    two = down.square().sum(1) / down_size.clamp(min=1e-300)
    return torch.maximum(one, two)


def _kinked(
    objective: Relu, count: int, scores: Tensor, random: np.random.Generator, tuning: WideTuning
) -> list[tuple[Tensor, Tensor]]:
    """Draw neurons that each read a few inputs, more often those that tell much."""
    layout = objective.layout
    _, hidden, outputs = layout.widths
    usable = to_host(torch.nonzero(scores > 0).flatten())
    if len(usable) == 0:
        return []
    fan = min(len(usable), tuning.fan, fan_in_of(objective))
    each = fan + int(layout.bias) + (0 if layout.fused else outputs)
    neurons = int(min(hidden, max(2, count // each)))
    chance = np.sqrt(to_host(scores)[usable]) + tuning.chance * float(scores.sqrt().mean())
    chance = chance / chance.sum()
    drawn = np.stack([random.choice(len(usable), fan, replace=False, p=chance) for _ in range(neurons)])
    feature = from_host(usable[drawn])
    weights = from_host(random.standard_normal((neurons, fan))) / (fan * neurons) ** 0.5
    # Kinks pass through points of the size of the data; which rows there are makes no difference.
    through = from_host(random.standard_normal((neurons, fan)))
    neuron = torch.arange(neurons)
    parts = [(layout.position(0, neuron[:, None], feature).view(-1), weights.view(-1))]
    if layout.bias:
        parts.append((layout.biases(0, neuron), -(through * weights).sum(1)))
    if not layout.fused:
        outer = from_host(random.standard_normal((outputs, neurons))) * orientation(objective)[:, None]
        places = layout.position(1, torch.arange(outputs)[:, None], neuron)
        parts.append((places.view(-1), outer.view(-1)))
    if layout.direct:
        room = max(1, int(tuning.direct * count) // outputs)
        best = torch.argsort(scores, descending=True, stable=True)[:room].sort().values
        places = layout.position(layout.layers, torch.arange(outputs)[:, None], best)
        parts.append((places.view(-1), torch.zeros(places.numel(), dtype=torch.float64)))
    return parts


def _anywhere(
    objective: Relu, usable: np.ndarray, count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw places of the first layer, each as likely as any other."""
    return _places(objective.layout.shapes[0][0], usable, count, random)


def _telling(
    objective: Relu, usable: np.ndarray, count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw places of the first layer, the likelier the more an input tells by itself."""
    scores = to_host(relevance(objective))
    scores = np.append(scores, scores.mean())[usable]
    neuron = random.integers(0, objective.layout.shapes[0][0], count)
    feature = random.choice(len(usable), count, p=scores / scores.sum())
    drawn = np.unique(neuron * len(usable) + feature)
    return drawn // len(usable), usable[drawn % len(usable)]


def _places(
    neurons: int, usable: np.ndarray, count: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    drawn = np.sort(distinct(random, neurons * len(usable), min(count, neurons * len(usable))))
    return drawn // max(1, len(usable)), usable[drawn % max(1, len(usable))]


def _scattered(layout: Layout, block: int, count: int, random: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Draw random places of a layer, and weights."""
    neurons, places = layout.shapes[block]
    return _drawn(layout, block, *_places(neurons, np.arange(places), count, random), random)


def _drawn(
    layout: Layout, block: int, neuron: np.ndarray, feature: np.ndarray, random: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Draw weights at some places of a layer that keep the size of what passes through."""
    fan = np.bincount(neuron, minlength=layout.shapes[block][0])[neuron]
    values = random.standard_normal(len(neuron)) * np.sqrt(2 / np.maximum(1, fan))
    values[feature == layout.inputs[block]] = 0
    return layout.position(block, from_host(neuron), from_host(feature)), from_host(values)


def distinct(random: np.random.Generator, size: int, count: int) -> np.ndarray:
    """Draw distinct numbers below `size`, in memory that grows with their count alone."""
    if 3 * count >= size:
        return random.permutation(size)[:count].astype(np.int64)
    found = np.unique(random.integers(0, size, count + count // 4 + 16))
    while len(found) < count:
        found = np.unique(np.concatenate([found, random.integers(0, size, count)]))
    return random.permutation(found)[:count].astype(np.int64)
