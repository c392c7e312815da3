"""The estimator that every baseline is: parameters, data, and the network that comes out."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch.nn import functional

from thresher.baselines.live import live_part
from thresher.baselines.masked import MaskedMLP
from thresher.baselines.run import AdamRun, Problem, Record
from thresher.clock import Seconds
from thresher.errors import DataError, ParameterError
from thresher.estimators.parameters import seed_of
from thresher.linear.budget import check_budget

TASKS = ("regression", "classification")
LOSSES = ("cross-entropy", "squared")


@dataclass
class Trial:
    """What a search works on, and how its outcome becomes a network."""

    model: MaskedMLP
    problem: Problem
    generator: torch.Generator
    links: dict[str, Any]  # the parameters of MaskedMLP.to_network
    record: Record = field(default_factory=Record)


@dataclass(eq=False, repr=False)
class Baseline(BaseEstimator):
    """What all baselines share: a dense ReLU network in torch, of which `budget` weights are left.

    Parameters
    ----------
    task : {"regression", "classification"}
        What the targets are.
    budget : int
        The most nonzeros of the fitted network, weights and biases together, output layer included. One that
        exceeds the network is all of it.
    hidden : int or tuple of int
        Neurons of each hidden layer.
    bias : bool
        Whether neurons have biases; they count, and are pruned, like weights.
    loss : {"cross-entropy", "squared"}
        For two classes: the logistic loss, or labels 0 and 1 by squared error compared with 0.5, as in the
        paper. More classes always take the cross-entropy, and regression the squared error.
    scale : bool
        Whether inputs and numeric targets are divided by their root mean square; the fitted network takes
        raw inputs all the same.
    max_iter : int
        Passes over the data of one training run.
    batch_size : int or None
        Rows of a minibatch; None takes all rows at once.
    learning_rate : float or None
        Adam's. None takes more where the steps are few: `pace` / sqrt(steps of a run), from 0.001 to 0.03.
    decay : float
        Share of the steps of a training run, the last ones, over which the learning rate falls to zero by
        half a cosine; 0 keeps it as it is.
    random_state : int, RandomState or None
        Seed of everything random.

    Attributes
    ----------
    network_ : Network
        The fitted network, which predicts without torch.
    nonzeros_ : int
        Weights and biases it holds.
    peak_weights_ : int
        The most weights and biases held at once while training.
    seconds_, processor_seconds_ : float
        What the fit took, by the clock and of the processor.
    loss_curve_ : list of float
        The mean loss of every pass, of all training runs one after the other.
    active_curve_ : list of int
        How many weights were active at the end of each of these passes.
    n_iter_ : int
        Passes over the data, all training runs together.
    classes_ : array
        The labels, in order; classification only.
    """

    task: str = "regression"
    budget: int = 100
    hidden: int | tuple[int, ...] = 100
    bias: bool = True
    loss: str = "cross-entropy"
    scale: bool = True
    max_iter: int = 20
    batch_size: int | None = 128
    learning_rate: float | None = None
    decay: float = 0.3
    random_state: Any = None

    # About 0.001 for twenty passes over MNIST, the best of a few rates that were tried there.
    pace: ClassVar[float] = 0.09

    @abstractmethod
    def _search(self, trial: Trial, budget: int) -> None:
        """Train the trial's model in place until `budget` of its weights are left."""

    def fit(self, X: Any, y: Any) -> Baseline:
        """Train a network and prune it.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,) or, for regression, (n, outputs)

        Returns
        -------
        self
        """
        began = Seconds.now()
        trial = self._prepare(X, y)
        self._search(trial, check_budget(self.budget, trial.model.size))
        self._keep(trial, Seconds.since(began))
        return self

    def _prepare(self, X: Any, y: Any) -> Trial:
        """Check parameters and data, and draw the first weights."""
        self._check()
        numeric = self.task == "regression"
        X, y = validate_data(self, X, y, dtype=np.float32, multi_output=numeric, y_numeric=numeric)
        problem, links = self._problem(X, y)
        names = getattr(self, "feature_names_in_", None)
        links["features"] = None if names is None else tuple(str(name) for name in names)
        generator = torch.Generator().manual_seed(seed_of(self.random_state))
        model = MaskedMLP((X.shape[1], *self._hidden(), problem.outputs), bool(self.bias), generator)
        return Trial(model, problem, generator, links)

    def _keep(self, trial: Trial, took: Seconds) -> None:
        """Take over what a search left, and how long it took."""
        self.network_ = trial.model.to_network(**trial.links)
        self.peak_weights_ = trial.model.size
        self.loss_curve_, self.active_curve_ = trial.record.losses, trial.record.active
        self.n_iter_ = len(trial.record.losses)
        self.seconds_, self.processor_seconds_ = took

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target, or the class, of every row."""
        check_is_fitted(self, "network_")
        return self.network_.predict(validate_data(self, X, reset=False, dtype=[np.float64, np.float32]))

    def score(self, X: Any, y: Any) -> float:
        """Give the accuracy of a classification, or the R^2 of a regression."""
        judge = r2_score if self.task == "regression" else accuracy_score
        return float(judge(y, self.predict(X)))

    @property
    def nonzeros_(self) -> int:
        """How many weights and biases the network holds."""
        check_is_fitted(self, "network_")
        return self.network_.nonzeros

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if self.task == "classification":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            tags.target_tags.multi_output = True
        return tags

    def _train_live(self, trial: Trial) -> None:
        """Train what can move; what is switched off stays so for the whole run."""
        part = live_part(trial.model, trial.problem)
        if part is None:
            self._run(trial).train(trial.record)
            return
        model, problem, places = part
        self._run(replace(trial, model=model, problem=problem)).train(trial.record)
        trial.model.flat[places] = model.flat
        trial.record.active[-self.max_iter :] = [trial.model.active] * self.max_iter

    def _run(self, trial: Trial) -> AdamRun:
        """Prepare a training run with the parameters of this baseline."""
        rate = self.learning_rate
        if rate is None:
            rate = min(max(self.pace / math.sqrt(self.max_iter * trial.problem.batches), 0.001), 0.03)
        return AdamRun(
            trial.model,
            trial.problem,
            epochs=self.max_iter,
            learning_rate=rate,
            decay=self.decay,
            generator=trial.generator,
        )

    def _problem(self, X: np.ndarray, y: np.ndarray) -> tuple[Problem, dict[str, Any]]:
        """Turn data into tensors; say how answers are made of outputs, and what was divided by."""
        batch = len(X) if self.batch_size is None else min(int(self.batch_size), len(X))
        x_scale = _root_mean_square(X) if self.scale else 1.0
        inputs = torch.from_numpy(X if x_scale == 1.0 else X / np.float32(x_scale))
        links: dict[str, Any] = {"x_scale": x_scale, "y_scale": 1.0, "classes": None, "link": "identity"}
        if self.task == "regression":
            targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
            links["y_scale"] = _root_mean_square(targets) if self.scale else 1.0
            values = torch.from_numpy(targets / links["y_scale"]).float()
            return Problem(inputs, values, values.shape[1], functional.mse_loss, batch), links
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        links["classes"] = self.classes_
        if len(self.classes_) < 2:
            raise DataError(
                f"y holds one class only, {self.classes_[0]!r}, but a classifier needs at least two to tell "
                "apart. Give rows of several classes."
            )
        if len(self.classes_) > 2:
            links["link"] = "softmax"
            numbers = torch.from_numpy(codes.astype(np.int64))
            problem = Problem(inputs, numbers, len(self.classes_), functional.cross_entropy, batch)
        else:
            squared = self.loss == "squared"
            links["link"] = "identity" if squared else "logistic"
            loss = functional.mse_loss if squared else functional.binary_cross_entropy_with_logits
            problem = Problem(inputs, torch.from_numpy(codes.reshape(-1, 1)).float(), 1, loss, batch)
        return problem, links

    def _hidden(self) -> tuple[int, ...]:
        return tuple(self.hidden) if isinstance(self.hidden, (tuple, list)) else (self.hidden,)

    def _check(self) -> None:
        """Raise one error that names every parameter out of range."""
        check_budget(self.budget)
        problems: list[str] = []

        def require(name: str, allowed: bool, what: str) -> None:
            if not allowed:
                problems.append(f"{name}={getattr(self, name)!r}, but it must be {what}.")

        require("task", self.task in TASKS, f"one of {', '.join(TASKS)}")
        require("loss", self.loss in LOSSES, f"one of {', '.join(LOSSES)}")
        widths = self._hidden()
        whole = bool(widths) and all(is_whole(width) for width in widths)
        require(
            "hidden", whole, "a whole number of neurons, 1 or more, or a tuple of these, one for each layer"
        )
        require("max_iter", is_whole(self.max_iter), "a whole number of passes, 1 or more")
        batch = self.batch_size is None or is_whole(self.batch_size)
        require("batch_size", batch, "a whole number of rows, 1 or more, or None for all rows")
        rate = self.learning_rate is None or is_share(self.learning_rate, math.inf)
        require("learning_rate", rate, "a number above 0, or None")
        require("decay", self.decay == 0 or is_share(self.decay, 1 + 1e-9), "a number from 0 to 1")
        self._check_own(require)
        if problems:
            raise ParameterError(" ".join(problems))

    def _check_own(self, require: Any) -> None:
        """Check the parameters that only this baseline has."""


def is_whole(value: Any) -> bool:
    """Tell whether this is a whole number of 1 or more."""
    return isinstance(value, Integral) and type(value) not in (bool, np.bool_) and int(value) >= 1


def is_share(value: Any, below: float = 1.0) -> bool:
    """Tell whether this is a number above 0 and below a limit."""
    return isinstance(value, Real) and type(value) not in (bool, np.bool_) and 0 < float(value) < below


def _root_mean_square(values: np.ndarray) -> float:
    """Give the root mean square of all numbers, or 1 where they are all zero."""
    return math.sqrt(float(np.square(values, dtype=np.float64).mean())) or 1.0
