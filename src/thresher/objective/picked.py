"""Some rows of what there is: picked when they are read, and turned into tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from thresher.device import from_host


class Picked:
    """Some rows of a tensor, picked when they are read: folds that overlap take no memory of their own.

    Parameters
    ----------
    whole : tensor of shape (n, columns)
    rows : int64 tensor of shape (held,)
        Which of them.
    """

    ndim = 2

    def __init__(self, whole: Tensor, rows: Tensor) -> None:
        self.whole, self.rows = whole, rows
        self.shape = (rows.numel(), whole.shape[1])

    @property
    def dtype(self) -> torch.dtype:
        """The precision of its numbers."""
        return self.whole.dtype

    def __getitem__(self, key: slice | Tensor) -> Tensor:
        return self.whole.index_select(0, self.rows[key])


def picked(X: Any, rows: np.ndarray | slice) -> Any:
    """Pick some rows; a tensor is told which by one beside it."""
    if isinstance(X, (Tensor, Picked)) and isinstance(rows, np.ndarray):
        return X[from_host(rows)]
    return X[rows]


def as_tensor(part: Any) -> Tensor:
    """Turn rows of any kind into a dense tensor, of a precision that may be any."""
    if scipy.sparse.issparse(part):
        part = part.toarray()
    if not isinstance(part, np.ndarray):
        return part
    part = np.asarray(part)
    if not part.flags.writeable or any(step < 0 for step in part.strides):
        # torch warns of read-only memory; a private copy of one chunk is cheap.
        part = part.copy()
    if part.dtype.kind not in "fiub" or part.dtype.itemsize > 8 or not part.dtype.isnative:
        part = part.astype(np.float64)
    return from_host(part)
