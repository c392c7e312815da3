"""Integer networks on devices: compiled or synthesised with what is installed, run, and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from thresher.errors import ParameterError
from thresher.hardware.measured import Measured
from thresher.integer import IntegerNetwork

__all__ = ["TARGETS", "Measured", "Target", "measure", "target_named"]


@dataclass(frozen=True)
class Target:
    """A device that networks can be measured on.

    Attributes
    ----------
    name : str
        As on the command line.
    module : str
        Where it is.
    options : tuple of str
        What can be chosen: "packed" tables and "used_inputs" for processors, "pipeline" for FPGAs.
    """

    name: str
    module: str
    options: tuple[str, ...]

    @property
    def measure(self) -> Callable[..., Measured]:
        """What measures a network on it."""
        found: Callable[..., Measured] = import_module(self.module).measure
        return found

    @property
    def tools(self) -> tuple[str, ...]:
        """The programs it needs."""
        return tuple(import_module(self.module).TOOLS)


TARGETS = {
    target.name: target
    for target in (
        Target("atmega328p", "thresher.hardware.atmega328p", ("packed", "used_inputs")),
        Target("cortex-m3", "thresher.hardware.cortex_m3", ("packed", "used_inputs")),
        Target("ice40", "thresher.hardware.ice40", ("pipeline",)),
        Target("xilinx", "thresher.hardware.xilinx", ("pipeline",)),
    )
}


def target_named(name: str) -> Target:
    """Return a target by its name.

    Examples
    --------
    >>> target_named("cortex-m3").options
    ('packed', 'used_inputs')
    """
    if name in TARGETS:
        return TARGETS[name]
    close = get_close_matches(name.lower(), TARGETS, 1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ParameterError(f"there is no target {name!r}.{hint} Use one of {', '.join(TARGETS)}.")


def measure(network: IntegerNetwork, X: Any, target: str, **options: bool) -> Measured:
    """Compile or synthesise a network for a device, run rows on it, and say what it needs.

    Parameters
    ----------
    network : IntegerNetwork
    X : array-like of shape (n, inputs)
        Rows.
    target : {"atmega328p", "cortex-m3", "ice40", "xilinx"}
    **options : bool
        `packed` and `used_inputs` for processors, `pipeline` for FPGAs.
    """
    device = target_named(target)
    unknown = sorted(set(options) - set(device.options))
    if unknown:
        raise ParameterError(
            f"{', '.join(unknown)} means nothing to {target}, which has {', '.join(device.options)}."
        )
    return device.measure(network, X, **options)
