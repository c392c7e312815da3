"""scikit-learn's face: regressors and classifiers whose networks hold at most `budget` nonzeros."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from thresher.errors import DataError, InterruptedFitWarning
from thresher.losses import Logistic, Loss, SquaredError
from thresher.network import Network
from thresher.parameters import check_parameters
from thresher.progress import Progress
from thresher.solvers.loop import INTERRUPTED, Record, Status
from thresher.training import LARGEST, Settings, Trained, train


class _SparseMLP(BaseEstimator):
    """What the regressor and the classifier share."""

    network_: Network

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validated(self, X: Any, y: Any, *, numeric: bool) -> tuple[Any, np.ndarray]:
        """Check X and y without copying X: integers and float16 stay, anything else becomes float64."""
        kept = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.int16, np.int32, np.int64, np.bool_]
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=kept,
            multi_output=numeric,
            y_numeric=numeric,
            accept_large_sparse=False,
        )
        return X, y

    def _train(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, loss: Loss, settings: Settings
    ) -> Trained:
        """Split off a validation part if asked, run the solver under a progress bar, keep what it says."""
        refuse_extreme_weights(weight)
        held_out = None
        if self.early_stopping:
            X, y, weight, held_out = self._split(X, y, weight, loss, settings.seed)
        start = self.network_ if self.warm_start and self._can_continue(X, settings) else None
        with Progress(settings.max_iter, shown=bool(self.verbose)) as progress:

            def report(record: Record) -> object:
                progress.update(record)
                return self.callback(record) if self.callback is not None else None

            trained = train(X, y, weight, loss, settings, start=start, held_out=held_out, callback=report)
        if trained.solution.status is INTERRUPTED:
            warnings.warn(
                "the fit was interrupted; the best network found so far is kept. Fit again with "
                "warm_start=True to go on from it.",
                InterruptedFitWarning,
                stacklevel=3,
            )
        return trained

    def _split(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, loss: Loss, seed: int
    ) -> tuple[Any, np.ndarray, np.ndarray | None, tuple[Any, np.ndarray, np.ndarray | None]]:
        """Set rows aside for early stopping, keeping the shares of both classes."""
        stratify = None if loss.quadratic else y
        rows = np.arange(len(y))
        try:
            kept, out = train_test_split(
                rows, test_size=self.validation_fraction, random_state=seed, stratify=stratify
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

    def _can_continue(self, X: Any, settings: Settings) -> bool:
        network = getattr(self, "network_", None)
        return network is not None and (network.inputs, network.hidden) == (X.shape[1], (settings.hidden,))

    def _keep(self, trained: Trained, settings: Settings, **links: Any) -> None:
        solution = trained.solution
        names = getattr(self, "feature_names_in_", None)
        self.network_ = Network.fused(
            trained.weights,
            trained.bias,
            trained.signs,
            output_bias=trained.output_bias,
            features=None if names is None else tuple(str(name) for name in names),
            **links,
        )
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
    def nonzeros_(self) -> int:
        """How many weights and biases the network holds: at most `budget`."""
        check_is_fitted(self, "network_")
        return self.network_.nonzeros

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

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Say which inputs the network uses.

        Parameters
        ----------
        indices : bool
            Whether to give the numbers of the inputs instead of a mask.
        """
        check_is_fitted(self, "network_")
        mask = self.network_.support()
        return np.flatnonzero(mask) if indices else mask

    def _checked_for_prediction(self, X: Any) -> Any:
        check_is_fitted(self, "network_")
        kept = [np.float64, np.float32, np.float16, np.uint8, np.int8, np.int16, np.int32, np.int64, np.bool_]
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=kept)


class SparseMLPRegressor(RegressorMixin, _SparseMLP):
    """A ReLU network with at most `budget` nonzero weights, for regression.

    The network is trained sparse: while it searches, the default solver holds at most 20 times the budget in
    weights (or a quarter of a megabyte, where that is more), whatever the size of the network.

    Parameters
    ----------
    budget : int
        The most nonzeros allowed, weights and biases together. One that exceeds the network is all of it.
    hidden : int
        Neurons in the hidden layer.
    solver : {"auto", "paper"} or solver object
        "auto" is the best this library knows; "paper" is appendix A of the paper to the letter.
    bias : bool, optional
        Whether neurons may have biases, which count like any weight. By default they may, except with
        "paper".
    scale : bool, optional
        Whether columns are scaled to unit size inside (the fitted network takes raw inputs all the same). By
        default they are, except with "paper".
    alpha : float, optional
        L2 penalty on the weights of scaled columns, beside a sum over rows. By default 0 for a squared error
        and 1 for the logistic loss, whose weights would grow without end on data that can be separated.
    batch_size : int, "auto" or None
        Rows of a minibatch; None takes all rows at once.
    max_iter : int
        Passes over the data; a full-batch step is one.
    tol : float
        Stop when the loss is this share of the loss of the zero network.
    early_stopping : bool
        Whether to set `validation_fraction` of the rows aside, keep the network that does best on them, and
        stop after `n_iter_no_change` tries without progress.
    validation_fraction : float
        Share of rows set aside.
    n_iter_no_change : int
        Patience of early stopping.
    update_gates_every : int
        With "paper": after how many steps the gates follow the weights (the paper's k).
    memory_limit : int or str
        Bytes that working arrays may take beyond the data, such as "64MB".
    device : {"cpu"}
        Where to compute.
    dtype : {"auto", "float32", "float64"}
        Precision while training; "auto" takes float64 for small problems.
    random_state : int, RandomState or None
        Seed of everything random.
    verbose : bool
        Whether to show progress on standard error.
    warm_start : bool
        Whether to start from the network of the previous fit.
    callback : callable, optional
        Called with a record after every step; a true answer stops the fit.

    Attributes
    ----------
    network_ : Network
        The fitted network, which predicts without the estimator.
    nonzeros_ : int
        Weights and biases it holds.
    status_ : Status
        Why the solver stopped, as a name and in words.
    loss_curve_ : list of float
    n_iter_ : int
        Passes over the data.
    coefs_, intercepts_ : list of arrays
        The layers, written out.

    Examples
    --------
    >>> from thresher.data.planted import planted
    >>> problem = planted(n=500, d=10, hidden=2, budget=6, seed=0)
    >>> model = SparseMLPRegressor(budget=6, hidden=2, bias=False, random_state=0)
    >>> model.fit(problem.X, problem.y).nonzeros_ <= 6
    True
    >>> model.score(problem.X, problem.y) > 0.99
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMLPRegressor:
        """Train a network.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        settings = check_parameters(self)
        X, y = self._validated(X, y, numeric=True)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if y.ndim > 1:
            raise DataError(
                f"y has {y.shape[1]} columns, but this regressor fits one target. Give y of shape "
                f"({len(y)},)."
            )
        y = np.asarray(y, dtype=np.float64)
        weight = None if sample_weight is None else _weights(sample_weight, X)
        trained = self._train(X, y.ravel(), weight, SquaredError(), settings)
        self._keep(trained, settings)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of every row."""
        X = self._checked_for_prediction(X)
        return self.network_.predict(X)


class SparseMLPClassifier(ClassifierMixin, _SparseMLP):
    """A ReLU network with at most `budget` nonzero weights, for two classes.

    Parameters are those of :class:`SparseMLPRegressor`, and in addition:

    Parameters
    ----------
    loss : {"auto", "logistic", "squared"}
        "squared" fits labels 0 and 1 and compares with 0.5, as the paper does; "auto" is "logistic", except
        with solver="paper" and where a single weight leaves none for a bias.
    class_weight : dict, "balanced" or None
        Weights of the classes.

    Attributes
    ----------
    classes_ : array
        The labels, in order. The other attributes are those of :class:`SparseMLPRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseMLPClassifier(budget=20, hidden=10, random_state=0).fit(X, y)
    >>> model.nonzeros_ <= 20, model.score(X, y) > 0.95
    (True, True)
    """

    def __init__(
        self,
        budget: int = 100,
        hidden: int | tuple[int, ...] = 100,
        *,
        solver: Any = "auto",
        loss: str = "auto",
        bias: bool | None = None,
        scale: bool | None = None,
        alpha: float | None = None,
        batch_size: int | str | None = "auto",
        max_iter: int = 200,
        tol: float = 1e-15,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        class_weight: Any = None,
        update_gates_every: int = 1,
        memory_limit: int | str = "64MB",
        device: str = "cpu",
        dtype: str = "auto",
        random_state: Any = None,
        verbose: bool | int = False,
        warm_start: bool = False,
        callback: Callable[[Record], object] | None = None,
    ) -> None:
        super().__init__(
            budget,
            hidden,
            solver=solver,
            bias=bias,
            scale=scale,
            alpha=alpha,
            batch_size=batch_size,
            max_iter=max_iter,
            tol=tol,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            update_gates_every=update_gates_every,
            memory_limit=memory_limit,
            device=device,
            dtype=dtype,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            callback=callback,
        )
        self.loss = loss
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMLPClassifier:
        """Train a network.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
            Labels of two classes: numbers, strings or booleans.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        settings = check_parameters(self)
        X, y = self._validated(X, y, numeric=False)
        check_classification_targets(y)
        encoder = LabelEncoder()
        codes = encoder.fit_transform(y)
        if len(encoder.classes_) > 2:
            raise DataError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}, with {len(encoder.classes_)} classes. Use scikit-learn's "
                "OneVsRestClassifier around this classifier."
            )
        if len(encoder.classes_) < 2:
            raise DataError(
                f"y holds one class only, {encoder.classes_[0]!r}, but a classifier needs two classes to "
                "tell apart. Give rows of both."
            )
        # One weight leaves none for a bias, and the squared error has its threshold built in.
        threshold_needed = settings.solver == "paper" or settings.budget == 1
        squared = self.loss == "squared" or (self.loss == "auto" and threshold_needed)
        weight = None if sample_weight is None else _weights(sample_weight, X)
        if self.class_weight is not None:
            balance = compute_sample_weight(self.class_weight, y)
            weight = balance if weight is None else weight * balance
        loss: Loss = SquaredError() if squared else Logistic()
        if not squared and self.alpha is None:
            settings = replace(settings, alpha=1.0)
        trained = self._train(X, codes.astype(np.float64), weight, loss, settings)
        self.classes_ = encoder.classes_
        self._keep(trained, settings, classes=encoder.classes_, link="identity" if squared else "logistic")
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Give a number for every row: above zero speaks for the second class."""
        X = self._checked_for_prediction(X)
        return self.network_.decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each class for every row."""
        X = self._checked_for_prediction(X)
        return self.network_.predict_proba(X)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of every row."""
        X = self._checked_for_prediction(X)
        return self.network_.predict(X)


def refuse_extreme_weights(weight: np.ndarray | None) -> None:
    """Refuse sample weights that vanish or overflow in float32."""
    largest = 1.0 if weight is None else float(weight.max())
    if not 1 / LARGEST < largest < LARGEST:
        raise DataError(
            f"the largest weight of a sample is {largest:.3g}, which float32 cannot compute with. Scale "
            "sample_weight and class_weight to the order of 1."
        )


def _weights(sample_weight: Any, X: Any) -> np.ndarray:
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.sum() > 0:
        raise DataError(
            "sample_weight is zero for every row, so there is nothing to fit. Give some row weight."
        )
    return weight
