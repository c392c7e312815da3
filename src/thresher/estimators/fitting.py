"""What regressor and classifier share: parameters, checks, a run of the solver, what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from thresher.errors import DataError, InterruptedFitWarning, warn_user
from thresher.estimators.layering import TrainedLayers, train_layers
from thresher.estimators.predicting import Predictor
from thresher.estimators.training import LARGEST, Settings, Trained, train
from thresher.network import Network
from thresher.objective.losses import Loss
from thresher.progress import Progress
from thresher.solvers.chain import ChainIHT
from thresher.solvers.joint import Joint
from thresher.solvers.loop import INTERRUPTED, Record, Status


class SparseMLP(Predictor):
    """What the regressor and the classifier share."""

    def __init__(
        self,
        budget: int = 100,
        hidden: int | tuple[int, ...] = 100,
        *,
        solver: Any = "auto",
        bias: bool | None = None,
        scale: bool | None = None,
        alpha: float | None = None,
        batch_size: int | str | None = "auto",
        max_iter: int = 200,
        tol: float = 1e-15,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        update_gates_every: int = 1,
        memory_limit: int | str = "64MB",
        device: str = "cpu",
        dtype: str = "auto",
        random_state: Any = None,
        verbose: bool | int = False,
        warm_start: bool = False,
        callback: Callable[[Record], object] | None = None,
    ) -> None:
        self.budget = budget
        self.hidden = hidden
        self.solver = solver
        self.bias = bias
        self.scale = scale
        self.alpha = alpha
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.update_gates_every = update_gates_every
        self.memory_limit = memory_limit
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.callback = callback

    def _train(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        loss: Loss,
        settings: Settings,
        labels: np.ndarray | None = None,
        start: Network | None = None,
    ) -> Trained | TrainedLayers:
        """Split off a validation part if asked, run the solver under a progress bar, keep what it says."""
        refuse_extreme_weights(weight)
        held_out = None
        if self.early_stopping:
            X, y, weight, held_out = self._split(X, y, weight, labels, settings.seed)
        if start is None and self.warm_start:
            start = self._continued(X, y, settings)
        layered = y.ndim > 1 or len(settings.widths) > 1 or isinstance(settings.solver, (Joint, ChainIHT))
        training: Any = train_layers if layered else train
        if layered and y.ndim == 1:
            y = y[:, None]
            held_out = None if held_out is None else (held_out[0], held_out[1][:, None], held_out[2])
        with Progress(settings.max_iter, shown=bool(self.verbose)) as progress:

            def report(record: Record) -> object:
                progress.update(record)
                return self.callback(record) if self.callback is not None else None

            trained: Trained | TrainedLayers = training(
                X, y, weight, loss, settings, start=start, held_out=held_out, callback=report
            )
        if trained.solution.status is INTERRUPTED:
            warn_user(
                "the fit was interrupted; the best network found so far is kept. Fit again with "
                "warm_start=True to go on from it.",
                InterruptedFitWarning,
            )
        return trained

    def _train_part(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        loss: Loss,
        settings: Settings,
    ) -> Trained | TrainedLayers:
        """Go through some rows once, from the network there is: room for new weights, then back to budget."""
        parts = getattr(self, "parts_seen_", 0)
        start = self._continued(X, y, settings)
        if start is None:
            parts = 0
        solver = Joint(batch_size=settings.batch_size, passes=1, seed=settings.seed + parts)
        self.parts_seen_ = parts + 1
        return self._train(X, y, weight, loss, replace(settings, solver=solver, max_iter=1), start=start)

    def _split(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, labels: np.ndarray | None, seed: int
    ) -> tuple[Any, np.ndarray, np.ndarray | None, tuple[Any, np.ndarray, np.ndarray | None]]:
        """Set rows aside for early stopping, keeping the shares of the classes."""
        if labels is not None and np.unique(labels, return_counts=True)[1].min() < 2:
            labels = None
        rows = np.arange(len(y))
        try:
            kept, out = train_test_split(
                rows, test_size=self.validation_fraction, random_state=seed, stratify=labels
            )
        except ValueError as error:
            raise DataError(
                f"early_stopping needs rows to set aside, but {len(y)} rows cannot be split with "
                f"validation_fraction={self.validation_fraction}: {error} Use early_stopping=False or more "
                "rows."
            ) from error
        kept.sort()
        part = None if weight is None else weight[kept]
        return X[kept], y[kept], part, (X[out], y[out], None if weight is None else weight[out])

    def _continued(self, X: Any, y: np.ndarray, settings: Settings) -> Network | None:
        """Give the network of the last fit if it has the right shape."""
        network: Network | None = getattr(self, "network_", None)
        shape = X.shape[1], settings.widths, 1 if y.ndim == 1 else y.shape[1]
        fits = network is not None and (network.inputs, network.hidden, network.outputs) == shape
        return network if fits else None

    def _keep(self, trained: Trained | TrainedLayers, settings: Settings, **links: Any) -> None:
        solution = trained.solution
        names = getattr(self, "feature_names_in_", None)
        features = None if names is None else tuple(str(name) for name in names)
        self.network_ = Network(trained.layers, features=features, **links)
        self.status_ = solution.status
        if settings.budget >= trained.size:
            self.status_ = Status(
                solution.status.name,
                f"budget={settings.budget:,} covers all {trained.size:,} weights of this network, so none "
                f"had to be left out; {solution.status.advice}",
            )
        self.history_ = solution.history
        self.loss_curve_ = [record["loss"] for record in solution.history]
        self.n_iter_ = max(1, round(solution.history[-1]["passes"])) if solution.history else 0
        self.loss_ = solution.loss

    @property
    def coefs_(self) -> list[np.ndarray]:
        """The weights of each layer, written out."""
        check_is_fitted(self, "network_")
        return self.network_.coefs

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """The biases of each layer, written out."""
        check_is_fitted(self, "network_")
        return self.network_.intercepts


def refuse_extreme_weights(weight: np.ndarray | None) -> None:
    """Refuse sample weights that vanish or overflow in float32."""
    largest = 1.0 if weight is None else float(weight.max())
    if not 1 / LARGEST < largest < LARGEST:
        raise DataError(
            f"the largest weight of a sample is {largest:.3g}, which float32 cannot compute with. Scale "
            "sample_weight and class_weight to the order of 1."
        )


def checked_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Check the weights of samples, if there are any."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.sum() > 0:
        raise DataError(
            "sample_weight is zero for every row, so there is nothing to fit. Give some row weight."
        )
    return weight
