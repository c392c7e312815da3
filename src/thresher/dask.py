"""Estimators for collections on a Dask cluster, shaped like those of LightGBM and XGBoost.

Each worker that holds partitions becomes a rank of one process group and fits with these, where they are; the
network comes back. Predictions are lazy, partition by partition.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from thresher import estimators
from thresher.errors import DataError, MissingExtraError, RankError
from thresher.memory import kept_pages
from thresher.objective.ranks import meeting

try:
    import dask
    import dask.array
    import dask.dataframe
    import distributed
except ImportError as error:
    raise MissingExtraError(
        f"thresher.dask needs dask and distributed ({error}). Install them with: pip install 'thresher[dask]'"
    ) from error

# Seconds between two looks at whether the workers are still there.
LOOK = 2.0


class _OnCluster:
    """What the two estimators share: a fit on the workers, and predictions that wait to be asked for."""

    _local: Any

    def to_local(self) -> Any:
        """Give an estimator for arrays in memory that knows the same."""
        settings = self.get_params(deep=False)  # type: ignore[attr-defined]
        del settings["client"]
        return _taught(self._local(**settings), self)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Train a network on the workers that hold the partitions.

        Parameters
        ----------
        X : dask array of shape (n, d), or dask dataframe
        y : dask array or series of as many partitions
        sample_weight : the same, optional

        Returns
        -------
        self
        """
        client = self.client or distributed.default_client()  # type: ignore[attr-defined]
        collections = [one for one in (X, y, sample_weight) if one is not None]
        return _taught(self, _fitted(client, self.to_local(), collections))

    def _each(self, method: str, X: Any) -> Any:
        """Predict partition by partition, once that is asked for; at once what is in memory."""
        check_is_fitted(self, "network_")
        work = getattr(self.to_local(), method)
        if not dask.is_dask_collection(X):
            return work(X)
        if isinstance(X, dask.dataframe.DataFrame):
            return X.map_partitions(work, meta=work(X._meta_nonempty)[:0])
        X = _by_rows(X)
        few = work(np.zeros((1, X.shape[1]), dtype=X.dtype))
        shape = {"drop_axis": 1} if few.ndim == 1 else {"chunks": (X.chunks[0], few.shape[1:])}
        return X.map_blocks(work, meta=few[:0], **shape)

    def predict(self, X: Any) -> Any:
        """Predict the target of every row: a dask array for a dask collection."""
        return self._each("predict", X)


@dataclass(eq=False, repr=False, kw_only=True)
class SparseMLPRegressor(_OnCluster, estimators.SparseMLPRegressor):
    """A :class:`thresher.SparseMLPRegressor` for collections on a Dask cluster.

    Parameters and attributes are those of :class:`thresher.SparseMLPRegressor`, and in addition:

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; by default the client that was made last.
    """

    client: Any = None

    _local = estimators.SparseMLPRegressor


@dataclass(eq=False, repr=False, kw_only=True)
class SparseMLPClassifier(_OnCluster, estimators.SparseMLPClassifier):
    """A :class:`thresher.SparseMLPClassifier` for collections on a Dask cluster.

    Parameters and attributes are those of :class:`thresher.SparseMLPClassifier`, and in addition:

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; by default the client that was made last.
    """

    client: Any = None

    _local = estimators.SparseMLPClassifier

    def predict_proba(self, X: Any) -> Any:
        """Give the probability of each class for every row: a dask array for a dask collection."""
        return self._each("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Give the logarithms of these probabilities: a dask array for a dask collection."""
        return self._each("predict_log_proba", X)

    def decision_function(self, X: Any) -> Any:
        """Give a number for every row, or one for each class: a dask array for a dask collection."""
        return self._each("decision_function", X)


def _taught(pupil: Any, teacher: Any) -> Any:
    """Give an estimator what a fitted one knows."""
    learned = {name: value for name, value in vars(teacher).items() if name.endswith("_")}
    vars(pupil).update(learned)
    return pupil


def _fitted(client: Any, estimator: Any, collections: list[Any]) -> Any:
    """Fit an estimator on the workers that hold the partitions, and give it back."""
    held = _placed(client, collections)
    workers = sorted(held)
    _refuse_one_process(client, workers)
    address = client.submit(_free_address, workers[0], workers=workers[:1], pure=False).result()
    ranks = [
        client.submit(
            _fit_rank,
            estimator,
            held[worker],
            address,
            number,
            len(workers),
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        for number, worker in enumerate(workers)
    ]
    try:
        _awaited(client, ranks, workers)
        return ranks[0].result()
    finally:
        client.cancel(ranks)


def _placed(client: Any, collections: list[Any]) -> dict[str, list[Any]]:
    """Compute the partitions where the cluster wants them, and say which worker has which."""
    columns = [_delayed(one) for one in collections]
    counts = {len(column) for column in columns}
    if len(counts) > 1:
        raise DataError(
            f"X, y and sample_weight came in {' and '.join(map(str, sorted(counts)))} partitions, but rows "
            "that belong together must be in the same. Rechunk or repartition them alike."
        )
    parts = client.compute([dask.delayed(tuple)(row) for row in zip(*columns, strict=True)])
    distributed.wait(parts)
    for part in parts:
        if part.status == "error":
            part.result()
    held: dict[str, list[Any]] = {}
    who = client.who_has(parts)
    for part in parts:
        held.setdefault(sorted(who[part.key])[0], []).append(part)
    return held


def _delayed(collection: Any) -> list[Any]:
    if not dask.is_dask_collection(collection):
        raise DataError(
            f"{type(collection).__name__} came, but this estimator fits dask arrays, dataframes and series. "
            "Use thresher.SparseMLPRegressor or SparseMLPClassifier for data in memory."
        )
    if isinstance(collection, dask.array.Array):
        return list(_by_rows(collection).to_delayed().ravel())
    return list(collection.to_delayed())


def _by_rows(array: Any) -> Any:
    """Give an array whose partitions hold whole rows."""
    return array.rechunk({1: -1}) if array.ndim > 1 and array.numblocks[1] > 1 else array


def _refuse_one_process(client: Any, workers: list[str]) -> None:
    """Refuse workers that are threads of one process, which can be one rank only."""
    where = client.run(_process, workers=workers)
    if len(set(where.values())) < len(workers):
        raise RankError(
            f"{len(workers)} workers share a process, but each needs one of its own. Start the cluster with "
            "processes=True."
        )


def _process() -> tuple[str, int]:
    return socket.gethostname(), os.getpid()


def _free_address(worker: str) -> str:
    """Find a free port of this worker, which is reached as its cluster reaches it."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return f"tcp://{urlsplit(worker).hostname}:{probe.getsockname()[1]}"


def _fit_rank(estimator: Any, parts: list[tuple[Any, ...]], address: str, number: int, count: int) -> Any:
    """Fit with the partitions of this worker; the first gives the estimator back."""
    with kept_pages():
        if count == 1:
            return estimator.fit(*_columns(parts))
        with meeting(address, number, count) as ranks:
            estimator.fit(*ranks.together(lambda: _columns(parts)))
    return estimator if number == 0 else None


def _columns(parts: list[tuple[Any, ...]]) -> list[Any]:
    """Put inputs, targets and weights of all partitions together."""
    for part in parts:
        lengths = [one.shape[0] for one in part]
        if len(set(lengths)) > 1:
            raise DataError(
                f"a partition has {' and '.join(map(str, lengths))} rows of X, y and sample_weight, but rows "
                "that belong together must be in the same. Rechunk or repartition them alike."
            )
    return [_stacked(list(column)) for column in zip(*parts, strict=True)]


def _stacked(parts: list[Any]) -> Any:
    """Put partitions together; a single one stays what it is."""
    if len(parts) == 1:
        return parts[0]
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pandas

    return pandas.concat(parts)


def _awaited(client: Any, ranks: list[Any], workers: list[str]) -> None:
    """Wait for all ranks, and end as soon as one has failed or its worker is gone."""
    named = ", ".join(f"rank {number} was {worker}" for number, worker in enumerate(workers))
    while pending := [rank for rank in ranks if rank.status == "pending"]:
        with suppress(TimeoutError):
            distributed.wait(pending, timeout=LOOK, return_when="FIRST_COMPLETED")
        failed = [rank for rank in ranks if rank.status in ("error", "lost", "cancelled")]
        gone = [worker for worker in workers if worker not in client.nthreads()]
        if gone:
            raise RankError(
                f"the worker {' and '.join(gone)} is lost, so the fit has ended on all of them ({named}). "
                "See what happened there, and fit again."
            )
        for rank in failed:
            try:
                rank.result()
            except RankError as error:
                raise RankError(f"{error} ({named})") from error
