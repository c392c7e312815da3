"""Baselines: how others train or prune ReLU networks, with the estimators' interface and their exact budgets.

Each starts from a dense network in torch. `BASELINES` names them all; called with a task and a few settings
that any sweep has, an entry gives an estimator that is ready to fit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from thresher.baselines.base import Baseline
from thresher.baselines.pruning import Dense, GradualPruning, IterativePruning, OneShotPruning
from thresher.baselines.rigl import RigL
from thresher.baselines.sparse_layers import SparseLabRigL

BASELINES: dict[str, Callable[..., Baseline]] = {
    "imp-paper": partial(
        IterativePruning, learning_rate=1e-3, retrain=False, scale=False, decay=0.0, loss="squared"
    ),
    "imp": IterativePruning,
    "gmp": GradualPruning,
    "dense": Dense,
    "one-shot": OneShotPruning,
    "rigl": RigL,
}

__all__ = [
    "BASELINES",
    "Baseline",
    "Dense",
    "GradualPruning",
    "IterativePruning",
    "OneShotPruning",
    "RigL",
    "SparseLabRigL",
]
