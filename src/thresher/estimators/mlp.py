"""scikit-learn's face: regressors and classifiers whose networks hold at most `budget` nonzeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from thresher.errors import DataError, MemoryLimitError, ParameterError
from thresher.estimators.fitting import SparseMLP, checked_weights
from thresher.estimators.parameters import check_parameters
from thresher.estimators.predicting import ClassPredictor, refuse_one_class
from thresher.estimators.training import Settings
from thresher.memory import machine_memory
from thresher.objective.losses import CrossEntropy, Logistic, Loss, SquaredError
from thresher.solvers.loop import Record


class SparseMLPRegressor(RegressorMixin, SparseMLP):
    """A ReLU network with at most `budget` nonzero weights, for regression.

    The network is trained sparse: while it searches, the default solver holds at most 20 times the budget in
    weights (or a quarter of a megabyte, where that is more), whatever the size of the network.

    Parameters
    ----------
    budget : int
        The most nonzeros allowed, weights and biases together. One that exceeds the network is all of it.
    hidden : int or tuple of int
        Neurons in the hidden layer, or in each of several; one budget is shared by all layers.
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
        and 1 for the logistic loss, whose weights would grow without end on data that can be separated. On 50
        to 2,000 rows of two classes the default solver may choose ten times as much, by cross-validation.
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
        y : array of shape (n,) or (n, targets)
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        X, y, settings = self._prepared(X, y)
        trained = self._train(X, y, checked_weights(sample_weight, X), SquaredError(), settings)
        self._keep(trained, settings)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMLPRegressor:
        """Go through some rows once, going on from the network there is, within the budget before and after.

        Parameters are those of :meth:`fit`; `max_iter` and `solver` play no part.
        """
        X, y, settings = self._prepared(X, y, reset=not hasattr(self, "network_"))
        trained = self._train_part(X, y, checked_weights(sample_weight, X), SquaredError(), settings)
        self._keep(trained, settings)
        return self

    def _prepared(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, np.ndarray, Settings]:
        settings = check_parameters(self)
        X, y = self._validated(X, y, numeric=True, reset=reset)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        return X, np.asarray(y, dtype=np.float64), settings


class SparseMLPClassifier(ClassifierMixin, ClassPredictor, SparseMLP):
    """A ReLU network with at most `budget` nonzero weights, for two or more classes.

    Parameters are those of :class:`SparseMLPRegressor`, and in addition:

    Parameters
    ----------
    loss : {"auto", "logistic", "squared"}
        "logistic" is the cross-entropy where there are more than two classes. "squared" fits labels 0 and 1
        and compares with 0.5, as the paper does; "auto" is "logistic", except for two classes with
        solver="paper" or where a single weight leaves none for a bias.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMLPClassifier:
        """Train a network.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
            Labels of two classes or more: numbers, strings or booleans.
        sample_weight : array of shape (n,), optional
            Every class needs a row of some weight.

        Returns
        -------
        self
        """
        settings = check_parameters(self)
        X, y = self._validated(X, y, numeric=False)
        check_classification_targets(y)
        encoder = LabelEncoder().fit(y)
        refuse_one_class(encoder.classes_)
        loss, settings = self._loss(len(encoder.classes_), settings)
        codes = encoder.transform(y)
        weight = self._weights(sample_weight, X, y)
        _refuse_weightless_classes(weight, codes, encoder.classes_)
        trained = self._train(X, _targets(codes, len(encoder.classes_)), weight, loss, settings, labels=codes)
        self.classes_ = encoder.classes_
        self._keep(trained, settings, classes=self.classes_, link=_link(loss))
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> SparseMLPClassifier:
        """Go through some rows once, going on from the network there is, within the budget before and after.

        Parameters are those of :meth:`fit` (`max_iter` and `solver` play no part), and

        Parameters
        ----------
        classes : array, optional
            All labels there will be; needed at the first call.
        """
        settings = check_parameters(self)
        X, y = self._validated(X, y, numeric=False, reset=not hasattr(self, "network_"))
        check_classification_targets(y)
        self._take_classes(classes, y)
        loss, settings = self._loss(len(self.classes_), settings)
        codes = np.searchsorted(self.classes_, y)
        targets = _targets(codes, len(self.classes_))
        trained = self._train_part(X, targets, self._weights(sample_weight, X, y), loss, settings)
        self._keep(trained, settings, classes=self.classes_, link=_link(loss))
        return self

    def _take_classes(self, classes: Any, y: np.ndarray) -> None:
        """Keep the labels given at the first call, and refuse others."""
        if not hasattr(self, "network_"):
            if classes is None:
                raise DataError(
                    "the first call of partial_fit needs classes, all labels there will be, because later "
                    "rows may hold labels that these do not. Give classes=[...]."
                )
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise DataError(f"classes={classes!r} differ from those of the first call, {self.classes_!r}.")
        strangers = np.setdiff1d(y, self.classes_)
        if len(strangers):
            raise DataError(
                f"y holds {strangers[0]!r}, which is not among the classes of the first call of partial_fit, "
                f"{self.classes_!r}. Give all labels there."
            )

    def _loss(self, classes: int, settings: Settings) -> tuple[Loss, Settings]:
        """Choose what is minimised; logarithmic losses get a penalty, or weights could grow for ever."""
        if classes > 2:
            if self.loss == "squared":
                raise ParameterError(
                    f"loss='squared' compares one output with 0.5, but y holds {classes} classes. Use "
                    "loss='auto'."
                )
            loss: Loss = CrossEntropy()
        else:
            # One weight leaves none for a bias, and the squared error has its threshold built in.
            threshold_needed = settings.solver == "paper" or settings.budget == 1
            squared = self.loss == "squared" or (self.loss == "auto" and threshold_needed)
            loss = SquaredError() if squared else Logistic()
        if not loss.quadratic and self.alpha is None and settings.solver != "paper":
            settings = replace(settings, alpha=1.0)
        return loss, settings

    def _weights(self, sample_weight: Any, X: Any, y: np.ndarray) -> np.ndarray | None:
        weight = checked_weights(sample_weight, X)
        if self.class_weight is None:
            return weight
        balance = compute_sample_weight(self.class_weight, y)
        return balance if weight is None else weight * balance


def _refuse_weightless_classes(weight: np.ndarray | None, codes: np.ndarray, classes: np.ndarray) -> None:
    """Refuse weights that drop every row of a class: the network could never predict it."""
    if weight is None:
        return
    without = np.flatnonzero(np.bincount(codes, weight, len(classes)) == 0)
    if len(without):
        raise DataError(
            f"the weights leave class {classes[without].tolist()[0]!r} without any weight, but a classifier "
            "learns every class in y. Give its rows some sample_weight and class_weight, or leave them out."
        )


def _targets(codes: np.ndarray, classes: int) -> np.ndarray:  # (n,) or (n, classes)
    """Turn classes into what the losses compare with: 0 and 1, or one column for each class."""
    if classes == 2:
        return codes.astype(np.float64)
    needed, present = 8 * len(codes) * classes, machine_memory()
    if present is not None and needed > present // 2:
        raise MemoryLimitError(
            f"{len(codes):,} rows of {classes:,} classes need {needed:,} bytes for their targets alone, but "
            f"this machine has {present:,} in all. Merge rare classes, or pass fewer rows at a time to "
            "partial_fit."
        )
    targets = np.zeros((len(codes), classes))
    targets[np.arange(len(codes)), codes] = 1
    return targets


def _link(loss: Loss) -> str:
    if loss.quadratic:
        return "identity"
    return "logistic" if isinstance(loss, Logistic) else "softmax"
