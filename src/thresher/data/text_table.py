"""Tables that are text: their packing, letters, separator and header are told by what the file holds."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.errors import DataFileError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

# First bytes of packed files, by the name that pandas has for the packing.
PACKINGS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
OPENERS: dict[str | None, Any] = {None: open, "gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}

BYTE_ORDERS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
SEPARATORS = (",", "\t", ";", "|")
SAID = re.compile(r"sep=(.)", re.IGNORECASE)

# Bytes that are looked at together; lines that choose the separator; rows that are given back together.
BLOCK, LINES, ROWS = 2**20, 20, 20_000

# Cells as they are written, missing or not.
WRITTEN = {"dtype": str, "keep_default_na": False, "na_filter": False}

DAMAGED = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


@dataclass(frozen=True)
class TextFormat:
    """How the text of a table is written.

    Attributes
    ----------
    packing : {"gzip", "bz2", "xz"}, optional
    encoding : str
    separator : str
    header : tuple of str
        Names of the columns, each once: a second ``price`` is ``price (2)``.
    repeated : tuple of str
        Names that were given again.
    before : int
        Lines above the header that say how the table is written.
    """

    packing: str | None
    encoding: str
    separator: str
    header: tuple[str, ...]
    repeated: tuple[str, ...]
    before: int = 0

    def options(self) -> dict[str, Any]:
        """Give what pandas needs to know."""
        return {
            "sep": self.separator,
            "encoding": self.encoding,
            "compression": self.packing,
            "index_col": False,
            "low_memory": False,
            "skipinitialspace": True,
            "skiprows": self.before,
        }


def text_format(source: Path | bytes, name: str, *, tabs: bool, encoding: str | None) -> TextFormat:
    """Tell how a table is written.

    Parameters
    ----------
    source : path or bytes
        Where it is, or all of it.
    name : str
        What to call it in messages.
    tabs : bool
        Whether tabs are known to separate its cells.
    encoding : str, optional
        How its letters are written, where that is known.

    Raises
    ------
    DataFileError
        When it is empty, damaged, no text, or has no header.
    """
    try:
        with opened(source, None, "rb") as file:
            start = file.read(6)
        packing = next((kind for mark, kind in PACKINGS.items() if start.startswith(mark)), None)
        with opened(source, packing, "rb") as file:
            found = encoding_of(file, name) if encoding is None else _known(encoding)
        with opened(source, packing, "rt", found) as file:
            lines = [line for _, line in zip(range(LINES), _filled(file), strict=False)]
    except UnicodeError as error:
        raise DataFileError(
            f"{name} is not written in {encoding} ({error}): use another --encoding, or leave it out."
        ) from error
    except DAMAGED as error:
        raise DataFileError(f"{name} ends too early: it was cut short, or is damaged.") from error
    # Spreadsheets write down what separates cells: sep=;
    said = SAID.fullmatch(lines[0].strip()) if lines else None
    lines = lines[1:] if said else lines
    if not lines:
        raise DataFileError(f"{name} is empty, but a header and rows are needed.")
    separator = "\t" if tabs else said[1] if said else separator_of(lines)
    told = TextFormat(packing, found, separator, (), (), int(bool(said)))
    with _explained(name):
        names = _first_line(source, told)
    _refuse_numbers(names, lines[0], name)
    header, repeated = unique_names(names)
    return replace(told, header=header, repeated=repeated)


def _first_line(source: Path | bytes, told: TextFormat) -> list[str]:
    """Give the cells of the first line that holds anything."""
    with opened(source, told.packing, "rt", told.encoding) as file:
        for _ in range(told.before):
            next(file)
        filled = dropwhile(lambda line: not line.strip(), file)
        try:
            return next(csv.reader(filled, delimiter=told.separator, skipinitialspace=True))
        except csv.Error:
            # Cells of more than 131,072 letters are read by pandas alone, which takes longer.
            return _cells(_read(source, told, **WRITTEN, header=None, nrows=1))[0]


@contextmanager
def opened(
    source: Path | bytes, packing: str | None, mode: str, encoding: str | None = None
) -> Iterator[Any]:
    """Open a table that may be packed, or held."""
    binary: Any = io.BytesIO(source) if isinstance(source, bytes) else source
    if packing is None and isinstance(source, bytes):
        with binary if mode == "rb" else io.TextIOWrapper(binary, encoding, newline="") as file:
            yield file
        return
    newline = None if mode == "rb" else ""
    with OPENERS[packing](binary, mode, encoding=encoding, newline=newline) as file:
        yield file


def encoding_of(file: Any, name: str) -> str:
    """Tell how letters are written: UTF-8, UTF-16, or else as Windows and Latin-1 do.

    Examples
    --------
    >>> [encoding_of(io.BytesIO(text), "t.csv") for text in ("a,b".encode("utf-16"), b"Z\\xfcrich")]
    ['utf-16', 'cp1252']
    """
    start = file.read(BLOCK)
    marked = next((kind for mark, kind in BYTE_ORDERS.items() if start.startswith(mark)), None)
    if marked == "utf-16":
        return marked
    if b"\0" in start[:1000]:
        # Plain letters take two bytes in UTF-16, one of which is zero.
        low, high = start[1:1000:2].count(0), start[0:1000:2].count(0)
        if max(low, high) < len(start[:1000]) // 4 or min(low, high):
            raise DataFileError(f"{name} is not text: it holds bytes that are zero.")
        return "utf-16-le" if low else "utf-16-be"
    readings = {kind: codecs.getincrementaldecoder(kind)() for kind in ("utf-8", "cp1252")}
    while start:
        part, start = start, file.read(BLOCK)
        for kind in list(readings):
            try:
                readings[kind].decode(part, final=not start)
            except UnicodeDecodeError:
                del readings[kind]
    return "utf-8-sig" if "utf-8" in readings else next(iter(readings), "latin-1")


def _known(encoding: str) -> str:
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise ParameterError(
            f"--encoding {encoding!r} is not known: use a name such as utf-8, latin-1, cp1252 or utf-16."
        ) from None
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def separator_of(lines: list[str]) -> str:
    """Tell what separates cells: what every line holds as often as the header, outside of quotes.

    Examples
    --------
    >>> separator_of(["name;price, EUR", "a;1,5", "b;2"])
    ';'
    """
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    present = [mark for mark in SEPARATORS if mark in bare[0]]
    even = [mark for mark in present if all(line.count(mark) == bare[0].count(mark) for line in bare)]
    return (even or present or [","])[0]


def unique_names(names: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give every column a name of its own, and the names that were given again.

    Examples
    --------
    >>> unique_names(["a ", "b", "a", ""])
    (('a', 'b', 'a (2)', 'Unnamed: 3'), ('a',))
    """
    stripped = [name.strip() or f"Unnamed: {place}" for place, name in enumerate(names)]
    taken, seen, found = set(stripped), Counter[str](), []
    for name in stripped:
        seen[name] += 1
        other = name
        while seen[name] > 1 and other in taken:
            other = f"{name} ({seen[name]})"
            seen[name] += other in taken
        taken.add(other)
        found.append(other)
    return tuple(found), tuple(
        dict.fromkeys(name for name, other in zip(stripped, found, strict=True) if name != other)
    )


def _filled(lines: Any) -> Iterator[str]:
    return (line.rstrip("\r\n") for line in lines if line.strip())


def _refuse_numbers(names: list[str], line: str, name: str) -> None:
    """Refuse a first line of measurements: it is no header."""
    names = [each.strip() for each in names]
    # Names such as 0, 1, 2 are what arrays get when they are written; measurements repeat or have fractions.
    if all(map(_is_number, names)) and not (all(map(str.isdigit, names)) and len(set(names)) == len(names)):
        raise DataFileError(
            f"{name} begins with a line of numbers ({line.strip()[:40]!r}): it has no header. Put a "
            "line with the names of the columns before it."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def frame_of(source: Path | bytes, name: str, told: TextFormat, **choices: Any) -> pd.DataFrame:
    """Read the rows of a table, its columns named as the header says."""
    with _explained(name):
        return _read(source, told, header=0, names=list(told.header), **choices)


def rows(source: Path | bytes, name: str, told: TextFormat) -> Iterator[list[str]]:
    """Yield the cells of every line, the header first, as they are written."""
    with _explained(name):
        parts = _read(source, told, **WRITTEN, header=None, chunksize=ROWS)
    with parts:
        while True:
            with _explained(name):
                part = next(parts, None)
            if part is None:
                return
            yield from _cells(part)


def _cells(part: pd.DataFrame) -> list[list[str]]:
    return part.to_numpy(dtype=object).tolist()


def _read(source: Path | bytes, told: TextFormat, **choices: Any) -> Any:
    import pandas as pd

    content = io.BytesIO(source) if isinstance(source, bytes) else source
    return pd.read_csv(content, **told.options(), **choices)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what can be wrong with a text table into words."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # pandas only warns where it cuts off cells that the header has no name for.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except UnicodeError as error:
        raise DataFileError(f"{name} holds letters that cannot be read ({error}): use --encoding.") from error
    except pd.errors.ParserWarning as warning:
        raise DataFileError(
            f"{name} has rows with more cells than its header has names: complete the header, or take "
            "away what stands above it, such as a title or a remark."
        ) from warning
    except pd.errors.EmptyDataError as error:
        raise DataFileError(f"{name} is empty, but a header and rows are needed.") from error
    except (pd.errors.ParserError, *DAMAGED) as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise DataFileError(f"{name} is not a table: {reason}.") from error
