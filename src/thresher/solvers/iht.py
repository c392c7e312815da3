"""Iterative hard thresholding, the paper's algorithm, on any operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.errors import DataError, ParameterError
from thresher.linear.budget import Schedule, check_budget, constant, keep_largest
from thresher.linear.matrices import as_operator
from thresher.linear.operator import Operator
from thresher.linear.vector import SparseVector
from thresher.objective.gates import SparseGenerators
from thresher.objective.linear import Evaluation, Linear
from thresher.solvers.journal import State
from thresher.solvers.loop import (
    OPTIONS,
    Iterate,
    Needs,
    Record,
    Solution,
    Solver,
    Start,
    run,
)
from thresher.solvers.refine import Armijo, ConjugateGradients, Refinement
from thresher.solvers.sound import refuse_no_solver
from thresher.solvers.status import SETTLED, Status

# What a step counts.
COUNTS = ("step", "seen", "unchanged", "just_moved", "crossed")
# A gradient on the support that is this many units of rounding of the largest ones, or less, is rounding.
ROUNDING = 100.0


@dataclass(frozen=True)
class IHT:
    """``w <- H_s(w - eta A'(A w - y))``, then refinement on the support.

    The update is equation 5 of the paper, the step size that of its appendix A,
    ``eta = ||g_S||^2 / ||A_S g_S||^2`` with ``g = A'(A w - y)`` and S the support of w. Step sizes are the
    paper's, beside a sum over rows; beside the mean that is minimised here they are that many times as large.

    Attributes
    ----------
    step_size : float, optional
        A fixed step size; the normalised one by default.
    first_step : float, optional
        The step size at w = 0, where the normalised one is 0/0. By default the gradient's largest entries
        take the part of S, as they do wherever nothing is left to gain on S; the paper takes 1e-14, which
        only selects a support.
    refinement : Refinement, optional
        What to do on the support after each thresholding.
    schedule : Schedule, optional
        The budget of each step, by default the final one throughout.
    update_gates_every : int, optional
        After how many steps the gates follow the weights (the paper's k); None keeps them for good. Needs an
        operator that has gates.
    fixed_first_pass : bool
        Whether the first pass over the data keeps the gates it starts with.
    fallback : SparseGenerators, optional
        Gates for neurons without weights, which could otherwise never win one back.
    batch_size : int, optional
        Rows of a minibatch; all rows by default. Needs an operator that can be restricted to some rows.
    settle : int, optional
        Stop when the support has not changed for this many steps, an update of the gates among them.
    seed : int
        Order of the minibatches.
    options : frozenset of str
        Which options of an estimator it honours.

    References
    ----------
    Fridovich-Keil and Pilanci, A Recovery Guarantee for Sparse Neural Networks, appendix A.
    Blumensath and Davies, Normalized iterative hard thresholding, 2010.
    """

    step_size: float | None = None
    first_step: float | None = None
    refinement: Refinement | None = field(default_factory=ConjugateGradients)
    schedule: Schedule | None = None
    update_gates_every: int | None = None
    fixed_first_pass: bool = True
    fallback: SparseGenerators | None = None
    batch_size: int | None = None
    settle: int | None = 3
    seed: int = 0
    options: frozenset[str] = OPTIONS

    @property
    def needs(self) -> Needs:
        """Take a linear operator, such as that of a network with one hidden layer and one output."""
        return Needs(kind="linear", hidden_layers=1, outputs=1, options=self.options)

    def init(self, objective: Linear, budget: int, start: Start | None) -> Iterate:
        """Start from zero, or from the given weights and their gates."""
        operator, begin = objective.operator, start or Start(SparseVector.zeros(objective.size))
        w, follows = begin.w.to(operator.dtype), False
        if self.update_gates_every is not None:
            # Asked for in any case, so that an operator without gates is refused before work starts.
            own = operator.following(w, begin.signs, self.fallback)
            follows = w.nonzeros > 0
            operator = own if follows else operator
        schedule = self.schedule or constant(budget)
        size = min(self.batch_size or operator.rows, operator.rows)
        carry = _Carry(objective, operator, budget, schedule, size, self.seed, w if follows else None)
        return self._iterate(w, carry.evaluated(w), follows, {})

    def step(self, iterate: Iterate) -> Iterate:
        """Take one step: threshold, refine, let the gates follow if it is time, and evaluate."""
        w, carry = iterate.w, iterate.carry
        objective, at, allowed = carry.batch, carry.at, carry.schedule(carry.step)
        eta = self._step_size(objective, w, at)
        moved = at.gradient.with_values(w.at(at.gradient.indices) - eta * at.gradient.values)
        new = keep_largest(moved, allowed)
        if self.refinement is not None:
            new = self._refine(objective, new, eta)
        changed = not new.same_support(w)
        carry, follows = self._update_gates(carry.advance(changed), new)
        carry = replace(carry, seen=carry.seen + objective.operator.rows)
        record = {"step_size": eta / objective.amount, "support_changed": changed, "gates_moved": follows}
        return self._iterate(new, carry.evaluated(new), follows, record)

    def _iterate(self, w: SparseVector, carry: _Carry, follows: bool, record: Record) -> Iterate:
        """Make an iterate; its loss is that of a ReLU network only where the gates are those of w."""
        assert carry.at is not None
        return Iterate(
            w,
            carry.at.value,
            carry.seen / carry.operator.rows,
            signs=carry.operator.signs,
            kept=w.nonzeros <= carry.budget,
            exact=follows or self.update_gates_every is None,
            record=record,
            carry=carry,
        )

    def stop(self, iterate: Iterate) -> Status | None:
        """Stop when the support has settled."""
        carry = iterate.carry
        settled = self.settle is not None and carry.unchanged >= self.settle
        if settled and iterate.kept and (self.update_gates_every is None or carry.crossed):
            return SETTLED
        return None

    def rescue(self, iterate: Iterate) -> Iterate:
        """Cut an inflated iterate to the budget."""
        carry: _Carry = iterate.carry
        w = keep_largest(iterate.w, carry.budget)
        return replace(iterate, w=w, loss=carry.objective.under(carry.operator).value(w), kept=True)

    def save(self, iterate: Iterate) -> State:
        """Give the weights, those that the gates follow, and the counts; the rest is worked out anew."""
        carry: _Carry = iterate.carry
        counts = {name: getattr(carry, name) for name in COUNTS}
        return {"w": iterate.w, "gates": carry.gates, "signs": carry.operator.signs, **counts}

    def load(self, first: Iterate, state: State) -> Iterate:
        """Let the gates follow the same weights again, and evaluate on the rows of the next step."""
        carry, w, gates = first.carry, state["w"], state["gates"]
        operator = carry.objective.operator
        if gates is not None:
            operator = operator.following(gates, state["signs"], self.fallback)
        counts = {name: state[name] for name in COUNTS}
        carry = replace(carry, operator=operator, gates=gates, **counts)
        return self._iterate(w, carry.evaluated(w), False, {})

    def _step_size(self, objective: Linear, w: SparseVector, at: Evaluation) -> float:
        """Give eta beside the mean over rows: the paper's, times the rows."""
        if self.step_size is not None:
            return self.step_size * objective.amount
        if w.nonzeros == 0 and self.first_step is not None:
            return self.first_step * objective.amount
        support, gradient, length = at.gradient.indices, at.gradient.values, _squared(at.gradient.values)
        own = at.gradient.at(w.indices)
        # Where the support has been fitted to the last digit, a quotient of what is left would be one of
        # rounding errors: only places outside can still gain.
        if _squared(own) > (ROUNDING * torch.finfo(own.dtype).eps) ** 2 * length:
            support, gradient, length = w.indices, own, _squared(own)
        bend = objective.restricted(support).bend(gradient, at.output)
        return length / bend if bend > 0 else 0.0

    def _refine(self, objective: Linear, w: SparseVector, eta: float) -> SparseVector:
        assert self.refinement is not None
        values = self.refinement(objective.restricted(w.indices), w.values, eta)
        kept = values != 0
        return SparseVector(w.indices[kept], values[kept], w.size)

    def _update_gates(self, carry: _Carry, w: SparseVector) -> tuple[_Carry, bool]:
        """Let the gates follow the weights every k-th step, once the first pass is over."""
        every, done = self.update_gates_every, carry.step
        # One pass and one step: two steps where a step is a pass.
        first = carry.steps_of_a_pass + 1 if self.fixed_first_pass else 1
        if every is None or done < first or (done - 1) % every:
            return carry, False
        operator = carry.operator.following(w, fallback=self.fallback)
        return replace(carry, operator=operator, gates=w, just_moved=True), True


@dataclass(frozen=True, eq=False)
class _Carry:
    """What thresholding needs from one step to the next."""

    objective: Linear
    operator: Operator
    budget: int
    schedule: Schedule
    batch_size: int
    seed: int
    # The weights that the gates follow, if they do.
    gates: SparseVector | None = None
    batch: Linear | None = None
    at: Evaluation | None = None
    step: int = 0
    seen: int = 0
    unchanged: int = 0
    just_moved: bool = False
    crossed: bool = False

    @property
    def steps_of_a_pass(self) -> int:
        """Steps that see every row once."""
        return -(-self.operator.rows // self.batch_size)

    def evaluated(self, w: SparseVector) -> _Carry:
        """Choose the rows of the next step and evaluate the objective there."""
        batch = self.objective.under(self.operator)
        if self.steps_of_a_pass > 1:
            epoch, place = divmod(self.step, self.steps_of_a_pass)
            order = np.random.default_rng([self.seed, epoch]).permutation(self.operator.rows)
            batch = batch.take(np.sort(order[place * self.batch_size : (place + 1) * self.batch_size]))
        return replace(self, batch=batch, at=batch.evaluate(w, self.schedule(self.step)))

    def advance(self, changed: bool) -> _Carry:
        """Count a step and how long the support has stayed the same."""
        return replace(
            self,
            step=self.step + 1,
            unchanged=0 if changed else self.unchanged + 1,
            # Only a step under the new gates can show that the support survives them.
            crossed=not changed and (self.crossed or self.just_moved),
            just_moved=False,
        )


def _squared(values: Tensor) -> float:
    return float(values.double().square().sum())


def paper_iht(
    update_gates_every: int = 1, batch_size: int | None = None, seed: int = 0, settle: int | None = None
) -> IHT:
    """Make the solver of the paper's experiments with one output: appendix A to the letter.

    A first step of 1e-14 that only selects a support, the normalised step size, ten Armijo steps on the
    support, gates that follow the weights after every step once the first pass is over, and no way back for a
    neuron that lost its last weight. The paper's operator has dense random gates, all signs positive and no
    bias. Its answer is the last iterate (``keep="last"`` of the loop), so that held-out rows choose nothing
    and early stopping is not among its options.
    """
    return IHT(
        first_step=1e-14,
        refinement=Armijo(),
        update_gates_every=update_gates_every,
        batch_size=batch_size,
        settle=settle,
        seed=seed,
        options=OPTIONS - {"early_stopping"},
    )


def theorem_iht(beta: float, budget: int, inflation: float = 1.0) -> IHT:
    """Make the variant of theorem 1: step 2 / (3 beta), an inflated budget, no refinement.

    The operator must have unit columns (:class:`~thresher.linear.UnitColumns`); beta is its restricted
    smoothness. The theorem asks for a budget inflated by 32 (beta/alpha)^2.
    """
    wide = round(budget * inflation)
    return IHT(step_size=2 / (3 * beta), refinement=None, schedule=constant(wide), settle=None)


def iht(
    operator: Any,
    y: Any,
    budget: int,
    *,
    solver: Solver | None = None,
    max_iter: int = 100,
    tol: float = 0.0,
    start: SparseVector | None = None,
    callback: Callable[[Record], object] | None = None,
) -> Solution:
    """Recover a sparse vector from linear measurements, ``y = A w`` with at most `budget` nonzeros in w.

    Parameters
    ----------
    operator : matrix or Operator
        A matrix of NumPy, SciPy (sparse or not) or torch, or a LinearOperator of SciPy with `rmatvec`; the
        gated ReLU operator, a Gaussian sensing matrix, or your own: a subclass of
        :class:`~thresher.linear.Operator` with its four methods.
    y : array of shape (rows,)
        Measurements.
    budget : int
        The most nonzeros allowed.
    solver : IHT or another solver of linear objectives, optional
        How to step and refine; by default the normalised step with conjugate gradients.
    max_iter : int
        Steps.
    tol : float
        Stop when half the mean squared error over the measurements is at most this.
    start : SparseVector, optional
        Where to start.
    callback : callable, optional
        Called with each record; a true answer stops.

    Returns
    -------
    Solution
        Its `loss`, and that of its history, is half the mean squared error over the measurements.

    Examples
    --------
    >>> from thresher.linear.gaussian import GaussianOperator
    >>> A = GaussianOperator(rows=60, size=200, seed=1, dtype=torch.float64)
    >>> truth = SparseVector(torch.tensor([3, 50, 120]), torch.tensor([1.0, -2.0, 0.5]).double(), 200)
    >>> found = iht(A, A.forward(truth), budget=3)
    >>> found.w.indices.tolist(), found.status.name in ("settled", "fitted")
    ([3, 50, 120], True)
    """
    operator = as_operator(operator)
    if solver is not None:
        refuse_no_solver(solver)
    if callback is not None and not callable(callback):
        raise ParameterError(f"callback={callback!r}, but it must be a function of a record, or None.")
    budget = check_budget(budget, operator.size)
    measured = from_host(_numbers(y)).to(operator.dtype)
    if measured.shape != (operator.rows,):
        raise DataError(
            f"y has shape {tuple(measured.shape)}, but this operator makes {operator.rows} measurements. "
            f"Give an array of shape ({operator.rows},)."
        )
    if not bool(torch.isfinite(measured).all()):
        raise DataError("y holds NaN or infinity. Remove or replace those measurements.")
    return run(
        solver or IHT(),
        Linear(operator, measured),
        budget,
        start=None if start is None else Start(start),
        max_iter=max_iter,
        tol=tol,
        callback=None if callback is None else (lambda record, iterate: callback(record)),
    )


def _numbers(y: Any) -> np.ndarray:
    try:
        return np.array(to_host(y) if isinstance(y, Tensor) else np.asarray(y), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"y holds something that is not a number: {error}. Give real numbers.") from error
