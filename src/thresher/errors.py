"""What can go wrong, by name.

Every error a user can meet is a :class:`ThresherError` and also the built-in kind a caller would expect
(``ValueError`` for what was passed, ``OSError`` for files), so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import sys
import warnings


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


class DataFileError(ThresherError, OSError):
    """A data file that is missing, or not what it claims to be."""


class ModelFileError(ThresherError, OSError):
    """A model file that is missing, damaged, or of another version."""


class MissingExtraError(ThresherError, ImportError):
    """A package that only some of Thresher's functions need, and that is not installed."""


class InterruptedFitWarning(UserWarning):
    """A fit stopped by the user; the best network found so far is kept."""


class NoPathWarning(UserWarning):
    """A network in which no input reaches an output: it is a constant."""


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line outside this package that led here, however deep the call went."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
