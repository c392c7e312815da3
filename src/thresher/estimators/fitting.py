"""What regressor and classifier share: parameters, checks, a run of the solver, what is kept of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse
import torch
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from thresher.device import using
from thresher.errors import DataError, InterruptedFitWarning, ParameterError, warn_user
from thresher.estimators.checkpointing import checkpointed
from thresher.estimators.importances import importances_of, spreads_of
from thresher.estimators.predicting import Predictor
from thresher.estimators.refusals import LARGEST
from thresher.estimators.requiring import NAMES, refuse_outputs, required_of
from thresher.estimators.task import Rows, Settings, Task
from thresher.estimators.train import Trained, solver_of, train
from thresher.network import Network
from thresher.network.requirements import ENTRY, Requirements, refuse_violations
from thresher.objective.loss import Loss
from thresher.objective.ranks import Alone
from thresher.progress import Progress
from thresher.solvers.auto import Auto
from thresher.solvers.loop import Record
from thresher.solvers.status import INTERRUPTED, Status

if TYPE_CHECKING:
    from thresher.stability.pool import Pool
    from thresher.stability.stability import Stability

# Parameters that each rank may have of its own, or that are compared in another way.
OWN = ("_", "callback", "random_state", "verbose")


@dataclass(eq=False, repr=False)
class SparseMLP(Predictor):
    """What the regressor and the classifier share; :class:`SparseMLPRegressor` explains the parameters."""

    budget: int = 100
    hidden: int | tuple[int, ...] = 100
    _: KW_ONLY
    solver: Any = "auto"
    loss: Any = "auto"
    bias: bool | None = None
    scale: bool | None = None
    alpha: float | None = None
    batch_size: int | str | None = "auto"
    max_iter: int = 200
    tol: float = 1e-15
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    update_gates_every: int = 1
    memory_limit: int | str = "64MB"
    screen: float | None = None
    max_inputs: int | None = None
    max_fan_in: int | None = None
    groups: Any = None
    feature_costs: Any = None
    max_cost: float | None = None
    monotone: Any = None
    device: str | torch.device = "cpu"
    dtype: str = "auto"
    tuning: Any = None
    random_state: Any = None
    verbose: bool | int = False
    warm_start: bool = False
    callback: Callable[[Record], object] | None = None
    checkpoint: Any = None
    checkpoint_every: str | int = "5min"

    # Whether a warm start comes from a larger budget, on a path of budgets.
    _descends: ClassVar[bool] = False

    def stability(self, X: Any, y: Any, **choices: Any) -> Stability:
        """Say which inputs and kinks recur in fits to half of the rows, and keep it as ``stability_``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,) or (n, targets)
            The rows of `fit`.
        **choices
            Those of :func:`thresher.stability.stability`.
        """
        from thresher.stability.stability import stability

        self.stability_ = stability(self, X, y, **choices)
        return self.stability_

    def pool(self, X: Any, y: Any, size: int = 10, **choices: Any) -> Pool:
        """Give networks of other structure that do nearly as well within the same budget.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,) or (n, targets)
            The rows of `fit`.
        size : int
            Networks at most; twice as many are tried.
        **choices
            Those of :func:`thresher.stability.pool`.
        """
        from thresher.stability.pool import pool

        return pool(self, X, y, size, **choices)

    def _train(
        self, rows: Rows, outputs: int, loss: Loss, settings: Settings, start: Network | None = None
    ) -> Trained:
        """Split off a validation part if asked, run the solver under a progress bar, keep what it says."""
        rows.ranks.together(lambda: refuse_extreme_weights(rows.weight))
        self._refuse_options(settings, outputs, rows.weight)
        if start is None and self.warm_start:
            start = self._continued(rows, outputs, settings)
        required = self._required(rows, outputs, start)
        settings = replace(settings, required=required)
        known = None
        if start is not None:
            direct = [] if start.direct is None else [start.direct]
            known = [*direct, *(part for layer in start.layers for part in (layer.weights, layer.bias))]
        data = {"X": rows.X, "y": rows.y, "sample_weight": rows.weight, "the network to start from": known}
        with using(settings.device), checkpointed(self, settings.seed, rows.ranks, **data) as seed:
            settings = replace(settings, seed=seed, descends=start is not None and self._descends)
            fitted, held_out = rows, None
            if self.early_stopping:
                kept, out = rows.ranks.together(lambda: self._split(rows, seed))
                fitted, held_out = rows.take(kept), rows.take(out)
            trained = self._run(fitted, outputs, loss, settings, start, held_out)
            spreads = spreads_of(rows, trained.layers, trained.direct)
            trained = replace(trained, spreads=spreads, required=required)
        if trained.solution.status is INTERRUPTED:
            on = "warm_start=True" if self.checkpoint is None else f"the same checkpoint={self.checkpoint!r}"
            warn_user(
                "the fit was interrupted; the best network found so far is kept. Fit again with "
                f"{on} to go on from it.",
                InterruptedFitWarning,
            )
        return trained

    def _required(self, rows: Rows, outputs: int, start: Network | None) -> Requirements:
        """Read what is required of the network, and refuse what cannot be promised."""
        required = required_of(self, rows.X.shape[1], getattr(self, "feature_names_in_", None))
        refuse_outputs(required, outputs)
        if start is not None and required:
            refuse_violations(
                start,
                required,
                "warm_start came with a network that does not meet what is required. Fit without warm_start",
            )
        return required

    def _run(
        self,
        rows: Rows,
        outputs: int,
        loss: Loss,
        settings: Settings,
        start: Network | None,
        held_out: Rows | None,
    ) -> Trained:
        """Run the solver under a progress bar."""
        with Progress(settings.max_iter, shown=bool(self.verbose)) as progress:

            def report(record: Record) -> object:
                progress.update(record)
                if self.callback is None:
                    return None
                # What one rank asks for, all do.
                return rows.ranks.highest(torch.tensor(bool(self.callback(record)), dtype=torch.uint8))

            return train(Task(rows, outputs, loss, settings, start, held_out), report)

    def _agreed(
        self, ranks: Alone, settings: Settings, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Settings:
        """Refuse ranks that ask for something else or have rows of another kind; the first gives the seed."""
        chosen = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in OWN}
        given = self.random_state if isinstance(self.random_state, Integral) else None
        ranks.refuse_differences(
            {
                "the number of columns": X.shape[1],
                "the type of X": ("sparse " if scipy.sparse.issparse(X) else "") + X.dtype.name,
                "the type of y": y.dtype.kind,
                "the number of targets": y.shape[1:],
                "the names of columns": list(getattr(self, "feature_names_in_", ())),
                "sample_weight": "given" if weight is not None else None,
                "callback": "given" if self.callback is not None else None,
                "random_state": given,
                **chosen,
            }
        )
        return replace(settings, seed=ranks.objects(settings.seed)[0])

    def _refuse_options(self, settings: Settings, outputs: int, weight: np.ndarray | None) -> None:
        """Refuse options that the solver would ignore."""
        solver = solver_of(settings, outputs)
        default = {name: field.default for name, field in self.__dataclass_fields__.items()}
        asked = {
            "early_stopping": self.early_stopping,
            "warm_start": self.warm_start,
            "tol": self.tol != default["tol"],
            "callback": self.callback is not None,
            "sample_weight": weight is not None,
        }
        ignored = [name for name, given in asked.items() if given and name not in solver.needs.options]
        # Solvers that are made here have taken these; one that came has its own.
        made = {
            "batch_size": isinstance(settings.batch_size, int) and settings.batch_size,
            "tuning": self.tuning,
            "screen": settings.screen,
        }
        # Inputs are chosen before any solver begins; these two it has to keep to itself.
        kept_to = {"max_fan_in": self.max_fan_in, "monotone": self.monotone}
        ignored += [name for name, given in kept_to.items() if given is not None and not solver.needs.allowed]
        ignored += [name for name, given in made.items() if given and getattr(solver, name, None) != given]
        if ignored:
            layers = len(settings.hidden)
            raise ParameterError(
                f"{' and '.join(ignored)} came, but {type(solver).__name__}, the solver of a network with "
                f"{layers} hidden layer{'s' * (layers > 1)} and {outputs} output{'s' * (outputs > 1)}, "
                "cannot honour that. Leave it out, or use solver='auto'."
            )

    def _train_part(self, rows: Rows, outputs: int, loss: Loss, settings: Settings) -> Trained:
        """Go through some rows once, from the network there is: room for new weights, then back to budget."""
        if self.checkpoint is not None:
            raise ParameterError(
                f"checkpoint={self.checkpoint!r} came, but partial_fit goes through its rows once, and every "
                "call goes on from the network there is. Leave it out, and save network_ between calls."
            )
        asked = [name for name in NAMES if name != "groups" and getattr(self, name) is not None]
        if asked:
            raise ParameterError(
                f"{' and '.join(asked)} came, but partial_fit sees a part of the rows at a time and promises "
                "none of that. Use fit, or leave it out."
            )
        parts = getattr(self, "parts_seen_", 0)
        start = self._continued(rows, outputs, settings)
        if start is None:
            parts = 0
        chosen = settings.tuning, settings.alpha, True
        solver = Auto(settings.batch_size, 1, settings.seed + parts, *chosen, screen=settings.screen)
        self.parts_seen_ = parts + 1
        return self._train(rows, outputs, loss, replace(settings, solver=solver, max_iter=1), start=start)

    def _split(self, rows: Rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Set rows of some weight aside for early stopping, keeping the shares of the classes."""
        codes = rows.y.dtype.kind in "iu" or rows.classes
        labels = rows.y[:, 0] if codes and np.unique(rows.y, return_counts=True)[1].min() > 1 else None
        counted = np.arange(len(rows.y)) if rows.weight is None else np.flatnonzero(rows.weight > 0)
        # It takes 15 MB, which most fits do without.
        from sklearn.model_selection import train_test_split

        try:
            kept, out = train_test_split(
                counted,
                test_size=self.validation_fraction,
                random_state=seed,
                stratify=None if labels is None else labels[counted],
            )
        except ValueError as error:
            raise DataError(
                f"early_stopping needs rows to set aside, but {len(counted)} rows cannot be split with "
                f"validation_fraction={self.validation_fraction}: {error} Use early_stopping=False or more "
                "rows."
            ) from error
        return np.sort(kept), out

    def _continued(self, rows: Rows, outputs: int, settings: Settings) -> Network | None:
        """Give the network of the last fit if it has the right shape."""
        network: Network | None = getattr(self, "network_", None)
        shape = rows.X.shape[1], settings.hidden, outputs
        fits = network is not None and (network.inputs, network.hidden, network.outputs) == shape
        return network if fits else None

    def _keep(
        self, trained: Trained, settings: Settings, target: list[str] | None = None, **links: Any
    ) -> None:
        solution = trained.solution
        names = getattr(self, "feature_names_in_", None)
        features = None if names is None else tuple(str(name) for name in names)
        details: dict[str, Any] = {ENTRY: trained.required.to_details()} if trained.required else {}
        if target is not None:
            details["target"] = target
        self.network_ = Network(
            trained.layers, direct=trained.direct, features=features, details=details, **links
        )
        # Fits keep to it by construction; a network that does not is not handed out all the same.
        refuse_violations(self.network_, trained.required, "the fitted network broke what is required")
        assert trained.spreads is not None
        self.used_importances_ = importances_of(self.network_, trained.spreads)
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
    def validation_scores_(self) -> list[float] | None:
        """The score on the rows that early stopping set aside, after every step that could be kept.

        It is the share of the best constant's loss that is explained there: R2 under the squared error. None
        without early stopping.
        """
        check_is_fitted(self, "network_")
        scores = [record["validation_score"] for record in self.history_ if "validation_score" in record]
        return scores if self.early_stopping else None

    @property
    def coefs_(self) -> list[np.ndarray]:
        """The weights of each layer, written out."""
        check_is_fitted(self, "network_")
        return self.network_.coefs

    @property
    def direct_coef_(self) -> np.ndarray:
        """The weights of direct connections from inputs to outputs, written out: (inputs, outputs)."""
        check_is_fitted(self, "network_")
        return self.network_.direct_coef

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
