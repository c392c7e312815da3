"""Train ReLU networks that hold at most a given number of nonzero weights.

The public names are loaded when they are first used, so that importing the package, and predicting with a
saved network, costs neither torch nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thresher._version import __version__

if TYPE_CHECKING:
    from thresher.estimators import SparseMLPClassifier, SparseMLPRegressor
    from thresher.estimators.cv import SparseMLPClassifierCV, SparseMLPRegressorCV
    from thresher.network import Network
    from thresher.report.path import plot_path
    from thresher.solvers.iht import iht
    from thresher.theory.certificate import certify
    from thresher.versions import show_versions

_HOMES = {
    "Network": "thresher.network.network",
    "SparseMLPClassifier": "thresher.estimators.mlp",
    "SparseMLPClassifierCV": "thresher.estimators.cv",
    "SparseMLPRegressor": "thresher.estimators.mlp",
    "certify": "thresher.theory.certificate",
    "SparseMLPRegressorCV": "thresher.estimators.cv",
    "iht": "thresher.solvers.iht",
    "plot_path": "thresher.report.path",
    "show_versions": "thresher.versions",
}

__all__ = [
    "Network",
    "SparseMLPClassifier",
    "SparseMLPClassifierCV",
    "SparseMLPRegressor",
    "SparseMLPRegressorCV",
    "__version__",
    "certify",
    "iht",
    "plot_path",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'thresher' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
