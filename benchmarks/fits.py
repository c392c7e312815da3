"""What the long benchmarks fit: files of the data folder, shifted tables, standardised peers, timed fits."""

from __future__ import annotations

import time
import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from thresher import SparseMLPRegressor
from thresher.data.folder import data_folder
from thresher.errors import DataFileError, InterruptedFitWarning
from thresher.experiments.peers import count_numbers

# "Shifted": every column is moved by this many of its standard deviations.
SPREADS = 1000


def data_file(*parts: str) -> Path:
    """Find a file in the folder that THRESHER_DATA names."""
    path = data_folder().joinpath(*parts)
    if not path.is_file():
        raise DataFileError(f"{path} is not there. Put it into the data folder, or leave its data set out.")
    return path


def file_print(path: Path) -> str:
    """Make a short text of what a file holds."""
    return sha256(path.read_bytes()).hexdigest()[:12]


def shifted(X: np.ndarray) -> np.ndarray:  # (rows, columns)
    """Move every column by 1,000 of its spreads; a constant one, by 1,000."""
    spread = X.std(axis=0)
    return X + SPREADS * np.where(spread > 0, spread, 1.0)


def standardised(model: Any, target: bool = False) -> Any:
    """Standardise inputs, and targets if asked, around a model that needs it."""
    pipeline = make_pipeline(StandardScaler(), model)
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler()) if target else pipeline


def timed_fit(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fit a model in place, and tell its processor time, nonzeros and status.

    Both our estimators and scikit-learn's networks keep what they have on Ctrl-C; here it ends the run, since
    half a fit is no result.
    """
    with warnings.catch_warnings():
        # A dense network that stops after its passes does as intended.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", InterruptedFitWarning)
        warnings.filterwarnings("error", message="Training interrupted by user")
        began, clock = time.process_time(), time.perf_counter()
        try:
            model.fit(X, y)
        except UserWarning as warning:
            raise KeyboardInterrupt from warning
        spent = {"cpu": time.process_time() - began, "wall": time.perf_counter() - clock}
    return {
        **{name: round(value, 4) for name, value in spent.items()},
        "nonzeros": nonzeros(model),
        "status": str(model.status_) if hasattr(model, "status_") else None,
    }


def warm_up() -> None:
    """Fit something small, so that what is loaded at first use falls on no fit that is timed."""
    X = np.random.default_rng(0).standard_normal((60, 2))
    timed_fit(SparseMLPRegressor(budget=4, hidden=2, random_state=0), X, np.abs(X[:, 0]))


def nonzeros(model: Any) -> int | None:
    """Count the numbers a fitted model holds; None for trees."""
    last = getattr(model, "regressor_", model)
    last = last[-1] if hasattr(last, "steps") else last
    if hasattr(last, "nonzeros_"):
        return int(last.nonzeros_)
    return count_numbers(last) if hasattr(last, "coefs_") or hasattr(last, "coef_") else None
