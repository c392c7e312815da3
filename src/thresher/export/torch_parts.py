"""What torch has no module for: direct connections and a log link; `thresher export --to torch` writes these
classes out."""

from __future__ import annotations

import torch
from torch import nn


class WithDirect(nn.Module):
    """A chain of layers with direct connections beside it: the sum of what both give.

    Parameters
    ----------
    chain, direct : Module
        Both from the inputs to the outputs; direct connections are linear, without a bias.
    """

    def __init__(self, chain: nn.Module, direct: nn.Module) -> None:
        super().__init__()
        self.chain, self.direct = chain, direct

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (..., inputs) -> (..., outputs)
        """Add what the chain and the direct connections give."""
        return self.chain(x) + self.direct(x)


class Exp(nn.Module):
    """The exponential of every number: what a log link makes of outputs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Take the exponential."""
        return torch.exp(x)
