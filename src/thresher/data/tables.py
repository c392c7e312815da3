"""Tables from files: CSV, TSV, Parquet, NPZ and svmlight, each as a pandas frame with named columns."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thresher.data.arrays import read_npz, read_svmlight
from thresher.data.text_table import TextFormat, frame_of, rows, text_format
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
    encoding : str, optional
        How the letters of text are written; by default that is told by what it holds.
    """

    name: str
    kind: str
    content: Path | bytes
    encoding: str | None = None

    @property
    def is_text(self) -> bool:
        """Whether the file is lines of cells, so that a column can be added to it."""
        return self.kind in ("csv", "tsv")

    @cached_property
    def text(self) -> TextFormat:
        """How the text of the table is written."""
        with _readable(self.name):
            return text_format(self.content, self.name, tabs=self.kind == "tsv", encoding=self.encoding)

    @property
    def cells_apart(self) -> str | None:
        """What separates the cells of text; None where the file is none."""
        return self.text.separator if self.is_text else None

    @property
    def repeated(self) -> tuple[str, ...]:
        """Names that several columns were given, and all but the first of which were changed."""
        return self.text.repeated if self.is_text else ()

    def source(self) -> Any:
        """Give what a reader takes: a path, or the content from its beginning."""
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content

    def frame(self, as_written: Sequence[str] = ()) -> pd.DataFrame:
        """Read the table; rows are numbered from 0, columns have names.

        Parameters
        ----------
        as_written : sequence of str
            Columns of text files to give as text, whatever they hold; those that are not there are left out.

        Raises
        ------
        DataFileError
            When the file is not what its ending says, or holds no rows.
        """
        with _readable(self.name):
            if self.is_text:
                kinds = dict.fromkeys(set(as_written) & set(self.text.header), str)
                frame = frame_of(self.content, self.name, self.text, dtype=kinds)
            else:
                readers = {"parquet": _read_parquet, "npz": read_npz, "svmlight": read_svmlight}
                frame = readers[self.kind](self.source(), self.name)
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

    def written(self, names: Sequence[str]) -> pd.DataFrame:
        """Read some columns as text, where the file is text; else as they are."""
        if not self.is_text:
            return self.frame()[list(names)]
        with _readable(self.name):
            return frame_of(self.content, self.name, self.text, usecols=list(names), dtype=str)[list(names)]

    def index(self) -> Any:
        """Give what names the rows of a Parquet file; None where rows have no names."""
        return _read_parquet(self.source(), self.name).index if self.kind == "parquet" else None

    def rows(self) -> Iterator[list[str]]:
        """Yield the cells of every line of a text table, the header first, as they are written."""
        with _readable(self.name):
            yield from rows(self.content, self.name, self.text)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn a system's refusal to read a file into words."""
    try:
        yield
    except DataFileError:
        raise
    except OSError as error:
        raise DataFileError(f"{name} cannot be read ({error.strerror or error}).") from error


def open_table(path: str | os.PathLike[str], encoding: str | None = None) -> TableFile:
    """Find a table and tell of which kind it is; ``-`` takes all of standard input.

    A file's kind is that of its ending; standard input is told by its first bytes, and is CSV or TSV if they
    say nothing else. How text is written (`encoding`) is told by what it holds, unless it is given.

    Raises
    ------
    DataFileError
        When there is no such file, or its ending is unknown.
    """
    if os.fspath(path) == STANDARD_INPUT:
        content = sys.stdin.buffer.read()
        return TableFile("standard input", _kind_of_bytes(content), content, encoding)
    path = _at_home(Path(path))
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
    return TableFile(str(path), kind, path, encoding)


def read_table(path: str | os.PathLike[str], encoding: str | None = None) -> pd.DataFrame:
    """Read a table with named columns from a file, or from standard input.

    Parameters
    ----------
    path : str or path
        A file that ends in .csv, .tsv, .parquet (needs pyarrow), .npz, .svmlight or .libsvm; text may be
        compressed (.csv.gz). ``-`` is standard input.
    encoding : str, optional
        How the letters of text are written; by default that is told by what it holds.

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
    return open_table(path, encoding).frame()


def _at_home(path: Path) -> Path:
    """Put the user's folder for a tilde; a file may be called ~foo.csv as well."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


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
