"""A device that is not there: tensors that refuse to meet those of the host, and count what goes back to it.

No graphics processor is at hand, so this stands in for one. A tensor made while it is in use holds one of the
host out of reach: whatever torch does with it is done with what it holds, and wrapped again. Tensors of the
host and arrays that meet one are refused, where a device would refuse them or copy them without being asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

HOST = torch.device("cpu")
# The name that torch keeps for devices it does not know.
ELSEWHERE = torch.device("privateuseone:0")

# What gives Python numbers, for which the processor waits until the device has come so far.
DEVICE = Tensor.device.__get__  # type: ignore[attr-defined]
NUMBERS = ("item", "tolist", "__bool__", "__float__", "__int__", "__index__")


class Crossing(NamedTuple):
    """A copy between host and device: the module that makes it, the one that asks, how many numbers."""

    module: str
    asked: str
    numbers: int


class Traffic(TorchFunctionMode):
    """Makes tensors elsewhere where that is asked for, and counts what crosses.

    Attributes
    ----------
    out, back : list of Crossing
        Every copy to the device, and every copy from there.
    read : list of int
        How many numbers Python was given each time it asked for some.
    """

    def __init__(self) -> None:
        super().__init__()
        self.out: list[Crossing] = []
        self.back: list[Crossing] = []
        self.read: list[int] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Do what torch is asked for."""
        kwargs = kwargs or {}
        there, strange = _parts((args, kwargs))
        name = getattr(func, "__name__", "")
        if name in ("to", "cpu"):
            goal = HOST if name == "cpu" else next((a for a in args if isinstance(a, torch.device)), None)
            if goal == ELSEWHERE and not there:
                self.out.append(_crossing(args[0]))
                return Elsewhere.of(args[0].clone())
            if goal == HOST and there:
                self.back.append(_crossing(args[0].held))
                return args[0].held.clone()
        wanted = kwargs.get("device")
        if wanted is not None:
            wanted = torch.device(wanted)
        if not there and wanted != ELSEWHERE:
            return func(*args, **kwargs)
        if func == DEVICE:
            return ELSEWHERE
        if wanted not in (None, ELSEWHERE) or name in ("numpy", "__array__", "__iter__"):
            raise RuntimeError(f"{name} of a tensor that is not on the host")
        if strange:
            raise RuntimeError(f"{name} meets something of the host and something of the device")
        if name in NUMBERS:
            self.read.append(args[0].held.numel())
        if wanted is not None:
            kwargs = {key: value for key, value in kwargs.items() if key != "device"}
        same = {id(one.held): one for one in there}
        return _back_there(func(*_held(args), **_held(kwargs)), same)


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


def _parts(given: Any) -> tuple[list[Elsewhere], bool]:
    """Find the tensors that are elsewhere, and say whether anything of the host is among them."""
    there: list[Elsewhere] = []
    strange, left = False, [given]
    while left:
        part = left.pop()
        if isinstance(part, Elsewhere):
            there.append(part)
        elif isinstance(part, (tuple, list)):
            left.extend(part)
        elif isinstance(part, dict):
            left.extend(part.values())
        else:
            strange |= isinstance(part, (Tensor, np.ndarray, torch.Generator))
    return there, strange


def _held(given: Any) -> Any:
    """Give what torch is asked for with the tensors that are held."""
    if isinstance(given, Elsewhere):
        return given.held
    if isinstance(given, (tuple, list)):
        return type(given)(_held(part) for part in given)
    return {key: _held(part) for key, part in given.items()} if isinstance(given, dict) else given


def _back_there(found: Any, same: dict[int, Elsewhere]) -> Any:
    """Put what torch gives elsewhere; what it gives back as it came stays what it was."""
    return tree_map_only(
        Tensor, lambda part: same[id(part)] if id(part) in same else Elsewhere.of(part), found
    )


def _crossing(tensor: Tensor) -> Crossing:
    """Say who copies a tensor."""
    names, frame = [], sys._getframe(1)
    while frame.f_back is not None and len(names) < 2:
        name = frame.f_globals["__name__"]
        if name.startswith("thresher") and name not in names:
            names.append(name)
        frame = frame.f_back
    return Crossing(names[0], names[-1], tensor.numel())
