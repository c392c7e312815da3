"""Inputs as a device sees them: whole numbers of a few bits, and what they stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from thresher.errors import ParameterError

# Bits of one input: a port or an array element of a device.
MOST_BITS = 16

# Columns whose largest values differ by more than this share no scale by custom: small ones would get too few
# steps of a weight.
ALIKE = 16.0


@dataclass(frozen=True, eq=False)
class InputCoding:
    """How columns become codes: ``code = round((x - offset) / scale)``, kept to the range of the kind.

    Parameters
    ----------
    kind : str
        ``uint1`` to ``uint16`` or ``int2`` to ``int16``, such as ``"uint8"`` for pixels and ``"int16"`` for
        an analogue-to-digital converter.
    scale : float or array-like of shape (inputs,)
        What one step of a code is worth.
    offset : float or array-like of shape (inputs,)
        What the code 0 stands for.

    Examples
    --------
    >>> thermometer = InputCoding("uint8", scale=0.5, offset=-40.0)
    >>> thermometer.codes(np.array([[21.3], [-50.0]]))
    array([[123],
           [  0]])
    """

    kind: str
    scale: Any = 1.0
    offset: Any = 0.0

    def __post_init__(self) -> None:
        code_range(self.kind)
        for name in ("scale", "offset"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.ndim > 1 or not np.isfinite(values).all():
                raise ParameterError(
                    f"{name} of the inputs should be a finite number, or one for each column."
                )
            object.__setattr__(self, name, values)
        if not (self.scale > 0).all():
            raise ParameterError(
                "scale of the inputs should be above zero: it is what one step of a code is worth."
            )

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest code."""
        return code_range(self.kind)

    @property
    def bits(self) -> int:
        """Bits of one code."""
        return int(self.kind.lstrip("uint"))

    @property
    def signed(self) -> bool:
        """Whether codes can be below zero."""
        return self.range[0] < 0

    @property
    def plain(self) -> bool:
        """Whether codes are the numbers themselves."""
        return bool((self.scale == 1).all() and (self.offset == 0).all())

    def restricted(self, columns: np.ndarray) -> InputCoding:
        """Return the coding of some columns."""

        def some(values: np.ndarray) -> np.ndarray:
            return values[columns] if values.ndim else values

        return InputCoding(self.kind, some(self.scale), some(self.offset))

    def codes(self, values: np.ndarray) -> np.ndarray:
        """Return the codes of values (n, columns) as int64."""
        return np.clip(self._whole(values), *self.range).astype(np.int64)

    def outside(self, values: np.ndarray) -> int:
        """Count the values that no code reaches, which are kept to the nearest one."""
        whole, (low, high) = self._whole(values), self.range
        return int(((whole < low) | (whole > high)).sum())

    def _whole(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.rint((values - self.offset) / self.scale)


def code_range(kind: str) -> tuple[int, int]:
    """Return the least and the largest code of a kind, or say that there is no such kind.

    Examples
    --------
    >>> code_range("uint8"), code_range("int16")
    ((0, 255), (-32768, 32767))
    """
    found = re.fullmatch(r"(u?)int([1-9]\d?)", kind) if isinstance(kind, str) else None
    bits = int(found[2]) if found else 0
    signed = not (found and found[1])
    if not found or not 1 + signed <= bits <= MOST_BITS:
        raise ParameterError(
            f"inputs={kind!r}, but a device sees uint1 to uint{MOST_BITS} or int2 to int{MOST_BITS}: use "
            "'uint8' for pixels, 'int16' for counts, an InputCoding with scale and offset, or 'auto'."
        )
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def chosen_coding(wanted: str | InputCoding, values: np.ndarray, movable: np.ndarray) -> InputCoding:
    """Choose how columns are coded, by calibration rows.

    Parameters
    ----------
    wanted : str or InputCoding
        A coding is taken as it is. A kind keeps whole numbers that it can hold as they are, and fills its
        range with others, column by column. "auto" keeps whole numbers of 8 or 16 bits, and codes others as
        "int16".
    values : ndarray of shape (n, columns)
        Calibration rows.
    movable : ndarray of shape (columns,)
        Whether every neuron that reads the column has a bias, so that an offset costs none.
    """
    if isinstance(wanted, InputCoding):
        return wanted
    low, high = values.min(axis=0), values.max(axis=0)
    whole = bool((values == np.rint(values)).all())
    if wanted == "auto":
        largest = np.maximum(np.abs(low), np.abs(high))
        alike = largest.max() <= ALIKE * largest[largest > 0].min(initial=largest.max())
        for kind in ("uint8", "int16", "uint16") if whole and alike else ():
            if _holds(kind, low, high):
                return InputCoding(kind)
        return _filled("int16", low, high, movable)
    if whole and _holds(wanted, low, high):
        return InputCoding(wanted)
    return _filled(wanted, low, high, movable)


def _holds(kind: str, low: np.ndarray, high: np.ndarray) -> bool:
    least, most = code_range(kind)
    return bool(low.min() >= least and high.max() <= most)


def _filled(kind: str, low: np.ndarray, high: np.ndarray, movable: np.ndarray) -> InputCoding:
    """Give each column the step that makes its calibration rows fill the range of the kind.

    Columns that an offset would give a neuron its first bias begin at zero, and reach below it where codes
    do.
    """
    least, most = code_range(kind)
    moved = movable & (high > low)
    scale = np.where(moved, (high - low) / (most - least), np.maximum(high, -low if least else high) / most)
    scale = np.where(scale > 0, scale, 1.0)
    offset = np.where(moved, low - least * scale, 0.0)
    return InputCoding(kind, scale, offset)
