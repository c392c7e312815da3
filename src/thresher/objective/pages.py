"""Memory in pages of its own, for what is large and short-lived."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from thresher.device import on_host
from thresher.memory import own_pages

# Numbers in one chunk of intermediate results: 2 MB in float32, which stays near the processor.
CHUNK_NUMBERS = 2**19


def zeros(*shape: int, dtype: torch.dtype) -> Tensor:
    """Make a tensor of zeros, a large one in pages: in the heap it would leave a gap."""
    return pages(*shape, dtype=dtype) if math.prod(shape) > CHUNK_NUMBERS else torch.zeros(shape, dtype=dtype)


def pages(*shape: int, dtype: torch.dtype) -> Tensor:
    """Make a tensor of zeros in memory of its own, which goes back to the system as soon as it is let go.

    Memory from the heap may stay: once something small has settled in a large gap, the next large tensor no
    longer fits, and the heap grows.
    """
    numbers = math.prod(shape)
    if numbers == 0 or not on_host():
        return torch.zeros(shape, dtype=dtype)
    return torch.frombuffer(own_pages(numbers * dtype.itemsize), dtype=dtype).view(shape)
