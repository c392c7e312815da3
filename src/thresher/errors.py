"""What can go wrong, by name.

Every error a user can meet is a :class:`ThresherError` and also the built-in kind a caller would expect
(``ValueError`` for what was passed, ``OSError`` for files), so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class ThresherError(Exception):
    """Any error that Thresher raises on purpose."""


class BudgetError(ThresherError, ValueError):
    """A budget that no network can have."""


class ParameterError(ThresherError, ValueError):
    """A parameter outside what is allowed."""


class DataError(ThresherError, ValueError):
    """Data that cannot be trained on or predicted from."""


class MemoryLimitError(ThresherError, ValueError):
    """Work that cannot fit into the memory it was given."""


class RankError(ThresherError, RuntimeError):
    """A fit on many machines of which one is lost, or could not take part."""


class DataFileError(ThresherError, OSError):
    """A data file that is missing, or not what it claims to be."""


class ModelFileError(ThresherError, OSError):
    """A model file that is missing, damaged, or of another version."""


class CheckpointError(ThresherError, OSError):
    """A checkpoint that is damaged, of another fit, or cannot be written."""


class MissingExtraError(ThresherError, ImportError):
    """A package that only some of Thresher's functions need, and that is not installed."""


class MissingToolError(ThresherError, OSError):
    """A program, such as a compiler, that some functions need and that is not installed."""


class InterruptedFitWarning(UserWarning):
    """A fit stopped by the user; the best network found so far is kept."""


class CheckpointWarning(UserWarning):
    """A checkpoint that could not be written; the fit goes on, and the last one is kept."""


class SaturationWarning(UserWarning):
    """Numbers beyond what inputs of an integer network can be; they were kept to the nearest."""


class NoPathWarning(UserWarning):
    """A network in which no input reaches an output: it is a constant."""


@contextmanager
def writing(path: str | os.PathLike[str], advice: str) -> Iterator[None]:
    """Turn a system's refusal to write a file into an error that says why and what to do."""
    try:
        yield
    except OSError as error:
        raise DataFileError(f"{path} cannot be written ({error.strerror or error}). {advice}") from error


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside this package that led here, however deep the call went."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
