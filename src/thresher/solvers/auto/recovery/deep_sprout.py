"""New paths through a deep network: neurons of the first layer that read one input, where they explain most.

A gradient sees weights of neurons that are there. A path through a neuron that is not there has two weights
that are zero, and so no gradient. But ``relu(x_j)`` and ``relu(-x_j)`` can be compared with what is
unexplained, as in the pursuit that grows networks of one hidden layer.
"""

from __future__ import annotations

import torch
from torch import Tensor

from thresher.objective.data import Batch
from thresher.objective.relu import Relu
from thresher.objective.running import Pass, Point
from thresher.solvers.auto.recovery.deep_merge import held, written_out


def sprouted(objective: Relu, point: Point, count: int) -> Point:
    """Add the paths that explain most of what is left, to neurons of the second layer or past them.

    Parameters
    ----------
    objective : Relu
        Of a network of two hidden layers or more.
    point : Point
    count : int
        Paths to add; fewer where the layers have no empty neurons left.
    """
    layout = objective.layout
    blocks = written_out(layout, point)
    signs = None if point.signs is None else point.signs.clone()
    pull, size = _explained(objective, point)
    gain = pull.square() / size.clamp(min=1e-12 * float(size.max()) + 1e-300)
    best = gain.flatten().argsort(descending=True, stable=True)[:count]
    empty = [(block == 0).all(1).nonzero().flatten().tolist() for block in blocks[:2]]
    made: dict[int, int] = {}
    for place in best.tolist():
        source, target = divmod(place, gain.shape[1])
        past = target == layout.widths[2]
        if float(gain[source, target]) <= 0 or (past and not empty[1]):
            continue
        if source not in made:
            if not empty[0]:
                continue
            made[source] = empty[0].pop(0)
            side, feature = divmod(source, layout.widths[0])
            blocks[0][made[source], feature] = -1.0 if side else 1.0
        step = -float(pull[source, target] / size[source, target])
        if past and signs is not None:
            target = empty[1].pop(0)
            signs[target], step = (1.0, step) if step > 0 else (-1.0, -step)
        blocks[1][target, made[source]] = step
    return held(layout, blocks, signs)


def _explained(objective: Relu, point: Point) -> tuple[Tensor, Tensor]:  # (2 inputs, neurons + 1) each
    """Give the slope along every path and twice its curvature.

    A row for ``relu(x_j)`` and then one for ``relu(-x_j)`` of every input; a column for each neuron of the
    second layer and, where the output sums that layer up, the last for a new neuron of it.
    """
    running, layout = objective.run(point), objective.layout

    def each(batch: Batch) -> tuple[Tensor, ...]:
        run = running.forward(batch.X)
        slope, root = objective.slope(run.output, batch), batch.share.sqrt()
        halves = torch.cat([batch.X.clamp(min=0), batch.X.neg().clamp(min=0)], 1)
        squares, size = halves.square(), torch.zeros(1, dtype=slope.dtype)
        for output in range(slope.shape[1]):
            one = torch.zeros_like(slope)
            one[:, output] = root
            size = size + squares.T @ reached(run, one).square()
        return halves.T @ reached(run, slope), size

    def reached(run: Pass, slope: Tensor) -> Tensor:  # (rows, neurons + 1)
        """Give the derivatives with respect to the sums of the second layer, of a slope of the outputs."""
        (delta,) = [part for number, _, part in running.deltas(run, slope) if number == 1]
        return torch.cat([delta, slope], 1) if layout.fused and layout.layers == 3 else delta

    pull, size = objective.data.total(each, max(layout.widths))
    return pull, size
