"""The working features of a search: all of them, or those that say most about the targets."""

from __future__ import annotations

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.objective.gated import GatedOperator
from thresher.objective.linear import Objective


def working_features(objective: Objective, room: int, budget: int) -> Tensor:
    """Choose the features a student may use when it may hold `room` weights.

    A feature is judged by its best half: how much ``relu(x_j)`` or ``relu(-x_j)``, the 1-sparse gates of the
    theory, correlates with the slope of the loss at the zero network.
    """
    operator = objective.operator
    assert isinstance(operator, GatedOperator)
    most = max(16, min(operator.features, room // max(2, min(2 * operator.neurons, budget // 2, 128))))
    if operator.features <= most:
        return torch.arange(operator.features)
    scores = _halves(objective)
    if operator.design.bias:
        scores[-1] = torch.inf
    return largest(scores.float(), most)


def _halves(objective: Objective) -> Tensor:  # (features,)
    operator = objective.operator
    assert isinstance(operator, GatedOperator)
    design = operator.design
    slope = objective.slope(torch.zeros_like(objective.y))
    sums = torch.zeros(4, design.columns, dtype=torch.float64)
    for start, stop, chunk in design.chunks(design.columns):
        part = slope[start:stop]
        up, down = chunk.clamp(min=0), (-chunk).clamp_(min=0)
        sums[0] += (part @ up).double()
        sums[1] += up.square_().sum(0).double()
        sums[2] += (part @ down).double()
        sums[3] += down.square_().sum(0).double()
    tiny = 1e-300
    scores = torch.maximum(sums[0].square() / (sums[1] + tiny), sums[2].square() / (sums[3] + tiny))
    return torch.cat([scores, torch.zeros(int(design.bias), dtype=torch.float64)])
