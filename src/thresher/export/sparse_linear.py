"""A linear layer that holds its nonzeros alone; `thresher export --to torch` writes this class out."""

from __future__ import annotations

import torch
from torch import nn


class SparseLinear(nn.Module):
    """A linear layer that holds its nonzeros alone, and trains no others.

    Parameters
    ----------
    inputs, neurons : int
        How many numbers come in and go out.
    indices : Tensor of shape (2, nonzeros)
        Neuron and input of every nonzero, sorted.
    values : Tensor of shape (nonzeros,)
    bias : Tensor of shape (neurons,), or None for none
    """

    def __init__(
        self,
        inputs: int,
        neurons: int,
        indices: torch.Tensor,
        values: torch.Tensor,
        bias: torch.Tensor | None,
    ) -> None:
        super().__init__()
        self.inputs, self.neurons = inputs, neurons
        self.indices: torch.Tensor
        self.register_buffer("indices", indices)
        self.values = nn.Parameter(values)
        self.bias = None if bias is None else nn.Parameter(bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (..., inputs) -> (..., neurons)
        """Multiply by the nonzeros and add the bias."""
        # Checked each time, since a state that was loaded may hold other indices.
        weights = torch.sparse_coo_tensor(
            self.indices,
            self.values,
            (self.neurons, self.inputs),
            check_invariants=True,
            is_coalesced=True,
        )
        rows = x.reshape(-1, self.inputs)
        sums = torch.sparse.mm(weights, rows.T).T.reshape(*x.shape[:-1], self.neurons)
        return sums if self.bias is None else sums + self.bias

    def extra_repr(self) -> str:
        """Say how large the layer is."""
        return f"{self.inputs}, {self.neurons}, nonzeros={self.values.numel()}"
