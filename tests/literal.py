"""The paper's appendix A for one output and squared error, written as literally as possible.

This is the oracle that the fast solver is compared with, so it is float64 NumPy, slow on purpose and shares
no code with the package: every neuron's block ``D_i X`` is built, and so is a copy of the columns of ``A`` on
the support.

Symbols: ``X`` (rows, features), ``w`` the flat weight vector (entry ``neuron * features + feature``), ``D_i``
the 0/1 gates of neuron i, ``A = [D_1 X | ... | D_m X]``, ``H_s`` hard thresholding, ``S`` a support.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FIRST_STEP_SIZE = 1e-14
INNER_STEPS = 10
ARMIJO = 0.9
HALVINGS = 11


@dataclass
class LiteralResult:
    """What a literal run found.

    Attributes
    ----------
    weights : array of shape (features, neurons)
        The last iterate, dense.
    history : list of dict
        One record a step: ``step`` (from 1), ``loss`` (``||A w - y||^2`` of the iterate, on the rows and with
        the gates of that step), ``support`` (flat indices, ascending), ``eta`` (the outer step size),
        ``inner`` (inner steps kept) and ``moved`` (whether the gates took the weights' signs after the step).
    settled_step : int or None
        The first step whose support equals the one before it and never changes again, provided that the gates
        moved since the last change and another step followed; None where there is no such step.
    """

    weights: Array
    history: list[dict[str, Any]] = field(default_factory=list)
    settled_step: int | None = None


def run(
    X: Array,  # (rows, features)
    y: Array,  # (rows,)
    hidden: int,
    budget: int,
    steps: int,
    *,
    generators: Array,  # (features, hidden)
    update_gates_every: int = 1,
    batch: int | None = None,
    rng: np.random.Generator | None = None,
    callback: Callable[[dict[str, Any], Array], None] | None = None,
) -> LiteralResult:
    """Run the paper's accelerated iterative hard thresholding with sequential convex gates.

    Step k (from 1), with the gates as they stand, is::

        g       = A^T (A w - y)
        eta     = ||g_S||^2 / ||A_S g_S||^2,  S = supp(w);  1e-14 where w = 0, i.e. at the first step
        w       = H_s(w - eta g)
        w       = refine(w)                   ten Armijo gradient steps on the support, at step 1 as well
        gates   = X w_i > 0                   where the gates are due

    Gates are due after step k when ``k - 1`` is a positive multiple of ``update_gates_every`` and k lies in
    the second pass over the data or later. In full batch a step is a pass, so with the default the gates move
    after steps 2, 3, 4, ...: steps 1 (it only selects a support) and 2 (the first that really moves) share
    the random gates, and step 3 is the first with the weights' own. With ``update_gates_every=100`` they
    would first move after step 101. A neuron without weights then has an empty gate, for good.

    Parameters
    ----------
    X, y : arrays
        Data of shape (rows, features) and targets of shape (rows,); computed with in float64.
    hidden, budget, steps : int
        Neurons m, nonzero weights allowed s, and steps to take.
    generators : array of shape (features, hidden)
        The vectors h_i whose gates ``X h_i > 0`` the run starts with.
    update_gates_every : int
        Appendix B's k.
    batch : int, optional
        Rows a step sees; all by default.
    rng : numpy.random.Generator, optional
        Shuffles the rows anew for every pass of minibatches; without it they come in order.
    callback : callable, optional
        Called as ``callback(record, weights)`` after every step.
    """
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    vectors = np.array(generators, dtype=np.float64)
    if vectors.shape != (X.shape[1], hidden):
        raise ValueError(f"generators have shape {vectors.shape}; expected {(X.shape[1], hidden)}.")
    w = np.zeros(X.shape[1] * hidden)
    result = LiteralResult(as_matrix(w, hidden))
    for step, (epoch, rows) in zip(range(1, steps + 1), batches(len(X), batch, rng), strict=False):
        w, record = one_step(X[rows], y[rows], w, budget, gates_of(X[rows], vectors))
        moved = epoch > 1 and (step - 1) % update_gates_every == 0
        if moved:
            vectors = as_matrix(w, hidden)
        result.history.append({"step": step, **record, "moved": moved})
        result.weights = as_matrix(w, hidden)
        if callback is not None:
            callback(result.history[-1], result.weights)
    result.settled_step = settled_step(result.history)
    return result


def one_step(X: Array, y: Array, w: Array, budget: int, gates: Array) -> tuple[Array, dict[str, Any]]:
    """Take one thresholded gradient step from ``w`` and refine it, with the gates held fixed."""
    support = np.flatnonzero(w)
    columns = columns_of(X, gates, support)
    g = gradient(X, gates, columns @ w[support] - y)
    eta = step_size(columns, g[support])
    w = keep_largest(w - eta * g, budget)

    support = np.flatnonzero(w)
    columns = columns_of(X, gates, support)
    w[support], inner = refine(columns, y, w[support], eta)
    loss = squared_error(columns, y, w[support])
    return w, {"loss": loss, "support": tuple(support.tolist()), "eta": eta, "inner": inner}


def step_size(columns: Array, g: Array) -> float:
    """Return the normalised step ``||g_S||^2 / ||A_S g_S||^2``, the exact minimiser along ``-g_S``.

    From an empty support, where the quotient is 0/0, it is 1e-14. Zero where the gradient on the support
    vanishes in every row: there is nowhere to go.
    """
    if g.size == 0:
        return FIRST_STEP_SIZE
    image = columns @ g
    curvature = float(image @ image)
    return float(g @ g) / curvature if curvature > 0 else 0.0


def refine(columns: Array, y: Array, w: Array, eta: float) -> tuple[Array, int]:
    """Take ten gradient steps on the support, each with a step size t that Armijo's rule accepts.

    With ``f(w) = ||A_S w - y||^2``, not halved, and ``g = A_S^T (A_S w - y)``, half its gradient, t is
    accepted when::

        f(w - t g) <= f(w) - 0.9 t ||g||^2

    f falls by ``2 t ||g||^2 - t^2 ||A_S g||^2``, so this accepts every t up to 1.1 times the exact minimiser
    along ``-g``. t starts from ``eta``, may be halved 11 times in each inner step, and carries over to the
    next. When no halving serves, all the inner steps are given up and the thresholded iterate is returned.

    Returns
    -------
    tuple of array and int
        The weights on the support, and how many inner steps they hold (0 after giving up).
    """
    thresholded, t = w, eta
    for _ in range(INNER_STEPS):
        g = columns.T @ (columns @ w - y)
        before = squared_error(columns, y, w)
        for _ in range(HALVINGS + 1):
            if squared_error(columns, y, w - t * g) <= before - ARMIJO * t * float(g @ g):
                break
            t /= 2
        else:
            return thresholded, 0
        w = w - t * g
    return w, INNER_STEPS


def gates_of(X: Array, vectors: Array) -> Array:
    """Return the 0/1 gates ``X h > 0``, of shape (rows, neurons); a zero vector has an empty gate."""
    return (X @ vectors > 0).astype(np.float64)


def gradient(X: Array, gates: Array, residual: Array) -> Array:
    """Return ``A^T residual``, building the masked block ``D_i X`` of one neuron after the other."""
    return np.concatenate([(gate[:, None] * X).T @ residual for gate in gates.T])


def columns_of(X: Array, gates: Array, support: Indices) -> Array:
    """Return a copy of the columns of A on a support, of shape (rows, len(support))."""
    neurons, features = np.divmod(support, X.shape[1])
    return gates[:, neurons] * X[:, features]


def squared_error(columns: Array, y: Array, w: Array) -> float:
    """Return ``||A_S w - y||^2``, neither halved nor averaged."""
    residual = columns @ w - y
    return float(residual @ residual)


def keep_largest(w: Array, budget: int) -> Array:
    """Return ``H_s(w)``: the ``budget`` largest magnitudes, ties to the lower index, and zeros elsewhere."""
    kept = np.argsort(-np.abs(w), kind="stable")[:budget]
    sparse = np.zeros_like(w)
    sparse[kept] = w[kept]
    return sparse


def batches(rows: int, batch: int | None, rng: np.random.Generator | None) -> Iterator[tuple[int, Any]]:
    """Yield ``(epoch, rows)`` for ever, epochs counted from 1; the last batch of an epoch may be short."""
    epoch = 0
    while True:
        epoch += 1
        if batch is None:
            yield epoch, slice(None)
            continue
        order = np.arange(rows) if rng is None else rng.permutation(rows)
        for start in range(0, rows, batch):
            yield epoch, order[start : start + batch]


def settled_step(history: list[dict[str, Any]]) -> int | None:
    """Return the first step from which the support stayed the same although the gates moved, or None."""
    last_change = 0
    for position, record in enumerate(history):
        if position == 0 or record["support"] != history[position - 1]["support"]:
            last_change = position
    moved_since = any(record["moved"] for record in history[last_change:-1])
    return int(history[last_change]["step"]) + 1 if moved_since else None


def as_matrix(w: Array, hidden: int) -> Array:
    """Return the flat weights as a matrix of shape (features, neurons)."""
    matrix: Array = w.reshape(hidden, -1).T.copy()
    return matrix


def predict(X: Array, weights: Array) -> Array:
    """Return the fused ReLU network's output, ``sum_i relu(X w_i)``."""
    output: Array = np.maximum(np.asarray(X, dtype=np.float64) @ weights, 0).sum(axis=1)
    return output


def psnr(y: Array, prediction: Array) -> float:
    """Return the peak signal-to-noise ratio in dB, ``20 log10(max |y|) - 10 log10(mean squared error)``."""
    y = np.asarray(y, dtype=np.float64)
    error = float(np.mean((y - prediction) ** 2))
    if error == 0:
        return float("inf")
    return float(20 * np.log10(np.abs(y).max()) - 10 * np.log10(error))
