"""The curvature of an objective on a support as a linear map: products with it, and its diagonal.

Nothing here is as large as the weights squared. A product takes one pass over the rows: forwards with the
derivative along a direction, then backwards (Pearlmutter's and Schraudolph's ``J' (H (J v))``).
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.objective.running import Running


class Curvature:
    """The matrix of Gauss and Newton, ``J' H J``, and the penalty's, at the weights held.

    Parameters
    ----------
    objective : Relu
    running : Running
        Where.
    rough : bool
        Whether products are computed in float32; the gradient and all sums over chunks have the precision of
        the objective.
    """

    def __init__(self, objective: Relu, running: Running, rough: bool = False) -> None:
        self.objective, self.running = objective, running
        self.dtype = torch.float32 if rough else objective.data.dtype
        self.light = objective.run(running.point.to(self.dtype)) if rough else running
        self.penalty = objective.alpha * running.penalised.double()

    @cached_property
    def gradient(self) -> Tensor:  # (held,)
        """The derivative of the objective."""
        running = self.running

        def each(batch: Batch) -> tuple[Tensor, ...]:
            run = running.forward(batch.X)
            return (running.gradient(run, self.objective.slope(run.output, batch)),)

        (summed,) = self.objective.data.total(each, max(self.objective.layout.widths[1:]))
        return summed + self.penalty * running.values.double()

    @cached_property
    def diagonal(self) -> Tensor:  # (held,)
        """The diagonal: squares of derivatives add up as derivatives do, from squared inputs and deltas."""
        light = self.light

        def each(batch: Batch) -> tuple[Tensor, ...]:
            run = light.forward(batch.X.to(self.dtype))
            roots = self._roots(run.output, batch)
            out, one = torch.zeros_like(light.values), torch.empty_like(light.values)
            for number in range(roots.shape[1]):
                for block, fed, delta in light.deltas(run, roots[:, number].contiguous()):
                    if light.blocks[block].held:
                        part = one[light.slices[block]]
                        light.blocks[block].gradient(fed.square(), delta.square(), part)
                        out[light.slices[block]] += part
            return (out,)

        (summed,) = self.objective.data.total(each, max(self.objective.layout.widths[1:]))
        return summed + self.penalty

    def times(self, along: Tensor) -> Tensor:  # (held,) -> (held,)
        """Multiply the curvature with a vector."""
        light = self.light
        moved = light.at(along.to(self.dtype))

        def each(batch: Batch) -> tuple[Tensor, ...]:
            run = light.forward(batch.X.to(self.dtype))
            roots = self._roots(run.output, batch)
            change = roots @ light.tangent(run, moved)[:, :, None]
            return (light.gradient(run, (roots.transpose(1, 2) @ change)[:, :, 0]),)

        (summed,) = self.objective.data.total(each, max(self.objective.layout.widths[1:]))
        return summed + self.penalty * along

    def _roots(self, output: Tensor, batch: Batch) -> Tensor:  # (rows, outputs, outputs)
        """Give a root of every row's second derivative with respect to its outputs, R with ``H = R'R``."""
        rows, outputs = output.shape
        whole = torch.eye(outputs, dtype=output.dtype).expand(rows, -1, -1)
        share = batch.share.sqrt().to(output.dtype)
        return self.objective.loss.scaled(output, batch.y, whole) * share[:, None, None]
