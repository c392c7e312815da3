"""From rows of data to outputs: any kind of table, a chunk of rows at a time, with NumPy and SciPy alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from thresher.data.rows import OnDisk, is_sparse
from thresher.errors import DataError
from thresher.network.layer import Layer, Weights, columns_of, live, narrowed

# Numbers in the largest array of one chunk of rows (16 MB): any number of rows can be predicted.
CHUNK_NUMBERS = 2**21


def outputs(
    layers: Sequence[Layer],
    X: Any,
    direct: Weights | None = None,  # (inputs, outputs)
    features: Sequence[str] | None = None,
) -> np.ndarray:
    """Return the outputs of a network for the rows of X, as float64 of shape (n, outputs).

    Parameters
    ----------
    layers : sequence of Layer
        ReLU between them, none after the last.
    X : array-like, sparse array or rows on disk of shape (n, inputs)
        Real numbers of any type, a frame or a memory map; sparse data is never made dense.
    direct : CSR array of shape (inputs, outputs), optional
        Weights of inputs that are added to the outputs.
    features : sequence of str, optional
        Names of the inputs, which the columns of a frame must bear.

    Examples
    --------
    >>> outputs([Layer(np.array([[2.0], [0.0]]), np.array([1.0]))], [[3.0, 4.0]])
    array([[7.]])
    """
    X = checked(X, layers[0].inputs, features)
    read, layers, direct = narrowed(layers, direct)
    masks = live(layers, direct)
    widths = [int(mask.sum()) for mask in masks[1:]]
    if is_sparse(X):
        masks[0] = np.ones(layers[0].inputs, dtype=bool)
    else:
        widths.append(X.shape[1])
    # What takes no part is left out: it would only multiply zeros.
    compact = [
        layer.restricted(before, after)
        for layer, (before, after) in zip(layers, pairwise(masks), strict=True)
    ]
    linear = None if direct is None else direct[masks[0]].astype(np.float64)
    answer = np.empty((X.shape[0], layers[-1].neurons))
    for start, values in finite_chunks(X, max(1, CHUNK_NUMBERS // max(widths)), read[masks[0]]):
        with np.errstate(over="ignore", invalid="ignore"):  # said once, in words, below
            rows = values
            for number, (weights, bias) in enumerate(compact):
                values = _product(values if number == 0 else np.maximum(values, 0.0), weights) + bias
            answer[start : start + values.shape[0]] = (
                values if linear is None else values + _product(rows, linear)
            )
    if not np.isfinite(answer).all():
        raise DataError("X holds values so large that the network's answer overflows: check its scale.")
    return answer


def exponential(values: np.ndarray) -> np.ndarray:
    """Return what a log link makes of outputs, or say that it overflows."""
    with np.errstate(over="ignore"):
        answer = np.exp(values)
    if not np.isfinite(answer).all():
        raise DataError(
            f"X holds values so large that the network's answer, exp({values.max():.4g}), overflows: check "
            "its scale."
        )
    return answer


def _product(values: Any, weights: sparse.csr_array) -> np.ndarray:
    product = values @ weights
    return product.toarray() if sparse.issparse(product) else product


def checked(X: Any, inputs: int, features: Sequence[str] | None = None) -> Any:
    """Return X as an array or CSR array of the right shape, its values not yet looked at.

    Where the inputs have names, so may the columns of X (a frame of any library): they must be the same, in
    the same order. Columns that are not all named by strings are taken by position.
    """
    if features is not None:
        _check_columns(getattr(X, "columns", None), features)
    if not isinstance(X, OnDisk):
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


def _check_columns(columns: Any, features: Sequence[str]) -> None:
    names = [] if columns is None else list(columns)
    if not all(isinstance(name, str) for name in names):
        return
    for place, (came, known) in enumerate(zip(names, features, strict=False)):
        if came != known:
            advice = (
                "which comes elsewhere: put the columns in order, as X[list(network.features)] does"
                if known in names
                else "which X does not have: pass the columns of training"
            )
            raise DataError(
                f"column {place} of X is {came!r}, but that of the network is {known!r}, {advice}."
            )


def finite_chunks(X: Any, rows: int, used: np.ndarray) -> Iterator[tuple[int, Any]]:
    """Yield rows of X in float64, restricted to the columns in use (ascending), with every column checked."""
    for start in range(0, X.shape[0], rows):
        chunk = X[start : start + rows]
        if chunk.dtype.kind == "O":
            try:
                chunk = chunk.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise DataError(f"X holds what is not a number ({error}): convert or encode it.") from error
        if not np.isfinite(chunk.data if sparse.issparse(chunk) else chunk).all():
            raise DataError("X holds NaN or infinity: drop those rows, or fill them in (SimpleImputer can).")
        if len(used) < chunk.shape[1]:
            chunk = columns_of(chunk, used) if sparse.issparse(chunk) else chunk[:, used]
        yield start, chunk.astype(np.float64)
