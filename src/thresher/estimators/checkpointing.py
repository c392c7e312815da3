"""Checkpoints of estimators: how often, and what tells one fit from another."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse
import torch

from thresher._version import __version__
from thresher.errors import ParameterError
from thresher.solvers.checkpoint import Checkpoint, Every

SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
# Parameters that make no difference to what is fitted.
BESIDE = ("callback", "checkpoint", "checkpoint_every", "random_state", "verbose")
# Numbers of the data that are looked at at once.
CHUNK = 2**20


@contextmanager
def checkpointed(estimator: Any, seed: int, **data: Any) -> Iterator[int]:
    """Keep a fit in the estimator's checkpoint, if it has one, and go on from there; gives the seed to use.

    Parameters
    ----------
    estimator : estimator
        With `checkpoint` and `checkpoint_every`, and the parameters that the fit depends on.
    seed : int
        The seed of this fit. Where none was asked for, that of the fit in the checkpoint takes its place.
    **data : array, sparse matrix, list of them or None
        All else that the fit depends on, by name.
    """
    path, every = estimator.checkpoint, interval(estimator.checkpoint_every)
    if every is None:
        raise ParameterError(
            f"checkpoint_every={estimator.checkpoint_every!r}, but it must be a time such as '5min', '30s' "
            "or '1h', or a whole number of steps, 1 or more."
        )
    if path is None:
        yield seed
        return
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterError(f"checkpoint={path!r}, but it must be the path of a file, or None.")
    asked = {name: value for name, value in estimator.get_params(deep=False).items() if name not in BESIDE}
    identity = {
        "the version of Thresher": __version__,
        "the version of torch": torch.__version__,
        "the version of NumPy": np.__version__,
        "the estimator": type(estimator).__name__,
        # An object tells where in memory it is, which is another place in another process.
        **{name: re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value)) for name, value in asked.items()},
        "random_state": "None" if estimator.random_state is None else str(seed),
        **{name: "None" if value is None else fingerprint(value) for name, value in data.items()},
    }
    with Checkpoint(path, every, identity, seed).open() as checkpoint:
        yield checkpoint.seed


def interval(every: Any) -> Every | None:
    """Read a time such as "5min", or a whole number of steps; None if it is neither.

    Examples
    --------
    >>> interval("5min").seconds, interval(100).steps, interval("soon")
    (300.0, 100, None)
    """
    if isinstance(every, (int, np.integer)) and not isinstance(every, bool):
        return Every(steps=int(every)) if every >= 1 else None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h)\s*", every) if isinstance(every, str) else None
    seconds = float(found.group(1)) * SECONDS[found.group(2)] if found else 0.0
    return Every(seconds=seconds) if seconds > 0 else None


def fingerprint(values: Any) -> str:
    """Give shape, type and a digest of an array or a sparse matrix, read a few rows at a time, or of several.

    Examples
    --------
    >>> fingerprint(np.zeros((3, 2))).split()[:-1]
    ['3', 'x', '2', 'float64']
    """
    found = blake2b(digest_size=8)
    if isinstance(values, (list, tuple)):
        found.update(" ".join(fingerprint(one) for one in values).encode())
        return f"{len(values)} arrays {found.hexdigest()}"
    parts = [values]
    if scipy.sparse.issparse(values):
        rows = values.tocsr()
        parts = [rows.indptr, rows.indices, rows.data]
    for part in parts:
        step = max(1, CHUNK // max(1, part[:1].size))
        for start in range(0, len(part), step):
            some = np.asarray(part[start : start + step])
            text = some.dtype.kind in "OUS"
            found.update(repr(some.tolist()).encode() if text else np.ascontiguousarray(some).tobytes())
    shape = " x ".join(f"{length:,}" for length in values.shape)
    return f"{shape} {values.dtype} {found.hexdigest()}"
