"""The live part of a masked network: what training can move, cut out so that it trains faster.

A weight that comes from nothing, or leads nowhere, has no gradient; Adam, started afresh, leaves it where it
is. Training the rest alone is therefore the same but for rounding, and much cheaper once most weights are
switched off.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from thresher.baselines.masked import MaskedMLP
from thresher.baselines.run import Problem

# Below this size a step costs little but overhead, and a part that is hardly smaller is not worth a copy.
SMALLEST = 10_000
SHARE = 0.7


def live_units(model: MaskedMLP) -> list[Tensor]:
    """Say which inputs, neurons of each layer, and outputs take part in the answer.

    Returns
    -------
    list of tensors
        Ascending positions; at least one of each kind, and always all outputs.

    Examples
    --------
    >>> model = MaskedMLP((3, 2, 1), bias=False, generator=torch.Generator())
    >>> model.set_active(torch.tensor([1, 2, 3, 6]))  # neuron 1 is fed by input 0, but feeds nothing
    >>> [units.tolist() for units in live_units(model)]
    [[1, 2], [0], [0]]
    """
    patterns = [_weights(model, number) > 0 for number in range(len(model.layers))]
    awake = [torch.ones(model.widths[0], dtype=torch.bool)]
    for layer, pattern in zip(model.layers, patterns, strict=True):
        fed = (pattern & awake[-1]).any(dim=1)
        awake.append(fed | (model.mask[layer][pattern.numel() :] > 0) if model.bias else fed)
    reaching = [torch.ones(model.widths[-1], dtype=torch.bool)]
    for pattern in reversed(patterns):
        reaching.insert(0, (pattern & reaching[0][:, None]).any(dim=0))
    live = [one & two for one, two in zip(awake[:-1], reaching[:-1], strict=True)] + reaching[-1:]
    # A layer needs a neuron, even if nothing passes through it.
    return [
        (units if units.any() else units.index_fill(0, torch.tensor(0), True)).nonzero()[:, 0]
        for units in live
    ]


def live_part(model: MaskedMLP, problem: Problem) -> tuple[MaskedMLP, Problem, Tensor] | None:
    """Cut out the live part, if it is so much smaller that this pays.

    Returns
    -------
    MaskedMLP, Problem, tensor
        The part, the problem on the inputs that it uses, and where its parameters are in the whole vector.
    None
        If the whole network should be trained.
    """
    if model.size < SMALLEST:
        return None
    units = live_units(model)
    widths = tuple(len(part) for part in units)
    # Its first weights are overwritten at once.
    part = MaskedMLP(widths, model.bias, torch.Generator())
    if part.size > SHARE * model.size:
        return None
    places = []
    for number, layer in enumerate(model.layers):
        neurons, inputs = units[number + 1], units[number]
        places.append((layer.start + neurons[:, None] * model.widths[number] + inputs).reshape(-1))
        if model.bias:
            places.append(layer.stop - model.widths[number + 1] + neurons)
    where = torch.cat(places)
    part.flat.copy_(model.flat[where])
    part.mask.copy_(model.mask[where])
    return part, replace(problem, X=problem.X.index_select(1, units[0])), where


def _weights(model: MaskedMLP, number: int) -> Tensor:  # (neurons, inputs)
    """Give the mask of a layer's weights, without its biases."""
    inputs, neurons = model.widths[number], model.widths[number + 1]
    return model.mask[model.layers[number]][: inputs * neurons].view(neurons, inputs)
