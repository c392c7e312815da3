"""Dictionaries of gates, and the conditions under which no other weights over one do as well.

Where all columns of a dictionary are independent, no other weights give the same output. Where they are not,
as with gates and their complements, over unit columns, with S the support and A_S of full rank, each of these
proves that the weights are the only ones with the smallest L1 norm among all that give the same output:

- Tropp's exact-recovery condition, ``max_{j not in S} ||A_S^+ a_j||_1 < 1``: for any weights on S;
- Fuchs' dual vector, ``q = A_S (A_S' A_S)^-1 sign(w)`` with ``max_{j not in S} |a_j' q| < 1``: for these
  signs.

Neither says that nothing sparser exists: two nearly opposite columns with large weights may do with fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError, ParameterError
from thresher.theory.enumeration import enumerate_patterns
from thresher.theory.fused import Fused
from thresher.theory.patterns import MEMORY_LIMIT, Patterns, joined
from thresher.theory.sampling import sample_patterns
from thresher.theory.spectra import ROUNDOFF, Spectrum, spectrum

NAMES = ("own", "opposite", "one-sided", "one-sparse", "two-sparse", "sampled")

# Gates in the dictionary "sampled".
SAMPLED = 1000

# Multiply-adds beyond which Tropp's condition is left open: a minute or so on one core.
TROPP_WORK = 1e12

# Columns of a dictionary whose Gram matrix is still formed whole.
WHOLE_COLUMNS = 1500

# Groups of rows rounded alike that are added up one by one.
GROUPS = 4

# Numbers in one block of products.
BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Dictionary:
    """A stated set of gates; its columns are every gate with every input.

    Attributes
    ----------
    name, description : str
    patterns : Patterns
        Gates beyond the network's own, which are always in the dictionary.
    columns : int
        Columns of the dictionary, the support's included.
    """

    name: str
    description: str
    patterns: Patterns | None
    columns: int


def dictionary_of(
    name: str | Patterns,
    fused: Fused,
    seed: int,
    memory_limit: int = MEMORY_LIMIT,
    others: Patterns | None = None,
) -> Dictionary:
    """Make a dictionary by name, or of patterns at hand, around the gates of a network.

    Parameters
    ----------
    name : {"own", "opposite", "one-sided", "one-sparse", "two-sparse", "sampled"} or Patterns
        The network's own gates alone, or together with: their complements; one gate for each feature, of
        those of its two signs; both of them; the gates of all generators with at most two nonzeros; 1,000
        sampled as in appendix E; given ones. Generators have no bias.
    fused : Fused
    seed, memory_limit : int
    others : Patterns, optional
        Gates of the network that lead to other outputs: its own as well.
    """
    own, width = fused.patterns, fused.inputs.shape[1]
    if others is not None:
        own = joined(Patterns(own.bits, own.rows), others)
    rows = fused.inputs[:, :-1] if fused.biased else fused.inputs
    extra: Patterns | None
    if isinstance(name, Patterns):
        if name.rows != len(rows):
            raise DataError(
                f"the dictionary's patterns have {name.rows} rows, but the data has {len(rows)}: use the "
                "same rows."
            )
        label, extra = "given", name
    elif name not in NAMES:
        raise ParameterError(f"dictionary={name!r}, but it must be Patterns or one of {', '.join(NAMES)}.")
    else:
        label = name
        if name == "own":
            extra = None if others is None else own
        elif name == "opposite":
            extra = own.opposite()
        elif name == "one-sided":
            extra = _one_sided(enumerate_patterns(rows, 1, memory_limit), own)
        elif name == "sampled":
            largest = max(1, int(np.bincount(fused.neuron[fused.neuron >= 0], minlength=1).max()))
            extra = sample_patterns(rows, SAMPLED, 1, min(largest, rows.shape[1]), seed, memory_limit)
        else:
            extra = enumerate_patterns(rows, 1 if name == "one-sparse" else 2, memory_limit)
    if others is not None and extra is not None:
        extra = joined(own, Patterns(extra.bits, extra.rows))
    beyond = None if extra is None else _beyond(extra, fused.patterns)
    count = fused.patterns.count + (0 if beyond is None else beyond.count)
    inputs = f"{width} inputs{' (a constant among them)' if fused.biased else ''}"
    constant = " and a constant" if fused.constant else ""
    columns = count * width + bool(fused.constant)
    return Dictionary(label, f"{label}: {count:,} gates x {inputs}{constant}", beyond, columns)


def _one_sided(both: Patterns, own: Patterns) -> Patterns:
    """Keep one of each pair of opposite gates, and none that the network's own gates have on either side."""
    known = {row.tobytes() for part in (own, own.opposite()) for row in part.bits}
    half = both.one_of_each_pair()
    fresh = np.array([row.tobytes() not in known for row in half.bits], dtype=np.bool_)
    return half.take(np.flatnonzero(fresh))


def _beyond(extra: Patterns, own: Patterns) -> Patterns | None:
    """Drop the patterns that the network has itself."""
    both = joined(Patterns(own.bits, own.rows), Patterns(extra.bits, extra.rows))
    return None if both.count == own.count else both.take(np.arange(own.count, both.count))


def whole_spectrum(dictionary: Dictionary, fused: Fused) -> Spectrum | None:
    """Compute the spectrum of all columns of a dictionary; None where they outnumber rows or are too many."""
    if dictionary.columns > min(len(fused.inputs), WHOLE_COLUMNS):
        return None
    parts = [fused.patterns.gates()]
    if dictionary.patterns is not None:
        parts.append(dictionary.patterns.gates())
    columns = (
        (np.concatenate(parts)[:, :, None] * fused.inputs).transpose(1, 0, 2).reshape(len(fused.inputs), -1)
    )
    if fused.constant:
        columns = np.column_stack([columns, np.ones(len(columns))])
    norms = np.linalg.norm(columns, axis=0)
    # A column that is zero on all rows stays zero, and makes the smallest eigenvalue zero: its weight is
    # free.
    return spectrum(columns / np.where(norms > 0, norms, 1.0))


@dataclass(frozen=True)
class Scan:
    """What one pass over the columns outside the support found; each number is the largest of its kind.

    Attributes
    ----------
    gradient : float
        ``|a_j' r|``, r the residual.
    tropp : float or None
        ``||A_S^+ a_j||_1``; None where that was too much work.
    fuchs : float
        ``|a_j' q|``.
    rounding : float
        What float64 can have done to `tropp` and `fuchs`.
    remainder : float
        ``|a_j' r|`` of the residual that the refit leaves, in standard deviations of its rounding.
    """

    gradient: float
    tropp: float | None
    fuchs: float
    rounding: float
    remainder: float


def scan(
    dictionary: Dictionary,
    fused: Fused,
    residual: NDArray[np.float64],
    own: Spectrum,
    rest: NDArray[np.float64],
    errors: NDArray[np.float64],
    arithmetic: float,
) -> Scan:
    """Go through all columns of a dictionary outside the support once.

    Parameters
    ----------
    dictionary : Dictionary
    fused : Fused
        Its columns must be independent.
    residual : array of shape (n,)
    own : Spectrum
        Of the support's columns.
    rest, errors : arrays of shape (n,)
        The residual that the refit leaves, and the standard deviation of each label's rounding.
    arithmetic : float
        What float64 can have done to a product of a unit column with `rest`.
    """
    n, s, width = len(fused.inputs), fused.size, fused.inputs.shape[1]
    orthogonal, triangle = np.linalg.qr(fused.columns)
    inverse = np.linalg.solve(triangle, orthogonal.T)  # A_S^+, (s, n)
    dual = inverse.T @ np.sign(fused.weights)
    others = 0 if dictionary.patterns is None else dictionary.patterns.count
    heavy = (others + fused.patterns.count) * s * n * width > TROPP_WORK
    worst = np.zeros(4)
    single, together = _rounded_alike(fused, errors)
    left = float(rest @ rest)
    for gates, outside in _blocks(dictionary, fused, s):
        norms = np.sqrt(gates @ fused.inputs**2)
        usable = outside & (norms > 0)
        if not usable.any():
            continue
        size = np.where(norms > 0, norms, 1.0)
        slope = np.abs((gates * residual) @ fused.inputs) / size
        tilt = np.abs((gates * dual) @ fused.inputs) / size
        entry = np.abs((gates * rest) @ fused.inputs) / size
        blur = (gates * single**2) @ fused.inputs**2
        blur += sum(((gates * each) @ fused.inputs) ** 2 for each in together)
        blur = np.sqrt(blur) / size
        # What is left once the column has explained its part is the noise that it is compared with.
        blur *= np.sqrt(np.maximum(1 - entry**2 / left, 0.0)) if left > 0 else 0.0
        entry = np.divide(entry, blur + arithmetic, out=np.zeros_like(entry), where=entry > 0)
        worst[0] = max(worst[0], slope[usable].max())
        worst[3] = max(worst[3], entry[usable].max())
        worst[1] = max(worst[1], tilt[usable].max())
        if not heavy:
            spread = ((gates[:, None, :] * inverse).reshape(-1, n) @ fused.inputs).reshape(
                len(gates), s, width
            )
            worst[2] = max(worst[2], (np.abs(spread).sum(axis=1) / size)[usable].max())
    rounding = 100 * ROUNDOFF * n * s**1.5 / own.certain
    return Scan(
        float(worst[0]), None if heavy else float(worst[2]), float(worst[1]), rounding, float(worst[3])
    )


def _rounded_alike(
    fused: Fused, errors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """Part errors into those of rows by themselves, and those of large groups of rows rounded alike.

    A small group counts as rows by themselves with larger errors, which is the most it can do.
    """
    counts = np.bincount(fused.alike)
    largest = np.argsort(-counts, kind="stable")[:GROUPS]
    together = [np.where(fused.alike == group, errors, 0.0) for group in largest if counts[group] > 1]
    single = errors * np.sqrt(counts[fused.alike])
    for each in together:
        single = np.where(each > 0, 0.0, single)
    return single, together


def _blocks(
    dictionary: Dictionary, fused: Fused, s: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
    """Give gates as numbers, some at a time, and which of their columns are outside the support."""
    numbers = max(len(fused.inputs), BLOCK // max(1, s))
    taken = fused.taken()
    for start, gates in fused.patterns.chunks(numbers):
        yield gates.astype(np.float64), ~taken[start : start + len(gates)]
    if dictionary.patterns is not None:
        for _, gates in dictionary.patterns.chunks(numbers):
            yield gates.astype(np.float64), np.ones((len(gates), fused.inputs.shape[1]), dtype=np.bool_)
