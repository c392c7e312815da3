"""Theorem 1, run: its exact algorithm on planted weights, with its bounds checked at every step.

With unit columns, f(w) = ||A w - y||^2 / 2, step size 2 / (3 beta) and budget s~, let S and S+ be the
supports before and after a step and S* the planted one. On I = S, S+ and S* together, with alpha and beta the
extreme eigenvalues there,

- f never grows, whatever the budget;
- where ``s~ >= 32 (beta / alpha)^2 s``, or all columns are allowed, f - f* shrinks by ``1 - alpha / (9
  beta)`` at least;
- ``||w - w*||^2 <= (2 / alpha) (f - f*)``.

The first two follow the argument of Jain, Tewari and Kar, with the constant worked out; docs/theory.md has
the steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from thresher.errors import DataError, ParameterError
from thresher.linear.matrix import MatrixOperator
from thresher.objective.linear import Linear
from thresher.solvers.iht import theorem_iht
from thresher.solvers.loop import Iterate, run
from thresher.theory.spectra import spectrum

# What the proof gives for the rate, 1 - alpha / (9 beta).
RATE = 9.0

# Below this share of the first loss, float64 no longer tells one step from the next.
FLOOR = 1e-22

# Weights this close, relative to the largest planted one, count as reached.
REACHED = 1e-6


def inflated_budget(budget: int, alpha: float, beta: float) -> float:
    """Give the budget that theorem 1 asks for, ``32 (beta / alpha)^2 s``; infinite where alpha is not
    positive.

    Examples
    --------
    >>> inflated_budget(3, alpha=0.5, beta=1.5)
    864.0
    """
    return 32 * (beta / alpha) ** 2 * budget if alpha > 0 else math.inf


def steps_needed(alpha: float, beta: float, first: float, goal: float) -> float:
    """Give the steps after which f is surely at most `goal`: ``9 (beta / alpha) ln(f(w_0) / goal)``.

    Examples
    --------
    >>> round(steps_needed(alpha=0.5, beta=1.5, first=1.0, goal=1e-6))
    373
    """
    if goal <= 0 or first < 0:
        raise ParameterError(f"first={first} and goal={goal}, but losses are positive numbers.")
    return RATE * beta / alpha * max(0.0, math.log(first / goal)) if alpha > 0 and first > 0 else math.inf


@dataclass(frozen=True, eq=False)
class TheoremRun:
    """What came of running the theorem's algorithm.

    Attributes
    ----------
    weights : array of shape (columns,)
        The last iterate, cut to the planted number of nonzeros.
    error : float
        Its largest difference from the planted weights, relative to the largest of these.
    losses, distances : array
        f(w_k) and ||w_k - w*|| at every step, from w_0 = 0 on.
    budget : int
        The budget s~ that was used.
    asked : float
        The budget that the theorem asks for, with the constants of the supports visited.
    alpha, beta : float
        The extreme eigenvalues over the supports visited, each the worst; beta is also the one used for the
        step.
    worst_alpha : float
        The smallest eigenvalue of all columns together, which no support of any size undercuts.
    monotone : bool
        Whether f never grew.
    rate_kept, distance_kept : bool
        Whether the bounds on f and on the distance held at every step where the theorem states them.
    rate_stated : int
        Steps at which the bound on f was stated, and checked.
    """

    weights: NDArray[np.float64]
    error: float
    losses: NDArray[np.float64]
    distances: NDArray[np.float64]
    budget: int
    asked: float
    alpha: float
    beta: float
    worst_alpha: float
    monotone: bool
    rate_kept: bool
    distance_kept: bool
    rate_stated: int

    @property
    def reached(self) -> bool:
        """Whether the planted weights were found."""
        return self.error <= REACHED

    @property
    def condition(self) -> float:
        """Give beta / alpha over the supports visited; infinite where some of them are dependent."""
        return self.beta / self.alpha if self.alpha > 0 else math.inf

    @property
    def allowed(self) -> bool:
        """Whether the budget was as large as the theorem asks, or held all columns."""
        return self.budget >= min(self.asked, len(self.weights))


def run_theorem(
    columns: NDArray[np.float64],  # (n, p), unit
    planted: NDArray[np.float64],  # (p,), in units of these columns
    *,
    allowed: int | None = None,
    max_iter: int = 2000,
) -> TheoremRun:
    """Run theorem 1's algorithm on labels that planted weights make, and check its statements.

    Parameters
    ----------
    columns : array of shape (n, p)
        Unit columns of an enumerated dictionary, as `dictionary_columns` gives.
    planted : array of shape (p,)
        The planted weights of the unit columns.
    allowed : int, optional
        The budget s~ to use. By default what the theorem asks for, which is all columns but for the best
        conditioned of dictionaries.
    max_iter : int
        The most steps.

    Examples
    --------
    >>> A = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 6)))[0]
    >>> found = run_theorem(A, np.array([0.0, 2.0, 0.0, 0.0, -1.0, 0.0]))
    >>> found.reached, found.monotone, found.rate_kept, found.distance_kept
    (True, True, True, True)
    """
    p = columns.shape[1]
    truth = np.asarray(planted, dtype=np.float64)
    if truth.shape != (p,) or not truth.any():
        raise DataError(
            f"planted has shape {truth.shape}, but {p} columns need as many weights, not all of them zero."
        )
    size = int(np.count_nonzero(truth))
    whole = spectrum(columns)
    if allowed is None:
        allowed = int(min(p, inflated_budget(size, whole.certain, whole.beta)))
    budget = max(size, min(int(allowed), p))
    labels = columns @ truth
    path = _run(columns, labels, size, budget, whole.beta, max_iter)
    return _checked(columns, labels, truth, path, budget, whole.beta, whole.certain)


def _run(
    columns: NDArray[np.float64],
    labels: NDArray[np.float64],
    size: int,
    budget: int,
    beta: float,
    max_iter: int,
) -> list[NDArray[np.float64]]:
    """Run the solver and keep every iterate, the zero vector first."""
    path: list[NDArray[np.float64]] = [np.zeros(columns.shape[1])]
    floor = FLOOR * float(labels @ labels) / (2 * len(labels))

    def keep(record: dict[str, Any], iterate: Iterate) -> bool:
        path.append(iterate.w.to_dense().numpy().astype(np.float64))
        return iterate.loss <= floor

    operator = MatrixOperator(torch.from_numpy(np.ascontiguousarray(columns)))
    solver = theorem_iht(beta, size, budget / size)
    run(solver, Linear(operator, torch.from_numpy(labels)), size, max_iter=max_iter, callback=keep)
    return path


def _checked(
    columns: NDArray[np.float64],
    labels: NDArray[np.float64],
    truth: NDArray[np.float64],
    path: list[NDArray[np.float64]],
    budget: int,
    beta: float,
    worst: float,
) -> TheoremRun:
    """Measure the constants on the supports visited, and hold every step against its bounds."""
    residuals = np.array([columns @ w - labels for w in path])
    losses = (residuals**2).sum(axis=1) / 2
    distances = np.array([float(np.linalg.norm(w - truth)) for w in path])
    size = int(np.count_nonzero(truth))
    alphas = _alphas(columns, truth, path)
    clear = losses > FLOOR * losses[0]
    rounding = 1e-9 * losses[0]
    stated = kept = 0
    for step in range(len(path) - 1):
        enough = budget == columns.shape[1] or budget >= inflated_budget(size, alphas[step], beta)
        if clear[step] and enough and alphas[step] > 0:
            stated += 1
            kept += (
                losses[step + 1] <= (1 - alphas[step] / (RATE * beta)) * losses[step] + 1e-12 * losses[step]
            )
    near = [
        distances[step] ** 2 <= 2 * losses[step] / alphas[step] * (1 + 1e-9) + rounding
        for step in range(len(path) - 1)
        if clear[step] and alphas[step] > 0
    ]
    last = path[-1].copy()
    last[np.argsort(-np.abs(last), kind="stable")[size:]] = 0.0
    alpha = float(min(alphas)) if alphas else worst
    return TheoremRun(
        weights=last,
        error=float(np.abs(last - truth).max() / np.abs(truth).max()),
        losses=losses,
        distances=distances,
        budget=budget,
        asked=inflated_budget(size, alpha, beta),
        alpha=alpha,
        beta=beta,
        worst_alpha=worst,
        monotone=bool((np.diff(losses) <= 1e-12 * losses[0]).all()),
        rate_kept=bool(kept == stated),
        distance_kept=all(near),
        rate_stated=stated,
    )


def _alphas(
    columns: NDArray[np.float64], truth: NDArray[np.float64], path: list[NDArray[np.float64]]
) -> list[float]:
    """Give, for every step, what the smallest eigenvalue surely is on its supports and the planted one."""
    found: dict[bytes, float] = {}
    alphas = []
    for before, after in pairwise(path):
        visited = (before != 0) | (after != 0) | (truth != 0)
        key = np.packbits(visited).tobytes()
        if key not in found:
            found[key] = spectrum(columns[:, visited]).certain if visited.sum() <= len(columns) else 0.0
        alphas.append(found[key])
    return alphas


def planted_weights(
    weights: NDArray[np.float64],  # (features, neurons), fused: sign_i u_i
    gates: NDArray[np.bool_],  # (neurons, n)
    dictionary: NDArray[np.bool_],  # (patterns, n)
    norms: NDArray[np.float64],  # (patterns * features,)
) -> NDArray[np.float64]:
    """Write a planted network as weights of a dictionary's unit columns, each neuron at its own gate."""
    held = {row.tobytes(): place for place, row in enumerate(np.packbits(dictionary, axis=1))}
    features = len(weights)
    found = np.zeros(len(norms))
    for neuron, row in enumerate(np.packbits(gates, axis=1)):
        if row.tobytes() not in held:
            raise DataError(
                f"neuron {neuron} has a gate that is not in the dictionary. Enumerate generators with as "
                f"many nonzeros as the neuron has, and both signs."
            )
        start = held[row.tobytes()] * features
        found[start : start + features] += weights[:, neuron]
    return found * norms
