"""Where torch computes, and the one way in and out.

A device is in use for a while; torch's factory functions then make tensors there. Rows, networks and files
are NumPy's and stay on the host: what passes between is turned by the two functions here, nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

import numpy as np
import torch
from torch import Tensor

# What a machine is asked for when it has to be said what it has.
KINDS = ("cpu", "cuda", "xpu", "mps")

HOST = torch.device("cpu")

# Asking torch for its default device takes longer than turning a small array into a tensor.
_in_use: ContextVar[torch.device] = ContextVar("device", default=HOST)


@contextmanager
def using(device: str | torch.device) -> Iterator[None]:
    """Compute on a device for a while."""
    chosen = torch.device(device)
    token = _in_use.set(chosen)
    try:
        # A context that changes nothing would still cost every call of torch some microseconds.
        with nullcontext() if torch.get_default_device() == chosen else chosen:
            yield
    finally:
        _in_use.reset(token)


def on_host() -> bool:
    """Say whether the device in use is the processor, whose memory is that of arrays."""
    return _in_use.get().type == HOST.type


def from_host(array: np.ndarray) -> Tensor:
    """Turn an array into a tensor on the device in use; on the host they share memory."""
    return torch.from_numpy(array) if on_host() else torch.from_numpy(array).to(_in_use.get())


def to_host(tensor: Tensor) -> np.ndarray:
    """Turn a tensor into an array; on the host they share memory."""
    return tensor.cpu().numpy()


def usable(device: object) -> bool:
    """Say whether this machine has a device, one that holds numbers in float64 and gives them back.

    Examples
    --------
    >>> usable("cpu"), usable("tpu"), usable("meta"), usable(7)
    (True, False, False, False)
    """
    if not isinstance(device, (str, torch.device)):
        return False
    try:
        return float(torch.ones(1, dtype=torch.float64, device=device)) == 1
    except (RuntimeError, TypeError, AssertionError, ImportError):
        return False


def devices() -> list[str]:
    """Name the kinds of devices of this machine that can be used."""
    return [kind for kind in KINDS if usable(kind)]
