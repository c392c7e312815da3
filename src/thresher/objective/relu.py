"""The loss of a ReLU network of any depth and outputs: value, gradient and curvature, sums over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from thresher.linear.budget import StreamingTop
from thresher.linear.vector import SparseVector
from thresher.objective.allowed import Allowed, forbidden
from thresher.objective.block import Fed
from thresher.objective.data import Batch, Data
from thresher.objective.layout import Layout
from thresher.objective.loss import Loss
from thresher.objective.pages import zeros
from thresher.objective.running import Point, Running
from thresher.objective.sparse import SparseRows, places_among

# Rows of a block of a symmetric product: what is below the diagonal is computed within blocks only.
GRAM_BLOCK = 128
# Blocks of derivatives that the memory limit has room for: beside one are the rows and deltas it is made of.
BLOCKS = 16
# Multiplications for each output below which float32 saves nothing.
ROUGH_WORK = 2**22


def _upper(J: Tensor) -> Tensor:
    """Give the upper triangle of ``J J'``, and some of what is below it."""
    size = len(J)
    out = zeros(size, size, dtype=J.dtype)
    for first in range(0, size, GRAM_BLOCK):
        part = slice(first, first + GRAM_BLOCK)
        torch.mm(J[part], J[first:].T, out=out[part, first:])
    return out


def _mirrored(H: Tensor) -> Tensor:
    """Write what is above the diagonal below it as well, in place: a copy would be one matrix more."""
    for first in range(0, len(H), GRAM_BLOCK):
        part = slice(first, first + GRAM_BLOCK)
        block = H[part, part]
        block.copy_(block.triu() + block.triu(1).T)
        H[first + GRAM_BLOCK :, part] = H[part, first + GRAM_BLOCK :].T
    return H


@dataclass(frozen=True, eq=False)
class Relu:
    """The mean loss of a network over some rows, plus ``alpha / 2`` times its squared weights.

    Biases are not penalised, so that a shift of a column or of the target changes nothing.

    Attributes
    ----------
    data : Data
    layout : Layout
    loss : Loss
    alpha : float
        L2 penalty beside the mean over rows.
    origins : tensor of shape (inputs,), optional
        What was subtracted from each input; None where inputs are not centred. A neuron that uses one where
        this is not zero has a bias in raw units, whatever its bias is here, so it holds one.
    middle : tensor of shape (outputs,), optional
        What was subtracted from the targets. Outputs then have biases in raw units, and hold one.
    biased : bool
        Whether neurons that use any input hold a bias, so that a shift of a column does not change what a
        network may cost.
    absolute : bool
        Whether neurons are ``|z|`` rather than ``relu(z)``.
    folding : bool tensor of shape (inputs,), optional
        With `absolute`, which inputs have values of both signs: others have no kink at zero. All by default.
    allowed : Allowed, optional
        Which weights may be held, besides how many; any by default.
    memory_limit : int
        Bytes that blocks of gradients may take.
    """

    data: Data
    layout: Layout
    loss: Loss
    alpha: float = 0.0
    origins: Tensor | None = None
    middle: Tensor | None = None
    biased: bool = False
    absolute: bool = False
    folding: Tensor | None = None
    allowed: Allowed | None = None
    memory_limit: int = 64 * 2**20

    kind: ClassVar[str] = "relu"

    @property
    def size(self) -> int:
        """All weights there could be."""
        return self.layout.size

    @property
    def moved(self) -> Tensor | None:  # (inputs,), bool
        """Inputs that bring a bias along: those whose origin is not zero in raw units, or all."""
        if self.biased:
            return torch.ones(self.layout.widths[0], dtype=torch.bool)
        return None if self.origins is None else self.origins != 0

    @property
    def centred(self) -> bool:
        """Whether targets were centred."""
        return self.middle is not None

    def on(self, data: Data) -> Relu:
        """Give the same objective on other rows; the penalty stays what it is beside a sum over rows."""
        return replace(self, data=data, alpha=self.alpha * self.data.amount / max(data.amount, 1e-300))

    def gathered(self) -> Relu:
        """Give the same objective with all rows here, for what looks at them one by one."""
        data = self.data.gathered()
        return self if data is self.data else replace(self, data=data)

    def to(self, dtype: torch.dtype) -> Relu:
        """Give the same objective in another precision."""
        return replace(self, data=self.data.to(dtype))

    def run(self, point: Point) -> Running:
        """Make a network of a point."""
        return Running(self.layout, point, self.absolute)

    def permitted(self, point: Point) -> Point:
        """Let go of the weights that are not allowed."""
        return point if self.allowed is None else self.allowed.permitted(self.layout, point)

    def bounds(self, point: Point) -> tuple[Tensor, Tensor] | None:  # (held,), (held,)
        """Give between which numbers the weights held may be; None where they may be any."""
        return None if self.allowed is None else self.allowed.bounds(self.layout, point)

    def signs(self, block: int, neuron: Tensor, feature: Tensor, fused: Tensor | None) -> Tensor | None:
        """Say which signs weights at some places may have; None where they may have any."""
        if self.allowed is None or not self.allowed.directed:
            return None
        return self.allowed.signs(self.layout, block, neuron, feature, fused)

    def penalised(self, indices: Tensor) -> Tensor:
        """Say which positions the penalty applies to."""
        return ~self.layout.is_bias(indices)

    def value(self, at: Point | Running) -> float:
        """Give the objective on all rows."""
        running = at if isinstance(at, Running) else self.run(at)

        def each(batch: Batch) -> tuple[Tensor, ...]:
            output = running.forward(batch.X).output
            return (self.loss.value(output, batch.y) @ batch.share.double(),)

        (total,) = self.data.total(each, self._width)
        return float(total) + self.penalty(running)

    def row_values(self, point: Point) -> Tensor:  # (rows,)
        """Give the loss of every row by itself."""
        running = self.run(point)
        chunks = self.data.chunks(self._width)
        values = [self.loss.value(running.forward(part.X).output, part.y) for part in chunks]
        return self.data.every(torch.cat(values))

    def constant(self) -> Tensor:  # (outputs,)
        """Give the output, the same for all rows, that minimises the mean loss."""
        return self.loss.constant(self.data.every(self.data.targets), self.data.every(self.data.share))

    def penalty(self, running: Running) -> float:
        """Give what the penalty adds."""
        if not self.alpha:
            return 0.0
        return 0.5 * self.alpha * float((running.values.double().square() * running.penalised).sum())

    @property
    def _width(self) -> int:
        return max(self.layout.widths[1:])

    def slope(self, output: Tensor, batch: Batch) -> Tensor:  # (rows, outputs)
        """Give the derivative of the mean loss over a batch with respect to its outputs."""
        return self.loss.slope(output, batch.y).mul_(batch.share[:, None])

    def batch_gradient(
        self, running: Running, batch: Batch, valued: bool = True
    ) -> tuple[Tensor | None, Tensor]:  # (), (held,)
        """Give the mean loss over a batch, if that is wanted, and its derivative at the weights held."""
        run = running.forward(batch.X)
        amount = batch.share.sum().clamp_(min=1e-30)
        batch = batch._replace(share=batch.share / amount)
        gradient = running.gradient(run, self.slope(run.output, batch))
        loss = (self.loss.value(run.output, batch.y) * batch.share).sum() if valued else amount
        loss, gradient = self.data.ranks.mean(amount, loss, gradient)
        return loss if valued else None, gradient

    def layer_blocks(
        self, number: int, fed: Fed, delta: Tensor, some: Callable[[range], Iterable[int]] = iter
    ) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Give the derivatives of one layer, in blocks (first neuron, columns, entries), of all ranks' rows.

        They follow from what the layer is fed and its neurons' deltas. Entries have a row for each neuron and
        a column for each of the layer's columns, its biases the last: all of them, or those that sparse rows
        hold, since all others are zero. Blocks are no larger than the memory limit allows; each holds until
        the next, which is written into the same memory. `some` chooses among their first neurons.
        """
        (neurons, places), inputs = self.layout.shapes[number], self.layout.inputs[number]
        columns = torch.arange(places)
        if isinstance(fed, SparseRows):
            present, fed = fed.compacted(self.data.ranks.union)
            columns = torch.cat([present, columns[inputs:]])
        count = columns.numel()
        inside = count - (places - inputs)
        step = max(1, min(neurons, self.memory_limit // (BLOCKS * delta.element_size() * max(1, count))))
        memory = torch.empty(step, count, dtype=delta.dtype)
        for first in some(range(0, neurons if count else 0, step)):
            part = delta[:, first : first + step]
            block = memory[: part.shape[1]]
            if isinstance(fed, SparseRows):
                block[:, :inside] = (fed.T @ part.contiguous()).T
            elif inside:
                torch.mm(part.T, fed[:, :inside], out=block[:, :inside])
            if places > inputs:
                block[:, -1] = part.sum(0)
            (block,) = self.data.ranks.sum(block)
            yield first, columns, block

    def largest_gradients(
        self, point: Point, batch: Batch, count: int, some: Callable[[range], Iterable[int]] = iter
    ) -> SparseVector:
        """Give the `count` largest derivatives over a batch at places where nothing is held.

        `some` chooses among the blocks of every layer, by their first neurons, where all would be too many.
        """
        top, running, layout = StreamingTop(count, self.size), self.run(point), self.layout
        run = running.forward(batch.X)
        for number, fed, delta in running.deltas(run, self.slope(run.output, batch)):
            neuron, feature = layout.pairs(point.w.indices[running.slices[number]], number)
            for first, columns, block in self.layer_blocks(number, fed, delta, some):
                here = (neuron >= first) & (neuron < first + len(block))
                place, found = places_among(columns, feature[here])
                block[(neuron[here] - first)[found], place[found]] = 0
                rows = torch.arange(first, first + len(block))[:, None]
                signs = self.signs(number, rows, columns, point.signs)
                if signs is not None:
                    block[forbidden(signs, -block)] = 0

                def positions(
                    at: Tensor, first: int = first, columns: Tensor = columns, number: int = number
                ) -> Tensor:
                    row, column = at // columns.numel(), at % columns.numel()
                    return layout.position(number, first + row, columns[column])

                top.offer_at(positions, block.view(-1))
        return top.result()

    def curvature(self, at: Point | Running, rough: bool = False) -> tuple[Tensor, Tensor]:
        """Give the matrix of second derivatives and the gradient on the support, both in float64.

        The matrix is that of Gauss and Newton, ``J' H J`` with J the derivatives of the outputs and H the
        curvature of the loss; a `rough` one comes from products in float32 where that saves time.
        """
        running, outputs = at if isinstance(at, Running) else self.run(at), self.layout.widths[-1]
        rough = rough and self.data.rows * running.values.numel() ** 2 > ROUGH_WORK

        light = self.run(running.point.to(torch.float32)) if rough else running

        def each(batch: Batch) -> tuple[Tensor, ...]:
            run = running.forward(batch.X)
            output, gradient = run.output, running.gradient(run, self.slope(run.output, batch))
            if rough:
                # The run in float64 has served, and makes room.
                del run
                run = light.forward(batch.X.to(torch.float32))
            J = light.jacobian(run)
            del run
            J = self.loss.scaled(output, batch.y, J).mul_(batch.share.sqrt().to(J.dtype)[:, None, None])
            parts = J.permute(1, 2, 0)
            summed = _upper(parts[0])
            for part in parts[1:]:
                summed += _upper(part)
            return summed, gradient

        # Rows enough that adding up matrices costs less than making them.
        H, g = self.data.total(each, max(self._width, outputs * running.values.numel() // 4))
        _mirrored(H)
        if self.alpha:
            penalty = self.alpha * running.penalised.double()
            H.diagonal().add_(penalty)
            g += penalty * running.values.double()
        return H, g

    def on_inputs(self, indices: Tensor) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
        """Give the weights that read inputs: the block of the biases beside them, places, neurons, inputs."""
        layout = self.layout
        for block, biases in ((0, 0), (layout.layers, layout.layers - 1))[: 1 + layout.direct]:
            part = layout.split(indices)[block]
            neuron, feature = layout.pairs(indices[part], block)
            inside = (feature < layout.inputs[block]).nonzero().flatten()
            yield biases, part.start + inside, neuron[inside], feature[inside]

    def closed(self, indices: Tensor) -> Tensor:
        """Add the biases that positions bring along in raw units: ascending positions again."""
        layout, moved = self.layout, self.moved
        if not layout.bias:
            return indices
        wanted = [indices, layout.output_biases] if self.centred else [indices]
        if moved is not None:
            for biases, _, neuron, feature in self.on_inputs(indices):
                wanted.append(layout.biases(biases, neuron[moved[feature]].unique()))
        return torch.cat(wanted).unique()

    def raw_biases(self, point: Point) -> tuple[Tensor, Tensor]:
        """Give the places of biases that origins bring along, and the values that are zero in raw units."""
        layout, w = self.layout, point.w
        if not layout.bias:
            return torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.float64)
        zeros = {
            block: torch.zeros(layout.shapes[block][0], dtype=torch.float64)
            for block in (0, layout.layers - 1)
        }
        if self.middle is not None:
            zeros[layout.layers - 1] -= self.middle.double()
        if self.origins is not None:
            for biases, place, neuron, feature in self.on_inputs(w.indices):
                term = w.values[place].double() * self.origins.double()[feature]
                zeros[biases].index_add_(0, neuron, term)
        at = torch.cat([layout.biases(block, torch.arange(len(zero))) for block, zero in zeros.items()])
        zero = torch.cat(list(zeros.values()))
        held = torch.isin(at, w.indices) & (zero != 0)
        return at[held], zero[held]

    def alive(self, indices: Tensor) -> Tensor:  # bool
        """Say which positions are on a way from an input or a bias to an output."""
        layout = self.layout
        parts = layout.split(indices)
        placed = [layout.pairs(indices[part], number) for number, part in enumerate(parts)]
        awake, into = torch.ones(layout.widths[0], dtype=torch.bool), []
        for number in range(layout.layers):
            neuron, feature = placed[number]
            # A bias reads a constant, which is always awake.
            source = torch.cat([awake[: layout.inputs[number]], torch.ones(1, dtype=torch.bool)])[feature]
            into.append(source)
            awake = torch.zeros(layout.widths[number + 1], dtype=torch.bool)
            awake[neuron[source]] = True
        wanted = torch.ones(layout.widths[-1], dtype=torch.bool)
        out: list[Tensor] = []
        for number in range(layout.layers - 1, -1, -1):
            neuron, feature = placed[number]
            out.insert(0, wanted[neuron])
            if number == layout.layers - 1 and layout.fused:
                wanted = torch.ones(layout.widths[-2], dtype=torch.bool)
                continue
            used = feature[wanted[neuron]]
            wanted = torch.zeros(layout.widths[number], dtype=torch.bool)
            wanted[used[used < layout.inputs[number]]] = True
        both = [one & two for one, two in zip(into, out, strict=True)]
        if layout.direct:
            both.append(torch.ones(placed[-1][0].numel(), dtype=torch.bool))
        return torch.cat(both)
