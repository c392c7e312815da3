"""Networks that are nearly as good at the same budget: how different can an equally good explanation be?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from thresher.errors import ParameterError
from thresher.explain.deviance import Deviance
from thresher.network import Network
from thresher.stability.halves import check_halves, complementary_pairs, fitted
from thresher.stability.refitting import Refitter
from thresher.stability.stability import plain_rows

# Networks that are tried for each that is wanted.
TRIED = 2
# Folds on which structures are compared, their numbers refitted to the others.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Pool:
    """Networks within one standard error of the best, of different structure.

    Attributes
    ----------
    networks : tuple of Network
        Fitted to all rows, the best first.
    scores : array of shape (size,)
        Mean loss on rows left out of a refit of the structure (squared error, log loss, half the Poisson
        deviance), as a share of that of the best constant.
    worse : array of shape (size,)
        How much worse than the best, in standard errors of the difference.
    inputs : array of shape (size, size)
        Of each two networks, the share of the inputs of both that are common to them.
    answers : array of shape (size, size)
        Of each two networks, the root mean square difference of their outputs, as a share of the spread of
        the best one's.
    tried : int
    """

    networks: tuple[Network, ...]
    scores: np.ndarray
    worse: np.ndarray
    inputs: np.ndarray
    answers: np.ndarray
    tried: int

    def __len__(self) -> int:
        return len(self.networks)

    def __str__(self) -> str:
        head = (
            f"{len(self)} of {self.tried} networks are of different structure and within a standard error of "
        )
        lines = [head + "the best", "", "  network  nonzeros  inputs  score  common inputs  other answers"]
        for place, network in enumerate(self.networks):
            lines.append(
                f"  {place + 1:>7}  {network.nonzeros:>8}  {len(network.inputs_used()):>6}  "
                f"{self.scores[place]:.3f}  {self.inputs[0, place]:>13.0%}  {self.answers[0, place]:>13.1%}"
            )
        return "\n".join(lines)

    def plain(self) -> dict[str, Any]:
        """Give all of it as plain values, fit for JSON; networks as what they hold."""
        return {
            "tried": self.tried,
            "scores": self.scores.tolist(),
            "worse": self.worse.tolist(),
            "common_inputs": self.inputs.tolist(),
            "other_answers": self.answers.tolist(),
            "networks": [
                {"nonzeros": network.nonzeros, "inputs": network.inputs_used().tolist()}
                for network in self.networks
            ],
        }


def pool(
    estimator: Any,
    X: Any,
    y: Any,
    size: int = 10,
    *,
    random_state: int = 0,
    each: Callable[[str, int, int], object] | None = None,
) -> Pool:
    """Look for networks of other structure that do as well at the same budget.

    Candidates are fits with other seeds to all rows, and fits to half of them whose numbers are then refitted
    to all. Structures are compared on rows left out of a refit, and those stay that are worse than the best
    by less than a standard error of the difference.

    Parameters
    ----------
    estimator : SparseMLPRegressor or SparseMLPClassifier
        Fitted to these rows.
    X : array-like or sparse array of shape (n, inputs)
    y : array of shape (n,) or (n, targets)
    size : int
        Networks at most; twice as many are tried.
    random_state : int
    each : callable, optional
        Called after each fit with "networks", how many are done, and of how many.
    """
    check_is_fitted(estimator, "network_")
    if size < 2:
        raise ParameterError(f"size={size}, but a pool is of 2 networks or more: try 10.")
    X, y = plain_rows(X), np.asarray(y)
    check_halves(y, estimator.network_.classes is not None)
    found = _candidates(estimator, X, y, size, random_state, each)
    losses = np.array([_left_out(network, X, y, random_state) for network in found])
    order = np.argsort(losses.mean(axis=1), kind="stable")
    differences = losses - losses[order[0]]
    errors = differences.std(axis=1, ddof=1) / len(y) ** 0.5
    near = [place for place in order.tolist() if differences[place].mean() <= errors[place]][:size]
    networks = tuple(found[place] for place in near)
    scale = max(_constant_loss(networks[0], y), 1e-300)
    worse = [differences[place].mean() / max(errors[place], 1e-300) for place in near]
    return Pool(
        networks,
        losses[near].mean(axis=1) / scale,
        np.array(worse),
        _common(networks),
        _apart(networks, X),
        TRIED * size,
    )


def _candidates(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    size: int,
    seed: int,
    each: Callable[[str, int, int], object] | None,
) -> list[Network]:
    """Fit candidates, and give those of different structure, all numbers fitted to all rows."""
    labels = y if estimator.network_.classes is not None else None
    count = TRIED * size
    halves = [half for pair in complementary_pairs(len(y), count, seed, labels) for half in pair]
    found: list[Network] = [estimator.network_]
    seen = {_structure(estimator.network_)}
    for number in range(1, count):
        every = number % 2 == 0
        rows = np.arange(len(y)) if every else halves[number]
        network = fitted(estimator, X, y, rows, seed + number).network_
        if each is not None:
            each("networks", number + 1, count)
        if _structure(network) in seen:
            continue
        seen.add(_structure(network))
        found.append(network if every else Refitter.of(network, X, y, keeps=True).refit())
    return found


def _structure(network: Network) -> tuple[Any, ...]:
    """Say which inputs meet in which neurons, whatever the neurons' order."""
    first = network.layers[0].weights.tocsc()
    groups = [
        tuple(first.indices[first.indptr[j] : first.indptr[j + 1]].tolist()) for j in range(first.shape[1])
    ]
    signs = (first.data > 0).tolist()
    sides = [tuple(signs[first.indptr[j] : first.indptr[j + 1]]) for j in range(first.shape[1])]
    direct = () if network.direct is None else tuple(np.unique(network.direct.tocoo().coords[0]).tolist())
    return (tuple(sorted(zip(groups, sides, strict=True))), direct)


def _left_out(network: Network, X: Any, y: np.ndarray, seed: int) -> np.ndarray:
    """Give the loss on each row of the structure refitted to the rows of other folds."""
    refitter, fold = (
        Refitter.of(network, X, y, keeps=True),
        np.random.default_rng(seed).permutation(len(y)) % FOLDS,
    )
    losses = np.empty(len(y))
    for number in range(FOLDS):
        out = fold == number
        outputs = refitter.refit((~out).astype(np.float64)).forward(X[out])
        losses[out] = Deviance.of(network, y[out]).each(outputs)
    return losses


def _constant_loss(network: Network, y: np.ndarray) -> float:
    return Deviance.of(network, y).least_constant() / len(y)


def _common(networks: tuple[Network, ...]) -> np.ndarray:
    used = [set(network.inputs_used().tolist()) for network in networks]
    return np.array([[len(one & two) / max(1, len(one | two)) for two in used] for one in used])


def _apart(networks: tuple[Network, ...], X: Any) -> np.ndarray:
    outputs = np.array([network.forward(X) for network in networks])
    spread = float(outputs[0].std(axis=0).mean()) or 1.0
    return np.array([[np.sqrt(((one - two) ** 2).mean()) / spread for two in outputs] for one in outputs])
