"""A device that is not there: tensors that refuse to meet those of the host, and count what goes back to it.

No graphics processor is at hand, so this stands in for one. A tensor made while it is in use holds one of the
host out of reach: whatever torch does with it is done with what it holds, and wrapped again. Tensors of the host
and arrays that meet one are refused, as a device would refuse them, or copy them without being asked.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map_only

HOST = torch.device("cpu")
# The name that torch keeps for devices it does not know.
ELSEWHERE = torch.device("privateuseone:0")

# What gives Python numbers, for which the processor waits until the device has come so far.
NUMBERS = ("item", "tolist", "__bool__", "__float__", "__int__", "__index__")


class Traffic(TorchFunctionMode):
    """Makes tensors elsewhere where that is asked for, and counts what crosses, by the module that asks.

    Attributes
    ----------
    out, back : list of (str, int)
        The module and the numbers of every copy to the device, and of every copy from there.
    read : Counter
        How many numbers each module has read one by one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.out: list[tuple[str, int]] = []
        self.back: list[tuple[str, int]] = []
        self.read: Counter[str] = Counter()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Do what torch is asked for."""
        name, kwargs = getattr(func, "__name__", str(func)), dict(kwargs or {})
        leaves = tree_leaves((args, kwargs))
        there = [leaf for leaf in leaves if isinstance(leaf, Elsewhere)]
        if name in ("to", "cpu"):
            goal = (
                HOST
                if name == "cpu"
                else next((leaf for leaf in leaves if isinstance(leaf, torch.device)), None)
            )
            if goal == ELSEWHERE and not there:
                self.out.append((_asking(), args[0].numel()))
                return Elsewhere.of(args[0].clone())
            if goal == HOST and there:
                self.back.append((_asking(), there[0].held.numel()))
                return there[0].held.clone()
        wanted = kwargs.get("device")
        if not there and (wanted is None or torch.device(wanted) != ELSEWHERE):
            return func(*args, **kwargs)
        if func == Tensor.device.__get__:  # type: ignore[attr-defined]
            return ELSEWHERE
        if torch.device(kwargs.pop("device", None) or ELSEWHERE) != ELSEWHERE or name in ("numpy", "__array__", "__iter__"):
            raise RuntimeError(f"{name} of a tensor that is not on the host")
        host = (Tensor, np.ndarray, torch.Generator)
        if any(isinstance(leaf, host) and not isinstance(leaf, Elsewhere) for leaf in leaves):
            raise RuntimeError(f"{name} meets something of the host and something of the device")
        if name in NUMBERS:
            self.read[_asking()] += there[0].held.numel()
        args, kwargs = tree_map_only(Elsewhere, lambda leaf: leaf.held, (args, kwargs))
        found = func(*args, **kwargs)
        same = {id(leaf.held): leaf for leaf in there}
        return tree_map_only(
            Tensor, lambda leaf: same[id(leaf)] if id(leaf) in same else Elsewhere.of(leaf), found
        )


class Elsewhere(Tensor):
    """A tensor on the device that is not there."""

    held: Tensor

    @classmethod
    def of(cls, held: Tensor) -> Elsewhere:
        """Put a tensor of the host there."""
        made = Tensor._make_subclass(cls, torch.empty(0))  # type: ignore[attr-defined]
        made.held = held
        return made

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Refuse what is asked for where the device is not in use."""
        raise RuntimeError(f"{func} is asked of a device that is not in use")


def _asking() -> str:
    """Name the module of the project that asks."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not frame.f_globals["__name__"].startswith("thresher"):
        frame = frame.f_back
    return frame.f_globals["__name__"]


@contextmanager
def elsewhere() -> Iterator[Traffic]:
    """Let there be the device for a while, and count what crosses."""
    with Traffic() as traffic:
        yield traffic
