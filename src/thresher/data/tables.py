"""Tables from files: CSV, TSV, Parquet, NPZ and svmlight, each as a pandas frame with named columns."""

from __future__ import annotations

import csv
import io
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.data.arrays import read_npz, read_svmlight
from thresher.errors import DataFileError

if TYPE_CHECKING:
    import pandas as pd

STANDARD_INPUT = "-"

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
COMPRESSED = {".gz", ".bz2", ".xz"}


@dataclass(frozen=True)
class TableFile:
    """A table that is there to be read, once or several times.

    Attributes
    ----------
    name : str
        What to call it in messages.
    kind : {"csv", "tsv", "parquet", "npz", "svmlight"}
    content : path or bytes
        Where it is, or all of it.
    """

    name: str
    kind: str
    content: Path | bytes

    @property
    def is_text(self) -> bool:
        """Whether the file is lines of cells, so that a column can be added to it."""
        return self.kind in ("csv", "tsv")

    def source(self) -> Any:
        """Give what a reader takes: a path, or the content from its beginning."""
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content

    def frame(self) -> pd.DataFrame:
        """Read the table; rows are numbered from 0, columns have names.

        Raises
        ------
        DataFileError
            When the file is not what its ending says, holds no rows, or repeats the name of a column.
        """
        readers = {"parquet": _read_parquet, "npz": read_npz, "svmlight": read_svmlight}
        try:
            frame = _read_text(self) if self.is_text else readers[self.kind](self.source(), self.name)
        except DataFileError:
            raise
        except OSError as error:
            raise DataFileError(f"{self.name} cannot be read ({error.strerror or error}).") from error
        if frame.shape[0] == 0 or frame.shape[1] == 0:
            raise DataFileError(
                f"{self.name} holds {frame.shape[1]:,} columns and {frame.shape[0]:,} rows, but a table "
                "needs one of each or more."
            )
        frame.columns = frame.columns.map(str)
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise DataFileError(f"{self.name} has two columns called {twice!r}: give each its own name.")
        return frame.reset_index(drop=True)

    def separator(self) -> str:
        """Give what stands between the cells of a text table."""
        if self.kind == "tsv":
            return "\t"
        header = _header(self)
        return next((mark for mark in (",", "\t", ";", "|") if mark in header), ",")

    def rows(self) -> Iterator[list[str]]:
        """Yield the cells of every line of a text table, the header first, to the letter."""
        separator = self.separator()
        if isinstance(self.content, bytes):
            yield from _cells(io.StringIO(self.content.decode("utf-8-sig"), newline=""), separator)
        else:
            with _opened(self.content) as lines:
                yield from _cells(lines, separator)


def open_table(path: str | os.PathLike[str]) -> TableFile:
    """Find a table and tell of which kind it is; ``-`` takes all of standard input.

    A file's kind is that of its ending; standard input is told by its first bytes, and is CSV or TSV if they
    say nothing else.

    Raises
    ------
    DataFileError
        When there is no such file, or its ending is unknown.
    """
    if os.fspath(path) == STANDARD_INPUT:
        content = sys.stdin.buffer.read()
        return TableFile("standard input", _kind_of_bytes(content), content)
    path = Path(path).expanduser()
    _check_file(path)
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in COMPRESSED:
        endings.pop()
    ending = endings[-1] if endings else ""
    kind = KINDS.get(ending)
    if kind is None:
        found = f"ends in {ending!r}" if ending else "has no ending"
        raise DataFileError(
            f"{path} {found}, but tables are read from files that end in {', '.join(KINDS)}. Rename or "
            "convert it."
        )
    return TableFile(str(path), kind, path)


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table with named columns from a file, or from standard input.

    Parameters
    ----------
    path : str or path
        A file that ends in .csv, .tsv, .parquet (needs pyarrow), .npz, .svmlight or .libsvm; text may be
        compressed (.csv.gz). ``-`` is standard input.

    Returns
    -------
    DataFrame
        Arrays ``X`` and ``y`` of an NPZ file become the columns x0, x1, ... and y; arrays of one dimension
        become columns of their names. The label of an svmlight file is the column y, input number 7 is the
        column x7. Sparse arrays and svmlight files give sparse columns.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("petals,colour\\n5,red\\n8,blue\\n")
    ...     read_table(path)
       petals colour
    0       5    red
    1       8   blue
    """
    return open_table(path).frame()


def _check_file(path: Path) -> None:
    if path.is_file():
        return
    if path.exists():
        raise DataFileError(f"{path} is a folder or a device, but a file is needed.")
    folder = path.parent
    beside = [other.name for other in folder.iterdir()] if folder.is_dir() else []
    close = get_close_matches(path.name, beside, 1)
    hint = f" Did you mean {folder / close[0]}?" if close else " Check its name and folder."
    raise DataFileError(f"{path} does not exist.{hint}")


def _kind_of_bytes(content: bytes) -> str:
    if content.startswith(b"PAR1"):
        return "parquet"
    if content.startswith(b"PK\x03\x04"):
        return "npz"
    return "csv"


def _opened(path: Path) -> Any:
    """Open a text file, compressed or not."""
    import bz2
    import gzip
    import lzma

    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return openers.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8-sig", newline="")


def _cells(lines: Any, separator: str) -> Iterator[list[str]]:
    """Split lines into cells, leaving empty lines out as pandas does."""
    return (cells for cells in csv.reader(lines, delimiter=separator) if cells)


def _header(table: TableFile) -> str:
    """Give the first line that holds anything."""
    try:
        if isinstance(table.content, bytes):
            lines: Any = io.StringIO(table.content.decode("utf-8-sig"))
            return next((line for line in lines if line.strip()), "")
        with _opened(table.content) as lines:
            return next((line for line in lines if line.strip()), "")
    except UnicodeDecodeError as error:
        raise DataFileError(f"{table.name} is not UTF-8 text ({error.reason}): save it as UTF-8.") from error
    except EOFError as error:
        raise DataFileError(f"{table.name} ends too early: it was cut short, or is damaged.") from error


def _read_text(table: TableFile) -> pd.DataFrame:
    import pandas as pd

    separator = table.separator()
    _check_header(table, separator)
    try:
        with warnings.catch_warnings():
            # pandas only warns where it cuts off cells that the header has no name for.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                table.source(),
                sep=separator,
                index_col=False,
                low_memory=False,
                skipinitialspace=True,
                encoding="utf-8-sig",
            )
    except UnicodeDecodeError as error:
        raise DataFileError(f"{table.name} is not UTF-8 text ({error.reason}): save it as UTF-8.") from error
    except pd.errors.ParserWarning as warning:
        raise DataFileError(
            f"{table.name} has rows with more cells than its header has names: complete the header."
        ) from warning
    except (pd.errors.ParserError, EOFError, csv.Error) as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise DataFileError(f"{table.name} is not a table: {reason}.") from error


def _check_header(table: TableFile, separator: str) -> None:
    """Refuse a file without anything in it, without names, or with one name for two columns."""
    line = _header(table)
    if not line.strip():
        raise DataFileError(f"{table.name} is empty, but a header and rows are needed.")
    names = [name.strip() for name in next(_cells(io.StringIO(line), separator))]
    # Names such as 0, 1, 2 are what arrays get when they are written; measurements repeat or have fractions.
    if all(map(_is_number, names)) and not (all(map(str.isdigit, names)) and len(set(names)) == len(names)):
        raise DataFileError(
            f"{table.name} begins with a line of numbers ({line.strip()[:40]!r}): it has no header. Put a "
            "line with the names of the columns before it."
        )
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise DataFileError(f"{table.name} has two columns called {twice!r}: give each its own name.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(source: Any, name: str) -> pd.DataFrame:
    import pandas as pd

    try:
        import pyarrow as pa
    except ImportError as error:
        raise DataFileError(
            f"{name} is a Parquet file, and reading it needs pyarrow: run "
            "`python -m pip install pyarrow`, or convert the file to CSV."
        ) from error
    try:
        return pd.read_parquet(source, engine="pyarrow")
    except (pa.ArrowException, ValueError) as error:
        raise DataFileError(f"{name} is not a Parquet file: {error}") from error
