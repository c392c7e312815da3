"""Which weights a network may hold, besides how many: where outputs may not fall or rise, inputs of a neuron.

Every unit that a monotone input reaches has a direction: +1 where its value never falls as the input rises in
its own direction, -1 where it never rises. A weight from one such unit to another has the sign of the product
of their directions. A ReLU never falls as its sum rises, so the output, of direction +1, then never falls as
inputs rise in their directions: not on some rows, but anywhere.

The sign that a weight must have is fixed by its place (and by the sign with which a fused output adds up its
neuron). So a network is kept within what is allowed by bounds at zero while its weights move, and by letting
go of weights of the wrong sign when it is rewritten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.objective.layout import Layout
from thresher.objective.running import Point

# What a place may hold: any number, or nothing; +1 and -1 are signs.
ANY, NOTHING = 0, 2
# Neurons of a hidden layer below the last: directions that are dealt out in turn. One of direction 0 may not
# read what has one.
DEALT = (1, -1, 0)


@dataclass(frozen=True, eq=False)
class Allowed:
    """What a network may hold.

    Attributes
    ----------
    fan_in : int, optional
        The most weights that a hidden neuron reads its inputs by, its bias not counted.
    directions : tuple of int8 tensors or None, optional
        For the inputs, each hidden layer and the outputs, the direction of every unit, 0 for none. None for a
        hidden layer whose directions are the signs with which a fused output adds it up. Without the tuple
        nothing has a direction.
    """

    fan_in: int | None = None
    directions: tuple[Tensor | None, ...] | None = None

    @classmethod
    def of(cls, layout: Layout, directions: Tensor | None, fan_in: int | None) -> Allowed | None:
        """Make it of the directions of inputs; None where everything is allowed."""
        if directions is None or not bool(directions.any()):
            return None if fan_in is None else cls(fan_in)
        # Where all inputs have a direction, neurons that may not read them are of no use.
        dealt = torch.tensor(DEALT[: 2 if bool(directions.all()) else 3], dtype=torch.int8)
        inner: list[Tensor | None] = [
            dealt[torch.arange(width) % len(dealt)] for width in layout.widths[1:-1]
        ]
        if layout.fused and inner:
            inner[-1] = None
        outer = torch.ones(layout.widths[-1], dtype=torch.int8)
        return cls(fan_in, (directions.to(torch.int8), *inner, outer))

    def among(self, units: tuple[Tensor | None, ...]) -> Allowed:
        """Give what is allowed of some units of each layer, of all where there is None."""
        if self.directions is None:
            return self
        chosen = zip(self.directions, units, strict=True)
        return replace(
            self, directions=tuple(one if one is None or of is None else one[of] for one, of in chosen)
        )

    def beside(self, neurons: Tensor, outputs: int) -> Allowed:
        """Give what is allowed of networks side by side with one hidden layer, of these directions."""
        if self.directions is None:
            return self
        return replace(
            self,
            directions=(self.directions[0], neurons.to(torch.int8), torch.ones(outputs, dtype=torch.int8)),
        )

    @property
    def directed(self) -> bool:
        """Whether any input has a direction."""
        return self.directions is not None

    @property
    def inputs(self) -> Tensor | None:  # (inputs,)
        """The directions of the inputs."""
        return None if self.directions is None else self.directions[0]

    def signs(
        self, layout: Layout, block: int, neuron: Tensor, feature: Tensor, fused: Tensor | None
    ) -> Tensor:
        """Say what places of a block may hold: `ANY`, `NOTHING`, +1 or -1; shapes are broadcast.

        `fused` are the signs with which a fused output adds up the last hidden layer.
        """
        neuron, feature = torch.broadcast_tensors(neuron, feature)
        out = torch.zeros(neuron.shape, dtype=torch.int8)
        if self.directions is None:
            return out
        direct = block == layout.layers
        into = self.directions[-1 if direct else block + 1]
        if into is None:
            assert fused is not None
            into = torch.where(fused < 0, -1, 1).to(torch.int8)
        source = self.directions[0 if direct else block]
        inside = feature < layout.inputs[block]
        if source is None or not bool(inside.any()):
            # Signs that are no weights lead from there, or there are biases only.
            return out
        read = torch.where(inside, source[feature.clamp(max=len(source) - 1)], 0).to(torch.int8)
        found = read * into[neuron]
        return torch.where((read != 0) & (found == 0), torch.tensor(NOTHING, dtype=torch.int8), found)

    def held(self, layout: Layout, indices: Tensor, fused: Tensor | None) -> Tensor:  # (held,)
        """Say the same of ascending positions."""
        out = torch.zeros(indices.numel(), dtype=torch.int8)
        for block, part in enumerate(layout.split(indices)):
            if part.stop > part.start:
                out[part] = self.signs(layout, block, *layout.pairs(indices[part], block), fused)
        return out

    def bounds(self, layout: Layout, point: Point) -> tuple[Tensor, Tensor] | None:  # (held,), (held,)
        """Give between which numbers the weights held may be; None where they may be any."""
        if self.directions is None:
            return None
        signs, like = self.held(layout, point.w.indices, point.signs), point.w.values
        none, wide = torch.zeros_like(like), torch.full_like(like, torch.inf)
        # +1 and what may hold nothing have zero below; -1 and that have zero above.
        return torch.where(signs > 0, none, -wide), torch.where((signs < 0) | (signs > 1), none, wide)

    def turned(self, layout: Layout, point: Point) -> Point:
        """Give weights of the wrong sign the right one."""
        if self.directions is None:
            return point
        signs, values = self.held(layout, point.w.indices, point.signs), point.w.values
        turned = torch.where(signs == ANY, values, values.abs() * signs)
        return self.permitted(layout, point.with_values(torch.where(signs == NOTHING, 0.0, turned)))

    def permitted(self, layout: Layout, point: Point) -> Point:
        """Let go of weights of the wrong sign, and of the smallest of those that a neuron has too many of."""
        w = point.w
        stays = torch.ones(w.nonzeros, dtype=torch.bool)
        if self.directions is not None:
            signs = self.held(layout, w.indices, point.signs)
            stays = (signs == ANY) | (w.values == 0) | (w.values.sign() == signs)
        if not bool(stays.all()):
            point = point.keep(stays)
        stays = self.within_fan_in(layout, point.w.indices, point.w.values.abs())
        return point if bool(stays.all()) else point.keep(stays)

    def within_fan_in(self, layout: Layout, indices: Tensor, sizes: Tensor) -> Tensor:  # (held,), bool
        """Choose the largest weights of each hidden neuron, as many as it may have."""
        stays = torch.ones(indices.numel(), dtype=torch.bool)
        if self.fan_in is None:
            return stays
        for block, part in enumerate(layout.split(indices)[: layout.layers - 1]):
            neuron, feature = layout.pairs(indices[part], block)
            inside = (feature < layout.inputs[block]).nonzero().flatten()
            # By neuron, and the largest first within each.
            order = inside[sizes[part][inside].argsort(descending=True, stable=True)]
            order = order[neuron[order].argsort(stable=True)]
            of = neuron[order]
            first = torch.searchsorted(of, of)
            rank = torch.arange(of.numel()) - first
            stays[part.start + order[rank >= self.fan_in]] = False
        return stays

    def room(self, layout: Layout, block: int, indices: Tensor) -> Tensor | None:  # (neurons,), bool
        """Say which neurons of a block may read one input more; None where all of them may."""
        if self.fan_in is None or block >= layout.layers - 1:
            return None
        neuron, feature = layout.pairs(indices[layout.split(indices)[block]], block)
        inside = feature < layout.inputs[block]
        return torch.bincount(neuron[inside], minlength=layout.shapes[block][0]) < self.fan_in


def forbidden(signs: Tensor, direction: Tensor) -> Tensor:  # bool
    """Say where a weight would move from zero to what its place may not hold."""
    return (signs == NOTHING) | (signs * direction.sign() == -1)


def without_zeros(point: Point, bounds: tuple[Tensor, Tensor]) -> Point:
    """Let go of weights that ended at a bound."""
    low, high = bounds
    at = (point.w.values == 0) & (low.isfinite() | high.isfinite())
    return point.keep(~at) if bool(at.any()) else point
