"""Sums of weighted numbers as Verilog: tables of a few bits and signed digits, added one after the other.

An adder of an FPGA has a table of six inputs before each of its bits, of which five are idle. So inputs of
few bits are taken together, up to five bits of them at a time, and what they add is looked up; it costs no
more than the adder. A weight of one signed digit is a shift, whatever the width of its input. Widths are
those that the ranges of the parts prove.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from thresher.integer.ranges import signed_bits

# Bits that are looked up before an adder, and those of the first table, which has no adder before it.
TABLE_BITS, FIRST_BITS = 5, 6


class Signal(NamedTuple):
    """A number by its name, its bits, and whether the highest of them counts below zero."""

    name: str
    bits: int
    signed: bool

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest it can be."""
        if self.signed:
            return -(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1
        return 0, 2**self.bits - 1

    def weighted_bits(self, weight: int) -> list[tuple[str, int]]:
        """Return every bit with what it adds to a weighted sum."""
        values = [weight << place for place in range(self.bits)]
        if self.signed:
            values[-1] = -values[-1]
        return [(f"{self.name}[{place}]", value) for place, value in enumerate(values)]


class Part(NamedTuple):
    """What is added at once: text that has a value between `low` and `high`."""

    text: str
    low: int
    high: int
    subtracted: bool = False


def signed_digits(value: int) -> list[tuple[int, int]]:
    """Return the fewest powers of two, with signs, that add up to a number: its canonical signed digits.

    Examples
    --------
    >>> signed_digits(7)
    [(-1, 0), (1, 3)]
    """
    digits, place = [], 0
    while value:
        if value & 1:
            digit = 2 - (value & 3)
            digits.append((digit, place))
            value -= digit
        value >>= 1
        place += 1
    return digits


def sum_lines(name: str, terms: list[tuple[Signal, int]], constant: int) -> Iterator[str]:
    """Write wires that end with `name`, the sum of weighted signals and a constant.

    Parameters
    ----------
    name : str
        The wire of the sum; the others begin with it.
    terms : list of (Signal, int)
        What is summed up, each with its weight.
    constant : int
    """
    parts = _parts(terms, constant)
    first, *rest = parts
    low, high = first.low, first.high
    width = signed_bits(low, high)
    last = name if not rest else f"{name}_0"
    yield f"    wire signed [{width - 1}:0] {last} = {first.text};"
    for number, part in enumerate(rest, start=1):
        sides = (-part.high, -part.low) if part.subtracted else (part.low, part.high)
        low, high = low + sides[0], high + sides[1]
        own = signed_bits(part.low, part.high)
        following = name if number == len(rest) else f"{name}_{number}"
        yield f"    wire signed [{own - 1}:0] {name}_t{number} = {part.text};"
        sign = "-" if part.subtracted else "+"
        width = signed_bits(low, high)
        yield f"    wire signed [{width - 1}:0] {following} = {last} {sign} {name}_t{number};"
        last = following


def _parts(terms: list[tuple[Signal, int]], constant: int) -> list[Part]:
    """Split a sum into what is added at once, narrow parts first.

    Tables are moved up to where nothing in them is below zero, so that they need no sign in the adders; the
    last one, which has the widest adder, makes up for it and takes the constant in.
    """
    shifted: list[Part] = []
    pieces: list[list[tuple[str, int]]] = []
    for signal, weight in terms:
        digits = signed_digits(weight)
        chunks = -(-signal.bits // TABLE_BITS)
        if signal.bits > TABLE_BITS and len(digits) <= chunks:
            shifted += [_shifted(signal, sign, power) for sign, power in digits]
        else:
            bits = signal.weighted_bits(weight)
            pieces += [bits[start : start + TABLE_BITS] for start in range(0, len(bits), TABLE_BITS)]
    shifted.sort(key=lambda part: part.high - part.low)
    bins = _packed(pieces)
    if not bins:
        alone = constant or not shifted or shifted[0].subtracted
        return [_table([], constant), *shifted] if alone else shifted
    bins[1:] = sorted(bins[1:], key=lambda bits: sum(abs(value) for _, value in bits))
    tables = []
    for bits in bins[:-1]:
        below = sum(min(value, 0) for _, value in bits)
        tables.append(_table(bits, -below))
        constant += below
    return [*tables, _table(bins[-1], constant), *shifted]


def _shifted(signal: Signal, sign: int, power: int) -> Part:
    low, high = signal.range
    width = signal.bits + (not signal.signed) + power
    text = signal.name if signal.signed else f"$signed({{1'b0, {signal.name}}})"
    low, high = low << power, high << power
    if power:
        # A concatenation keeps no sign of its own, so it is given one.
        inner = signal.name if signal.signed else f"1'b0, {signal.name}"
        text = f"$signed({{{inner}, {power}'b{'0' * power}}})"
    assert signed_bits(low, high) <= width
    return Part(text, low, high, sign < 0)


def _packed(pieces: list[list[tuple[str, int]]]) -> list[list[tuple[str, int]]]:
    """Put pieces together up to the bits that a table may have; the first may have more."""
    bins: list[list[tuple[str, int]]] = []
    for piece in sorted(pieces, key=len, reverse=True):
        for number, content in enumerate(bins):
            if len(content) + len(piece) <= (TABLE_BITS if number else FIRST_BITS):
                content.extend(piece)
                break
        else:
            bins.append(list(piece))
    return bins


def _table(bits: list[tuple[str, int]], constant: int) -> Part:
    """Write a table of what some bits add, and a constant."""
    low = constant + sum(min(value, 0) for _, value in bits)
    high = constant + sum(max(value, 0) for _, value in bits)
    width = signed_bits(low, high)

    def chosen(place: int, total: int) -> str:
        if place < 0:
            return f"{'-' if total < 0 else ''}{width}'sd{abs(total)}"
        bit, value = bits[place]
        return f"({bit} ? {chosen(place - 1, total + value)} : {chosen(place - 1, total)})"

    return Part(chosen(len(bits) - 1, constant), low, high)
