"""The wide student network of the search, and its training by minibatches under an L1 penalty.

Two forms share one training loop. The *ReLU form* is ``f(x) = sum_i v_i relu(x.w_i)``. The *line form* is
``f(x) = q.x + p.|x| + sum_i v_i |x.w_i|``: since ``relu(z) = (z + |z|) / 2`` it can say the same, but a
neuron is only a line through the data. Which side of it is active is left to the linear part, and being on
the wrong side, the commonest trap of ReLU training, does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from thresher.linear.budget import largest
from thresher.solvers.working import Working
from thresher.threads import one_thread


@dataclass(frozen=True, eq=False)
class Student:
    """A network on the working features.

    Attributes
    ----------
    W : tensor of shape (features, neurons)
    v : tensor of shape (neurons,)
        Signs.
    linear, folds : tensors of shape (features,), optional
        q and p of the line form; None in the ReLU form.
    """

    W: Tensor
    v: Tensor
    linear: Tensor | None = None
    folds: Tensor | None = None

    @property
    def lines(self) -> bool:
        """Whether this is the line form."""
        return self.linear is not None

    @property
    def nonzeros(self) -> int:
        """Weights held, the linear part apart."""
        folds = 0 if self.folds is None else int((self.folds != 0).sum())
        return int((self.W != 0).sum()) + folds

    @property
    def neurons(self) -> int:
        """Neurons held."""
        return self.W.shape[1]

    def output(self, X: Tensor) -> Tensor:
        """Evaluate the student on rows."""
        Z = X @ self.W
        if self.linear is None or self.folds is None:
            return Z.clamp_(min=0) @ self.v
        return Z.abs_() @ self.v + X @ self.linear + X.abs() @ self.folds

    def gates(self, X: Tensor) -> Tensor:  # (rows, neurons)
        """Give the slope of every neuron on every row: 0 or 1 in the ReLU form, -1 or 1 in the line form."""
        Z = X @ self.W
        return Z.sign_() if self.lines else (Z > 0).to(Z.dtype)

    def compact(self) -> Student:
        """Drop empty neurons; in the line form a neuron with one weight becomes a fold of its axis."""
        used = (self.W != 0).sum(0)
        if self.folds is None:
            return replace(self, W=self.W[:, used > 0], v=self.v[used > 0])
        one = used == 1
        folds = self.folds + self.W[:, one].abs() @ self.v[one]
        return replace(self, W=self.W[:, used > 1], v=self.v[used > 1], folds=folds)

    def prune(self, budget: int) -> Student:
        """Keep the largest weights, folds among them."""
        weights = [self.W.reshape(-1)] + ([] if self.folds is None else [self.folds])
        magnitude = torch.cat(weights).abs()
        if budget >= int((magnitude > 0).sum()):
            return self.compact()
        kept = torch.zeros_like(magnitude)
        kept[largest(magnitude.float(), budget)] = 1
        W = self.W * kept[: self.W.numel()].view(self.W.shape)
        folds = None if self.folds is None else self.folds * kept[self.W.numel() :]
        return replace(self, W=W, folds=folds).compact()


@dataclass(frozen=True)
class Pace:
    """How fast and how long to train.

    Attributes
    ----------
    passes : float
        Passes over the data.
    start, end : float
        Step sizes of Adam, between which it falls geometrically.
    l1 : float
        L1 penalty as a share of the step: a weight stays while its mean gradient exceeds that share of the
        gradient's root mean square, so the penalty fades by itself as the fit becomes exact.
    decay : float
        L2 penalty for each row.
    fixed : bool
        Whether zeros stay zero.
    shrink : callable, optional
        The budget of weights at each share of the training, enforced by magnitude now and then.
    """

    passes: float
    start: float
    end: float
    l1: float = 0.0
    decay: float = 0.0
    fixed: bool = False
    shrink: Callable[[float], int] | None = None


PRUNE_EVERY = 20


def shrinking(start: int, end: int, by: float = 0.7) -> Callable[[float], int]:
    """Plan a budget that falls geometrically from one number to another by a share of the training."""
    return lambda share: max(end, round(start * (end / max(1, start)) ** min(1.0, share / by)))


def train(data: Working, student: Student, pace: Pace, batch: int) -> Iterator[tuple[Student, float]]:
    """Train by Adam with a proximal L1 step; gives the student and its mean loss after every pass."""
    parts = [student.W.clone().contiguous()]
    if student.linear is not None and student.folds is not None:
        parts.append(torch.cat([student.linear, student.folds]))
    adam = _Adam(parts)
    mask = (parts[0] != 0).to(parts[0].dtype) if pace.fixed else None
    per_pass = max(1, data.rows // batch)
    total, done = max(1, int(pace.passes * per_pass)), 0
    while done < total:
        seen, lost = 0, 0.0
        with one_thread():
            for X, y, weight in data.batches(batch, round(data.passes * 1000)):
                value, gradients = _gradient(data, parts, student.v, X, y, weight)
                lost, seen = lost + value, seen + 1
                if pace.decay:
                    gradients[0].add_(parts[0], alpha=pace.decay)
                if mask is not None:
                    gradients[0].mul_(mask)
                done += 1
                rate = pace.start * (pace.end / pace.start) ** (done / total) * min(1.0, done / 50)
                adam.step(gradients, rate, pace.l1 * rate, student.W.shape[0])
                if pace.shrink is not None and done % PRUNE_EVERY == 0:
                    mask = _shrink(parts[0], pace.shrink(done / total), mask)
                if done >= total:
                    break
        data.passes += seen / per_pass
        yield _student(parts, student), lost / seen


def _student(parts: list[Tensor], like: Student) -> Student:
    if like.linear is None:
        return replace(like, W=parts[0].clone())
    linear, folds = parts[1].clone().chunk(2)
    return replace(like, W=parts[0].clone(), linear=linear, folds=folds)


def _gradient(
    data: Working, parts: list[Tensor], v: Tensor, X: Tensor, y: Tensor, weight: Tensor | None
) -> tuple[float, list[Tensor]]:
    """Give the mean loss of a batch and its gradient with respect to each part."""
    Z = X @ parts[0]
    gate = Z.sign() if len(parts) > 1 else (Z > 0).to(Z.dtype)
    both = torch.cat([X, X.abs()], 1) if len(parts) > 1 else None
    output = Z.mul_(gate) @ v
    if both is not None:
        output += both @ parts[1]
    slope = data.loss.slope(output, y)
    if weight is not None:
        slope = slope * weight
    value = data.loss.value(output, y, weight) / len(y)
    slope = slope / len(y)
    gradients = [X.T @ gate.mul_(slope[:, None] * v)]
    if both is not None:
        gradients.append(both.T @ slope)
    return value, gradients


def _shrink(W: Tensor, budget: int, mask: Tensor | None) -> Tensor | None:
    """Cut W to its largest entries, in place; what is cut may grow back while the budget allows."""
    if int((W != 0).sum()) <= budget:
        return mask
    kept = torch.zeros(W.numel(), dtype=W.dtype)
    kept[largest(W.abs().view(-1).float(), budget)] = 1
    W.mul_(kept.view(W.shape))
    return kept.view(W.shape)


class _Adam:
    """Adam on the parts of a student, with a soft threshold on all but the linear part."""

    def __init__(self, parts: list[Tensor], betas: tuple[float, float] = (0.9, 0.99)) -> None:
        self.parts, self.betas, self.count = parts, betas, 0
        self.mean = [torch.zeros_like(part) for part in parts]
        self.square = [torch.zeros_like(part) for part in parts]

    def step(self, gradients: list[Tensor], rate: float, threshold: float, features: int) -> None:
        self.count += 1
        first, second = self.betas
        correct = 1 / (1 - first**self.count), 1 / (1 - second**self.count)
        for part, gradient, mean, square in zip(self.parts, gradients, self.mean, self.square, strict=True):
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            part.addcdiv_(mean, (square * correct[1]).sqrt_().add_(1e-12), value=-rate * correct[0])
        if threshold:
            soft = torch.nn.functional.softshrink
            self.parts[0].copy_(soft(self.parts[0], threshold))
            if len(self.parts) > 1:
                folds = self.parts[1][features:]
                folds.copy_(soft(folds, threshold))


def merge(X: Tensor, student: Student, tolerance: float, rounds: int = 8) -> Student:
    """Sum neurons that the data can hardly tell apart, the closest first.

    Parameters
    ----------
    X : tensor of shape (rows, features)
        Rows on which to compare.
    student : Student
    tolerance : float
        The root mean square error that all merges together may add.
    """
    left = tolerance**2
    for _ in range(rounds):
        student = student.compact()
        W, Z = student.W.clone(), X @ student.W
        first, second, sides = _near(W, student.v, student.lines)
        if first.numel() == 0:
            break
        errors = _merge_errors(Z, first, second, sides, student.lines)
        taken: set[int] = set()
        for pair in torch.argsort(errors, stable=True).tolist():
            if float(errors[pair]) > left:
                break
            a, b = int(first[pair]), int(second[pair])
            if a not in taken and b not in taken:
                left -= float(errors[pair])
                taken |= {a, b}
                W[:, a] += sides[pair] * W[:, b]
                W[:, b] = 0
        student = replace(student, W=W)
        if not taken:
            break
    return student.compact()


def _near(W: Tensor, v: Tensor, lines: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Find pairs of neurons of one sign on nearly one line; in the ReLU form also on one side of it."""
    unit = W / W.norm(dim=0)
    cosine = torch.triu(unit.T @ unit, 1) * (v[:, None] == v[None])
    first, second = ((cosine.abs() if lines else cosine) > 0.7).nonzero(as_tuple=True)
    return first, second, cosine[first, second].sign()


def _merge_errors(Z: Tensor, first: Tensor, second: Tensor, sides: Tensor, lines: bool) -> Tensor:
    """Give the mean squared change of the output for each pair, if it were merged."""
    errors = torch.empty(first.numel(), dtype=Z.dtype)
    act = torch.abs if lines else torch.relu
    for start in range(0, first.numel(), 256):
        part = slice(start, start + 256)
        one, two = Z[:, first[part]], Z[:, second[part]]
        errors[part] = (act(one) + act(two) - act(one + sides[part] * two)).square_().mean(0)
    return errors
