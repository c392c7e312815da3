"""A network as a torch module."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from thresher.export.sparse_linear import SparseLinear
from thresher.network.layer import Layer
from thresher.network.structure import Structure

# Above this share of nonzeros a dense product is quicker, and holds hardly more.
DENSE_ABOVE = 0.25


def torch_module(network: Structure) -> nn.Sequential:
    """Build the module: ReLU between layers, none after the last, and no link.

    Layers of which more than a quarter is nonzero are plain ``nn.Linear``; others hold their nonzeros alone.
    """
    modules: list[nn.Module] = []
    for number, layer in enumerate(network.layers):
        if number > 0:
            modules.append(nn.ReLU())
        dense = layer.weights.nnz > DENSE_ABOVE * layer.inputs * layer.neurons
        modules.append(_dense(layer) if dense else _sparse(layer))
    return nn.Sequential(*modules)


def _dense(layer: Layer) -> nn.Linear:
    values = torch.from_numpy(np.ascontiguousarray(layer.weights.toarray().T))
    linear = nn.Linear(layer.inputs, layer.neurons, dtype=values.dtype)
    with torch.no_grad():
        linear.weight.copy_(values)
        linear.bias.copy_(torch.from_numpy(layer.bias))
    return linear


def _sparse(layer: Layer) -> SparseLinear:
    # (neurons, inputs) by rows, as torch keeps weights.
    entries = layer.weights.T.tocsr().tocoo()
    neurons, inputs = entries.coords
    return SparseLinear(
        layer.inputs,
        layer.neurons,
        torch.from_numpy(np.stack([neurons, inputs]).astype(np.int64)),
        torch.from_numpy(entries.data.copy()),
        torch.from_numpy(layer.bias.copy()),
    )
