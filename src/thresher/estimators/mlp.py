"""scikit-learn's face: regressors and classifiers whose networks hold at most `budget` nonzeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from thresher.device import from_host, to_host
from thresher.errors import DataError, ParameterError
from thresher.estimators.fitting import SparseMLP, checked_weights
from thresher.estimators.inputs import target_of
from thresher.estimators.intervals import IntervalPredictor, SetPredictor
from thresher.estimators.labels import are_labels
from thresher.estimators.multilabel import LabelFitter
from thresher.estimators.parameters import check_parameters
from thresher.estimators.predicting import ClassPredictor, Scored, refuse_one_class
from thresher.estimators.task import Rows, Settings
from thresher.objective.loss import CrossEntropy, Huber, Logistic, Loss, Poisson, SquaredError
from thresher.objective.ranks import Alone, present

LOSSES: dict[str, Callable[[], Loss]] = {
    "auto": SquaredError,
    "squared": SquaredError,
    "huber": Huber,
    "poisson": Poisson,
}


@dataclass(eq=False, repr=False)
class SparseMLPRegressor(Scored, RegressorMixin, IntervalPredictor, SparseMLP):
    """A ReLU network with at most `budget` nonzero weights, for regression.

    The network is trained sparse: the default solver never holds more than a multiple of the budget (ten
    times, twenty in exact recovery, or a quarter of a megabyte where that is more), however wide the network.

    Parameters
    ----------
    budget : int
        The most nonzeros allowed, weights and biases together. One that exceeds the network is all of it.
    hidden : int or tuple of int
        Neurons in the hidden layer, or in each of several; one budget is shared by all layers.
    solver : {"auto", "paper"} or solver object
        "auto" is the best this library knows; "paper" is appendix A of the paper to the letter.
    loss : {"auto", "squared", "huber", "poisson"} or Loss
        What is minimised: the squared error ("auto"), Huber's loss for targets with outliers, the Poisson
        deviance for counts (predictions are exp of the output), or an object like those of
        :mod:`thresher.objective.loss`.
    bias : bool, optional
        Whether neurons may have biases, which count like any weight. By default they may, except with
        "paper".
    scale : bool, optional
        Whether columns are scaled to unit size inside (the fitted network takes raw inputs all the same). By
        default they are, except with "paper".
    alpha : float, optional
        L2 penalty on the weights of scaled columns (not on biases), beside a sum over rows, in units of the
        target's spread. By default the default solver chooses it on rows that it holds out.
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
    screen : float, optional
        The share of the blocks of a gradient that is looked at for new places each time, drawn at random.
        Blocks are as large as `memory_limit` allows; all of them are looked at by default. Try 0.1 where a
        wide network on wide data takes too long.
    max_inputs : int, optional
        The most inputs in use, exact like the budget; columns of a group count as one.
    max_fan_in : int, optional
        The most inputs of any hidden neuron, biases not counted. An output may add up any number of neurons.
    groups : list of lists, or mapping from names to lists, optional
        Columns of one variable, by name or number, such as those of its categories: they count and cost as
        one input, and enter together.
    feature_costs : mapping, optional
        What using a column costs, by name or number, or by the name of a group; a group costs what its
        dearest column does, and columns that are not named cost nothing. Needs `max_cost`.
    max_cost : float, optional
        The most that all inputs in use may cost together.
    monotone : mapping, optional
        Columns, by name or number, with which the output never falls (+1) or never rises (-1), anywhere, all
        other inputs held: of one target, or the log-odds of two classes. See :doc:`requirements`.
    device : str or torch.device
        Where to compute: any device that torch can use here and that has float64, such as "cuda". Rows and
        networks stay on the host. Untested on GPUs; "mps", which has no float64, is refused.
    dtype : {"auto", "float32", "float64"}
        Precision while training; "auto" takes float64 for small problems.
    tuning : Tuning, optional
        The constants of the default solver, :class:`thresher.solvers.auto.Tuning`.
    random_state : int, RandomState or None
        Seed of everything random.
    verbose : bool
        Whether to show progress on standard error.
    warm_start : bool
        Whether to start from the network of the previous fit.
    callback : callable, optional
        Called with a record after every step; a true answer stops the fit.
    checkpoint : str or path, optional
        A file that keeps what a fit has done so far. Fitting again with the same file, parameters and data
        goes on from there after a crash, Ctrl-C or a callback that stopped it, and ends with the same bits.
    checkpoint_every : str or int
        How often the file is written at most: a time such as "30s", "5min" or "1h", or a number of steps,
        those on minibatches included.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparseMLPRegressor:
        """Train a network.

        Parameters
        ----------
        X : array, sparse matrix or rows on disk (:func:`thresher.data.open_rows`) of shape (n, d)
        y : array of shape (n,) or (n, targets)
            Rows on disk may bring it along.
        sample_weight : array of shape (n,), optional

        Returns
        -------
        self
        """
        with present() as ranks:
            rows, loss, settings = self._prepared(ranks, X, y, sample_weight)
            trained = self._train(rows, rows.y.shape[1], loss, settings)
        self._keep(trained, settings, link=loss.link)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMLPRegressor:
        """Go through some rows once, going on from the network there is, within the budget before and after.

        Parameters are those of :meth:`fit`; `max_iter` and `solver` play no part.
        """
        fresh = not hasattr(self, "network_")
        with present() as ranks:
            rows, loss, settings = self._prepared(ranks, X, y, sample_weight, reset=fresh)
            trained = self._train_part(rows, rows.y.shape[1], loss, settings)
        self._keep(trained, settings, link=loss.link)
        return self

    def _prepared(
        self, ranks: Alone, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Rows, Loss, Settings]:
        def checked() -> tuple[Any, np.ndarray, np.ndarray | None, Loss, Settings]:
            settings = check_parameters(self)
            loss = LOSSES[self.loss]() if isinstance(self.loss, str) else self.loss
            _refuse_link(loss, ("identity", "log"), "a regressor predicts numbers")
            valid, targets = self._validated(X, y, numeric=True, reset=reset)
            if targets.ndim == 2 and targets.shape[1] == 1:
                targets = column_or_1d(targets, warn=True)
            targets = np.asarray(targets, dtype=np.float64).reshape(len(targets), -1)
            loss.check(targets)
            return valid, targets, checked_weights(sample_weight, valid), loss, settings

        X, y, weight, loss, settings = ranks.together(checked)
        settings = self._agreed(ranks, settings, X, y, weight)
        return Rows(X, y, weight, ranks=ranks.holding(len(y))), loss, settings


@dataclass(eq=False, repr=False, kw_only=True)
class SparseMLPClassifier(Scored, ClassifierMixin, ClassPredictor, SetPredictor, LabelFitter):
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

    class_weight: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SparseMLPClassifier:
        """Train a network.

        Parameters
        ----------
        X : array, sparse matrix or rows on disk (:func:`thresher.data.open_rows`) of shape (n, d)
        y : array of shape (n,), or of shape (n, labels)
            Labels of two classes or more: numbers, strings or booleans. Rows on disk may bring them along.
            Or a table of zeros and ones, which tells of several labels which ones a row has: then the network
            tells those of each row, and their probabilities.
        sample_weight : array of shape (n,), optional
            Every class needs a row of some weight.

        Returns
        -------
        self
        """
        if are_labels(target_of(X, y)):
            self._fit_labels(X, y, sample_weight)
            return self
        from sklearn.preprocessing import LabelEncoder

        with present() as ranks:
            X, y, weight, settings = self._checked(ranks, X, y, sample_weight)
            # Some labels may be seen by one rank only.
            labels = ranks.together(lambda: LabelEncoder().fit(y).classes_)
            encoder = LabelEncoder().fit(np.concatenate(ranks.objects(labels)))
            refuse_one_class(encoder.classes_)
            loss = self._loss(len(encoder.classes_), settings)
            codes = encoder.transform(y)
            weight = self._balanced(ranks, weight, y, codes, len(encoder.classes_))
            _refuse_weightless_classes(ranks, weight, codes, encoder.classes_)
            rows = Rows(X, _targets(codes, loss), weight, True, ranks.holding(len(y)))
            trained = self._train(rows, _outputs(encoder.classes_), loss, settings)
        self.classes_ = encoder.classes_
        self._keep(trained, settings, classes=self.classes_, link=loss.link)
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
        fresh = not hasattr(self, "network_")
        with present() as ranks:
            X, y, weight, settings = self._checked(ranks, X, y, sample_weight, reset=fresh)
            ranks.together(lambda: self._take_classes(classes, y))
            loss = self._loss(len(self.classes_), settings)
            codes = np.searchsorted(self.classes_, y)
            weight = self._balanced(ranks, weight, y, codes, len(self.classes_))
            rows = Rows(X, _targets(codes, loss), weight, True, ranks.holding(len(y)))
            trained = self._train_part(rows, _outputs(self.classes_), loss, settings)
        self._keep(trained, settings, classes=self.classes_, link=loss.link)
        return self

    def _checked(
        self, ranks: Alone, X: Any, y: Any, sample_weight: Any, reset: bool = True
    ) -> tuple[Any, np.ndarray, np.ndarray | None, Settings]:
        def checked() -> tuple[Any, np.ndarray, np.ndarray | None, Settings]:
            settings = check_parameters(self)
            valid, labels = self._validated(X, y, numeric=False, reset=reset)
            check_classification_targets(labels)
            return valid, labels, checked_weights(sample_weight, valid), settings

        X, y, weight, settings = ranks.together(checked)
        return X, y, weight, self._agreed(ranks, settings, X, y, weight)

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

    def _loss(self, classes: int, settings: Settings) -> Loss:
        """Choose what is minimised."""
        if not isinstance(self.loss, str):
            links = ("logistic", "identity") if classes == 2 else ("softmax",)
            _refuse_link(self.loss, links, f"y holds {classes} classes")
            if getattr(self.loss, "classes", classes) != classes:
                raise ParameterError(f"loss={self.loss!r} came, but y holds {classes} classes.")
            return self.loss
        if classes > 2:
            if self.loss == "squared":
                raise ParameterError(
                    f"loss='squared' compares one output with 0.5, but y holds {classes} classes. Use "
                    "loss='auto'."
                )
            return CrossEntropy(classes)
        # One weight leaves none for a bias, and the squared error has its threshold built in.
        threshold_needed = settings.solver == "paper" or settings.budget == 1
        squared = self.loss == "squared" or (self.loss == "auto" and threshold_needed)
        return SquaredError() if squared else Logistic()

    def _balanced(
        self, ranks: Alone, weight: np.ndarray | None, y: np.ndarray, codes: np.ndarray, classes: int
    ) -> np.ndarray | None:
        """Multiply the weights of samples by those of their classes."""
        if self.class_weight is None:
            return weight
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            (total,) = ranks.sum(from_host(np.bincount(codes, minlength=classes)))
            counts = to_host(total)
            balance = (counts.sum() / ((counts > 0).sum() * np.maximum(1, counts)))[codes]
        else:
            balance = ranks.together(lambda: compute_sample_weight(self.class_weight, y))
        return balance if weight is None else weight * balance


def _refuse_link(loss: Loss, links: tuple[str, ...], because: str) -> None:
    """Refuse a loss object whose outputs do not become such predictions."""
    if loss.link not in links:
        named = " or ".join(repr(link) for link in links)
        raise ParameterError(
            f"loss={loss!r} has link={loss.link!r}, but {because}, which takes a loss with link={named}."
        )


def _refuse_weightless_classes(
    ranks: Alone, weight: np.ndarray | None, codes: np.ndarray, classes: np.ndarray
) -> None:
    """Refuse weights that drop every row of a class: the network could never predict it."""
    if weight is None:
        return
    (weights,) = ranks.sum(from_host(np.bincount(codes, weight, len(classes))))
    without = np.flatnonzero(to_host(weights) == 0)
    if len(without):
        raise DataError(
            f"the weights leave class {classes[without].tolist()[0]!r} without any weight, but a classifier "
            "learns every class in y. Give its rows some sample_weight and class_weight, or leave them out."
        )


def _targets(codes: np.ndarray, loss: Loss) -> np.ndarray:  # (n, 1)
    """Turn classes into what the losses compare with: codes, or the numbers 0 and 1."""
    return (codes.astype(np.int64) if loss.link == "softmax" else codes.astype(np.float64))[:, None]


def _outputs(classes: np.ndarray) -> int:
    return 1 if len(classes) == 2 else len(classes)
