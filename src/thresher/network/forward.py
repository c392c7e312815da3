"""From rows of data to outputs: any kind of table, a chunk of rows at a time, with NumPy and SciPy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from thresher.errors import DataError
from thresher.network.layer import Layer, live

# Numbers in the largest array of one chunk of rows (16 MB): any number of rows can be predicted.
CHUNK_NUMBERS = 2**21


def outputs(layers: Sequence[Layer], X: Any) -> np.ndarray:
    """Return the outputs of a chain of layers for the rows of X, as float64 of shape (n, outputs).

    Parameters
    ----------
    layers : sequence of Layer
        ReLU between them, none after the last.
    X : array-like or sparse array of shape (n, inputs)
        Real numbers of any type, a frame or a memory map; sparse data is never made dense.

    Examples
    --------
    >>> outputs([Layer(np.array([[2.0], [0.0]]), np.array([1.0]))], [[3.0, 4.0]])
    array([[7.]])
    """
    X = checked(X, layers[0].inputs)
    masks = live(layers)
    widths = [int(mask.sum()) for mask in masks[1:]]
    if sparse.issparse(X):
        masks[0] = np.ones(layers[0].inputs, dtype=bool)
    else:
        widths.append(layers[0].inputs)
    # What takes no part is left out: it would only multiply zeros.
    compact = [
        layer.restricted(before, after)
        for layer, (before, after) in zip(layers, pairwise(masks), strict=True)
    ]
    answer = np.empty((X.shape[0], layers[-1].neurons))
    for start, values in _finite_chunks(X, max(1, CHUNK_NUMBERS // max(widths)), masks[0]):
        with np.errstate(over="ignore", invalid="ignore"):  # said once, in words, below
            for number, (weights, bias) in enumerate(compact):
                product = (values if number == 0 else np.maximum(values, 0.0)) @ weights
                values = (product.toarray() if sparse.issparse(product) else product) + bias
        answer[start : start + values.shape[0]] = values
    if not np.isfinite(answer).all():
        raise DataError("X holds values so large that the network's answer overflows: check its scale.")
    return answer


def checked(X: Any, inputs: int) -> Any:
    """Return X as an array or CSR array of the right shape, its values not yet looked at."""
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise DataError(f"X has shape {X.shape}, but rows and columns are needed: try X.reshape(1, -1).")
    if X.shape[1] != inputs:
        raise DataError(
            f"X has {X.shape[1]} columns, but the network takes {inputs}: pass those of training."
        )
    if X.dtype.kind not in "biufO":
        raise DataError(f"X is of type {X.dtype}, but numbers are needed: convert or encode it.")
    return X


def _finite_chunks(X: Any, rows: int, used: np.ndarray) -> Iterator[tuple[int, Any]]:
    """Yield rows of X in float64, restricted to the columns in use, with every column checked."""
    for start in range(0, X.shape[0], rows):
        chunk = X[start : start + rows]
        if chunk.dtype.kind == "O":
            try:
                chunk = chunk.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise DataError(f"X holds what is not a number ({error}): convert or encode it.") from error
        if not np.isfinite(chunk.data if sparse.issparse(chunk) else chunk).all():
            raise DataError("X holds NaN or infinity: drop those rows, or fill them in (SimpleImputer can).")
        yield start, (chunk if used.all() else chunk[:, used]).astype(np.float64)
