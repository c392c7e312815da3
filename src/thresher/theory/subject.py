"""What a certificate is about: a network, or what was fitted around one, with rows and targets for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.errors import DataError, MemoryLimitError, ParameterError
from thresher.network import Network
from thresher.theory.patterns import checked_rows


def network_of_estimator(estimator: Any) -> tuple[Network, Any]:
    """Find the network in a fitted estimator, and what makes its inputs of rows.

    Parameters
    ----------
    estimator : Network, or a fitted estimator, search or pipeline that ends in one

    Returns
    -------
    network : Network
    encode : callable
        Makes the network's inputs of rows as the estimator takes them.
    """
    if isinstance(estimator, Network):
        return estimator, lambda X: X
    if hasattr(estimator, "best_estimator_"):
        return network_of_estimator(estimator.best_estimator_)
    if hasattr(estimator, "steps") and estimator.steps:
        network, _ = network_of_estimator(estimator.steps[-1][1])
        before = estimator[:-1]
        return network, (lambda X: before.transform(X)) if len(before.steps) else (lambda X: X)
    held = getattr(estimator, "network_", None)
    if not isinstance(held, Network):
        raise ParameterError(
            f"a {type(estimator).__name__} came that holds no network, but certify() takes a Network, or an "
            "estimator of Thresher that is fitted. Call fit first."
        )
    return held, lambda X: X


def checked(
    network: Network, X: Any, y: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Check that network and data belong together; give rows, numeric targets and the network's answers."""
    rows = checked_rows(X.toarray() if hasattr(X, "toarray") else X)
    answers = network.forward(X)
    labels = np.asarray(y)
    if labels.shape[:1] != rows.shape[:1] or labels.ndim not in (1, 2):
        raise DataError(
            f"y has shape {labels.shape}, but X has {len(rows)} rows: give one target, or one row of "
            "targets, each."
        )
    if network.classes is not None:
        known = np.isin(labels, network.classes)
        if not known.all():
            raise DataError(
                f"y holds {labels[~known][0]!r}, but the network knows the classes {list(network.classes)}."
            )
        return rows, np.searchsorted(np.sort(network.classes), labels).reshape(-1, 1).astype(float), answers
    try:
        targets = labels.astype(np.float64).reshape(len(rows), -1)
    except (TypeError, ValueError) as error:
        raise DataError(f"y holds what is not a number ({error}): this network is a regression.") from error
    if targets.shape[1] != network.outputs:
        raise DataError(
            f"y has {targets.shape[1]} columns, but the network has {network.outputs} outputs: they must be "
            "as many."
        )
    if not np.isfinite(targets).all():
        raise DataError("y holds NaN or infinity. Drop those rows.")
    return rows, targets, answers


def refuse_too_large(network: Network, rows: int, memory_limit: int) -> None:
    """Refuse columns that would not fit, before they are made: five copies of them, and two of the gates."""
    paths = network.layers[1].weights.nnz * int(np.diff(network.layers[0].weights.tocsc().indptr).max())
    held = max(network.nonzeros, min(paths, network.nonzeros * network.outputs))
    needed = 8 * rows * (5 * held + 2 * (network.hidden[0] + (network.direct is not None)))
    if needed > memory_limit:
        raise MemoryLimitError(
            f"the columns of {network.nonzeros:,} nonzeros on {rows:,} rows would need {needed:,} bytes, but "
            f"memory_limit is {memory_limit:,}. Certify on fewer rows, or raise memory_limit."
        )


def out_of_reach(network: Network) -> str | None:
    """Say why the theory does not apply, if it does not."""
    if network.classes is not None:
        return "it answers classes, and the theory is about squared error on real targets"
    if network.link != "identity":
        return f"it answers by a {network.link} link, and the theory is about squared error on its outputs"
    if len(network.layers) != 2:
        return f"it has {len(network.layers) - 1} hidden layers, and the theory covers one"
    if network.live_neurons == (0,):
        return "no neuron takes part in its answer"
    hidden, last = network.layers
    reads = (np.diff(hidden.weights.tocsc().indptr) > 0) | (hidden.bias != 0)
    fed = (reads[:, None] * (last.weights.toarray() != 0)).any(axis=0)
    if not fed.all():
        return f"no neuron takes part in its output {int(np.flatnonzero(~fed)[0]) + 1}"
    return None
