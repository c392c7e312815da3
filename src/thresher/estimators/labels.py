"""Several labels for each row, each of which it has or has not: a network gives the log-odds of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import is_multilabel

from thresher.errors import ParameterError


def are_labels(y: Any) -> bool:
    """Say whether targets are a table of zeros and ones with a column for each of two labels or more.

    Examples
    --------
    >>> are_labels([[0, 1], [1, 1]]), are_labels([0, 1]), are_labels([[0.5, 1.0]])
    (True, False, False)
    """
    return y is not None and bool(is_multilabel(y))


def indicator(y: Any) -> np.ndarray:  # (n, labels)
    """Write such a table out, as the type it has."""
    return y.toarray() if scipy.sparse.issparse(y) else np.asarray(y)


def refuse_class_weight(class_weight: Any) -> None:
    """Refuse weights of classes where a row may have several labels, each with classes of its own."""
    if class_weight is not None:
        raise ParameterError(
            f"class_weight={class_weight!r} came with several labels for each row, of which every one would "
            "need its own. Weigh rows by sample_weight, or fit one classifier for each label."
        )


def names_of(y: Any) -> list[str] | None:
    """Give the names of the labels, where they came as a frame whose columns have different ones.

    Examples
    --------
    >>> import pandas as pd
    >>> names_of(pd.DataFrame([[0, 1]], columns=["sweet", "sour"])), names_of([[0, 1]])
    (['sweet', 'sour'], None)
    """
    names = list(getattr(y, "columns", ()))
    different = len(set(names)) == len(names) > 0 and all(isinstance(name, str) for name in names)
    return names if different else None
