"""A ReLU network of any depth and outputs that runs: forward, backward, derivatives row by row."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from thresher.linear.vector import SparseVector
from thresher.objective.block import Block, Fed, threshold_backward
from thresher.objective.layout import Layout


@dataclass(frozen=True, eq=False)
class Point:
    """Weights, and the signs with which a fused output adds up the last hidden layer."""

    w: SparseVector
    signs: Tensor | None = None  # (neurons,)

    def keep(self, chosen: Tensor) -> Point:
        """Hold some of the weights only; `chosen` is a mask or ascending places among those held."""
        return replace(self, w=SparseVector(self.w.indices[chosen], self.w.values[chosen], self.w.size))

    def without(self, places: Tensor) -> Point:
        """Let go of weights at some places among those held."""
        stays = torch.ones(self.w.nonzeros, dtype=torch.bool)
        stays[places] = False
        return self.keep(stays)

    def with_values(self, values: Tensor) -> Point:
        """Give the weights other values."""
        return replace(self, w=self.w.with_values(values))

    def at(self, indices: Tensor) -> Point:
        """Hold some ascending positions, zero where nothing was held."""
        return replace(self, w=SparseVector(indices, self.w.at(indices), self.w.size))

    def to(self, dtype: torch.dtype) -> Point:
        """Give the same point in another precision."""
        return Point(self.w.to(dtype), None if self.signs is None else self.signs.to(dtype))


@dataclass(frozen=True, eq=False)
class Pass:
    """What a forward pass leaves: what each layer is fed, the slope of each hidden neuron, the output."""

    fed: list[Tensor]
    slopes: list[Tensor]
    output: Tensor  # (rows, outputs)


class Running:
    """The weights held at a point, as a network that can be run forwards and backwards.

    What depends on the support alone is worked out once, and serves other values on it as well: see `at`.
    """

    def __init__(self, layout: Layout, point: Point, absolute: bool = False) -> None:
        self.layout, self.absolute = layout, absolute
        self.point, self.values, self.signs = point, point.w.values, point.signs
        self.penalised = ~layout.is_bias(point.w.indices)
        self.slices = layout.split(point.w.indices)
        self.blocks = [
            Block(layout, number, point.w.indices[part], self.values[part])
            for number, part in enumerate(self.slices)
        ]

    def at(self, values: Tensor) -> Running:
        """Give the network of other values on the same support."""
        other = copy(self)
        other.point, other.values = self.point.with_values(values), values
        other.blocks = [block.at(values[part]) for block, part in zip(self.blocks, self.slices, strict=True)]
        return other

    def forward(self, X: Fed) -> Pass:
        """Run some rows through the network."""
        layers = self.layout.layers
        # Sparse rows pass for a tensor: whoever meets them looks at hidden layers, or asks a block.
        fed, slopes = [cast(Tensor, X)], []
        for number in range(layers - 1):
            summed = self.blocks[number].forward(fed[-1])
            if self.absolute:
                slopes.append(summed.sign())
                fed.append(summed.abs_())
            else:
                fed.append(summed.relu_())
                slopes.append(fed[-1])
        last = self.blocks[layers - 1]
        if self.signs is None or last.held:
            output = last.forward(fed[-1])
        if self.signs is not None:
            summed = (fed[-1] @ self.signs)[:, None]
            output = summed.add_(output) if last.held else summed
        if self.layout.direct and self.blocks[layers].held:
            output += self.blocks[layers].forward(X)
        return Pass(fed, slopes, output)

    def tangent(self, run: Pass, moved: Running) -> Tensor:  # (rows, outputs)
        """Give the derivative of the outputs along other values on the same support, row by row."""
        layers = self.layout.layers
        change: Tensor | None = None
        for number in range(layers - 1):
            summed = self._changed(number, run.fed[number], change, moved)
            seen = run.slopes[number]
            change = (
                summed.mul_(seen) if self.absolute else threshold_backward(summed, seen, 0, grad_input=summed)
            )
        last = layers - 1
        if self.signs is None:
            output = self._changed(last, run.fed[last], change, moved)
        else:
            output = (change @ self.signs)[:, None]  # type: ignore[operator]
            if moved.blocks[last].held:
                output = output + moved.blocks[last].forward(run.fed[last])
        if self.layout.direct and moved.blocks[layers].held:
            output = output + moved.blocks[layers].forward(run.fed[0])
        return output

    def _changed(self, number: int, fed: Tensor, change: Tensor | None, moved: Running) -> Tensor:
        """Give how a block's sums change with its weights and with what it is fed."""
        summed = moved.blocks[number].forward(fed)
        return summed if change is None else summed.add_(self.blocks[number].forward(change, biased=False))

    def deltas(self, run: Pass, slope: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Give each block, what it was fed, and the derivatives with respect to its neurons' sums."""
        layers = self.layout.layers
        if self.layout.direct:
            yield layers, run.fed[0], slope
        delta = slope
        for number in range(layers - 1, -1, -1):
            yield number, run.fed[number], delta
            if number:
                fused = self.signs is not None and number == layers - 1
                delta = delta * self.signs if fused else self.blocks[number].back(delta)  # type: ignore[operator]
                seen = run.slopes[number - 1]
                # The product is nobody else's and may be written into, which saves a matrix.
                if self.absolute:
                    delta.mul_(seen)
                else:
                    threshold_backward(delta, seen, 0, grad_input=delta)

    def gradient(self, run: Pass, slope: Tensor) -> Tensor:  # (held,)
        """Give the derivative at every weight held, from the slope of the loss."""
        out = torch.empty_like(self.values)
        for number, fed, delta in self.deltas(run, slope):
            if self.blocks[number].held:
                self.blocks[number].gradient(fed, delta, out[self.slices[number]])
        return out

    def jacobian(self, run: Pass) -> Tensor:  # (rows, outputs, held)
        """Give the derivative of every output with respect to every weight held, row by row."""
        rows, outputs = run.output.shape
        out = torch.empty(outputs, self.values.numel(), rows, dtype=run.output.dtype)
        turned = [
            block.read(run.fed[0 if number == self.layout.layers else number]).T.contiguous()
            for number, block in enumerate(self.blocks)
        ]
        for output in range(outputs):
            slope = torch.zeros_like(run.output)
            slope[:, output] = 1
            for number, _, delta in self.deltas(run, slope):
                if self.blocks[number].held:
                    place = out[output, self.slices[number]]
                    self.blocks[number].derivatives(turned[number], delta.T.contiguous(), place)
        # In memory the rows of one weight are together, which is how products over rows are fastest.
        return out.permute(2, 0, 1)
