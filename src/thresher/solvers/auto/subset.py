"""A part of a network to work on: some of the inputs and neurons, where all would be too many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.linear.vector import SparseVector
from thresher.memory import give_back
from thresher.objective.layout import Layout
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.objective.sparse import places_among
from thresher.solvers.auto.newton import Fit
from thresher.solvers.auto.tuning import SubsetTuning
from thresher.solvers.auto.wide import relevance


@dataclass(frozen=True, eq=False)
class Subset:
    """An objective on some of its inputs and neurons, and the way back.

    Attributes
    ----------
    whole, part : Relu
        The objective on all inputs and neurons, and on the chosen ones.
    units : tuple of int64 tensors, ascending, or None
        The chosen inputs, neurons of each hidden layer, and outputs; None where it is all of them.
    """

    whole: Relu
    part: Relu
    units: tuple[Tensor | None, ...]

    @classmethod
    def of(cls, objective: Relu, units: tuple[Tensor | None, ...]) -> Subset:
        """Restrict an objective to some of its inputs and neurons."""
        old = objective.layout.widths
        units = tuple(
            None if chosen is None or chosen.numel() == width else chosen
            for chosen, width in zip(units, old, strict=True)
        )
        if all(chosen is None for chosen in units):
            return cls(objective, objective, units)
        features = units[0]
        widths = [
            width if chosen is None else chosen.numel() for width, chosen in zip(old, units, strict=True)
        ]
        part = replace(objective, layout=replace(objective.layout, widths=tuple(widths)))
        if part.allowed is not None:
            part = replace(part, allowed=part.allowed.among(units))
        if features is not None:
            origins = None if objective.origins is None else objective.origins[features]
            part = replace(part, data=objective.data.only(features), origins=origins)
        return cls(objective, part, units)

    def then(self, inner: Subset) -> Subset:
        """Give the way from a part of this part to the whole: what is between need not be kept."""
        units = tuple(
            outer if chosen is None else chosen if outer is None else outer[chosen]
            for outer, chosen in zip(self.units, inner.units, strict=True)
        )
        return Subset(self.whole, inner.part, units)

    def lift(self, point: Point) -> Point:
        """Give a point of the part its places in the whole."""
        here, there, w = self.part.layout, self.whole.layout, point.w
        if here == there:
            return point
        places = []
        for block, part in enumerate(here.split(w.indices)):
            neuron, feature = here.pairs(w.indices[part], block)
            inputs, neurons = self._around(block)
            if inputs is not None:
                # A bias comes after all inputs, here and there.
                feature = torch.cat([inputs, torch.tensor([there.inputs[block]])])[feature]
            places.append(there.position(block, neuron if neurons is None else neurons[neuron], feature))
        signs, live = point.signs, self.units[-2]
        if signs is not None and live is not None:
            signs = torch.ones(there.widths[-2], dtype=signs.dtype).index_copy_(0, live, signs)
        return Point(SparseVector(torch.cat(places), w.values, there.size), signs)

    def drop(self, point: Point) -> Point:
        """Give a point of the whole its places in the part; weights of other inputs and neurons are lost."""
        here, there, w = self.part.layout, self.whole.layout, point.w
        if here == there:
            return point
        places, kept = [], []
        for block, part in enumerate(there.split(w.indices)):
            neuron, feature = there.pairs(w.indices[part], block)
            inputs, neurons = self._around(block)
            neuron, inside = _places(neurons, neuron)
            bias = feature == there.inputs[block]
            feature, read = _places(inputs, feature)
            places.append(here.position(block, neuron, torch.where(bias, here.inputs[block], feature)))
            kept.append(inside & (bias | read))
        held, live = torch.cat(kept), self.units[-2]
        signs = point.signs if point.signs is None or live is None else point.signs[live]
        return Point(SparseVector(torch.cat(places)[held], w.values[held], here.size), signs)

    def _around(self, block: int) -> tuple[Tensor | None, Tensor | None]:
        """Give the units that a block reads, and those that it feeds."""
        layout = self.whole.layout
        if block == layout.layers:
            return self.units[0], self.units[-1]
        # Signs that are no weights stand for a fused layer: there is nothing to read but a bias.
        fused = layout.fused and block == layout.layers - 1
        return None if fused else self.units[block], self.units[block + 1]


def _places(chosen: Tensor | None, units: Tensor) -> tuple[Tensor, Tensor]:
    """Give the places of units among the chosen ones, and whether they are among them."""
    if chosen is None:
        return units, torch.ones_like(units, dtype=torch.bool)
    return places_among(chosen, units)


def subset_of(objective: Relu, budget: int, few_neurons: bool, tuning: SubsetTuning) -> Subset:
    """Choose the inputs that tell most by themselves, as many as fit into the memory limit.

    With `few_neurons`, of one hidden layer only so many neurons are looked at as a budget can have in use.
    Without, there are no more than begin with a weight, or than fit into the memory limit with the rows they
    run on; and rows that are sparse keep all of their inputs, since they are never made dense, and so do rows
    of which a narrower copy would not fit.
    """
    data, layout = objective.data, objective.layout
    inputs, hidden = layout.widths[0], layout.widths[1]
    fitting = objective.memory_limit // (8 * min(data.rows, tuning.rows))
    most = max(tuning.least, min(int(tuning.each * budget), fitting))
    # A search by minibatches reads all rows, of which a copy has to fit.
    copied = data.rows * most * data.dtype.itemsize <= objective.memory_limit
    narrowed = inputs > most and (few_neurons or (copied and not data.sparse))
    features = largest(relevance(objective).float(), most) if narrowed else None
    if narrowed:
        # Chunks of all columns have been, and are not read again.
        give_back()
    needed = max(tuning.neurons, int(tuning.neurons_each * budget))
    if not few_neurons:
        needed = max(int(tuning.neurons_trained * budget), objective.memory_limit // tuning.neuron_bytes)
    neurons = torch.arange(needed) if layout.layers == 2 and hidden > needed else None
    return Subset.of(objective, (features, neurons, *(None for _ in layout.widths[2:])))


def fewer_neurons(objective: Relu, count: int) -> Subset:
    """Restrict an objective with one hidden layer to so many of its neurons, if it has more."""
    widths = objective.layout.widths
    neurons = torch.arange(count) if len(widths) == 3 and count < widths[1] else None
    return Subset.of(objective, (None, neurons, *(None for _ in widths[2:])))


def packed(layout: Layout, point: Point) -> Point:
    """Number the neurons of one hidden layer anew, those in use first: the network stays what it is."""
    if layout.layers != 2:
        return point
    w, parts = point.w, layout.split(point.w.indices)
    neuron, feature = layout.pairs(w.indices[parts[0]], 0)
    used = torch.zeros(layout.widths[1], dtype=torch.bool)
    used[neuron] = True
    old = torch.cat([used.nonzero().flatten(), (~used).nonzero().flatten()])
    new = torch.empty_like(old)
    new[old] = torch.arange(old.numel())
    indices = w.indices.clone()
    indices[parts[0]] = layout.position(0, new[neuron], feature)
    if not layout.fused:
        output, source = layout.pairs(w.indices[parts[1]], 1)
        inside = source < layout.inputs[1]
        source = torch.where(inside, new[source.clamp(max=layout.inputs[1] - 1)], source)
        indices[parts[1]] = layout.position(1, output, source)
    indices, order = indices.sort()
    signs = None if point.signs is None else point.signs[old]
    return Point(SparseVector(indices, w.values[order], w.size), signs)


def compact(objective: Relu, point: Point) -> Subset:
    """Restrict an objective to the inputs and neurons that a network uses.

    All inputs stay where a copy of some columns would exceed the memory limit.
    """
    layout, w, data = objective.layout, point.w, objective.data
    used = [torch.zeros(width, dtype=torch.bool) for width in layout.widths]
    used[-1][:] = True
    for block, part in enumerate(layout.split(w.indices)):
        neuron, feature = layout.pairs(w.indices[part], block)
        if block < layout.layers:
            used[block + 1][neuron] = True
        inside = feature < layout.inputs[block]
        used[0 if block == layout.layers else block][feature[inside]] = True
    if data.rows * int(used[0].sum()) * data.dtype.itemsize > objective.memory_limit:
        used[0][:] = True
    return Subset.of(objective, tuple(None if bool(one.all()) else one.nonzero().flatten() for one in used))


def compactly(objective: Relu, fit: Fit, work: Callable[[Relu, Fit], Fit]) -> Fit:
    """Work on a network among the inputs and neurons that it uses; others only take time."""
    subset = compact(objective, fit.point)
    fit = work(subset.part, Fit(subset.drop(fit.point), fit.value))
    return Fit(subset.lift(fit.point), fit.value)
