"""A network as a torch module."""

from __future__ import annotations

import numpy as np
import torch
from scipy import sparse
from torch import nn

from thresher.export.sparse_linear import SparseLinear
from thresher.export.torch_parts import Exp, WithDirect
from thresher.network.structure import Structure

# Above this share of nonzeros a dense product is quicker, and holds hardly more.
DENSE_ABOVE = 0.25


def torch_module(network: Structure) -> nn.Sequential:
    """Build the module: ReLU between layers, none after the last, and of links the logarithm's alone.

    Layers of which more than a quarter is nonzero are plain ``nn.Linear``; others hold their nonzeros alone.
    Direct connections are a layer without bias, beside the chain of layers in a ``WithDirect``.
    """
    modules: list[nn.Module] = []
    for number, layer in enumerate(network.layers):
        if number > 0:
            modules.append(nn.ReLU())
        modules.append(_linear(layer.weights, layer.bias))
    if network.direct is not None:
        modules = [WithDirect(nn.Sequential(*modules), _linear(network.direct, None))]
    if network.link == "log":
        modules.append(Exp())
    return nn.Sequential(*modules)


def _linear(
    weights: sparse.csr_array,  # (inputs, neurons)
    bias: np.ndarray | None,  # (neurons,)
) -> nn.Linear | SparseLinear:
    inputs, neurons = weights.shape
    own = None if bias is None else torch.from_numpy(bias.copy())
    if weights.nnz <= DENSE_ABOVE * inputs * neurons:
        # (neurons, inputs) by rows, as torch keeps weights.
        entries = weights.T.tocsr().tocoo()
        indices = torch.from_numpy(np.stack(entries.coords).astype(np.int64))
        return SparseLinear(inputs, neurons, indices, torch.from_numpy(entries.data.copy()), own)
    values = torch.from_numpy(np.ascontiguousarray(weights.toarray().T))
    linear = nn.Linear(inputs, neurons, bias=own is not None, dtype=values.dtype)
    with torch.no_grad():
        linear.weight.copy_(values)
        if own is not None:
            linear.bias.copy_(own)
    return linear
