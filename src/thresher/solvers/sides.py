"""From lines to ReLUs: choose the active side of every neuron so that the linear part costs the least.

``v |x.w| = 2 v relu(sigma x.w) - sigma v x.w`` for either side sigma, so a choice of sides changes the linear
part and nothing else. What remains of it, with the folds, is one ReLU for each half of an axis:
``q x + p |x| = (p + q) relu(x) + (p - q) relu(-x)``. In a planted network the right sides leave nothing that
was not planted, and each feature by itself rules out most choices, as in a crossword.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from thresher.solvers.student import Student

# Features that meet more undecided neurons than this are left until others have decided some.
MOST_AT_ONCE = 14


def to_relu(student: Student, tolerance: float) -> tuple[Tensor, Tensor]:
    """Write a student in the line form as ReLU neurons: weights (features, neurons) and signs, in float64.

    Axis weights up to `tolerance` are taken for zero.
    """
    assert student.linear is not None and student.folds is not None
    side, rest, folds = choose_sides(student, tolerance)
    up, down = folds + rest, folds - rest
    up, down = (torch.where(part.abs() > tolerance, part, 0.0) for part in (up, down))
    eye = torch.eye(up.numel(), dtype=torch.float64)
    W = torch.cat([2 * student.W.double() * side, eye * up.abs(), -eye * down.abs()], 1)
    v = torch.cat([student.v.double(), up.sign(), down.sign()])
    live = (W != 0).any(0)
    return W[:, live], v[live]


def choose_sides(student: Student, tolerance: float) -> tuple[Tensor, Tensor, Tensor]:
    """Give the side of every neuron, the linear part that then remains, and the folds, all in float64."""
    assert student.linear is not None and student.folds is not None
    pull = (student.W * student.v).double().numpy()  # (features, neurons)
    linear = student.linear.double().numpy()
    folds = student.folds.double().numpy()
    folds = np.where(np.abs(folds) <= tolerance, 0.0, folds)
    side = _by_least_squares(pull, linear, folds)
    while (side == 0).any():
        if not _decide_one_feature(pull, linear, folds, side, tolerance):
            undecided = np.flatnonzero(side == 0)
            heaviest = undecided[np.argmax(np.abs(pull[:, undecided]).sum(0))]
            agrees = pull[:, heaviest] @ (linear - pull @ side) >= 0
            side[heaviest] = 1.0 if agrees else -1.0
    return torch.from_numpy(side), torch.from_numpy(linear - pull @ side), torch.from_numpy(folds)


def _by_least_squares(pull: np.ndarray, linear: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Solve for all sides at once where there are enough features without folds; zeros if that fails."""
    neurons, plain = pull.shape[1], folds == 0
    if 0 < neurons <= plain.sum():
        solved = np.linalg.lstsq(pull[plain], linear[plain], rcond=None)[0]
        if (np.abs(np.abs(solved) - 1) < 0.2).all():
            return np.sign(solved)
    return np.zeros(neurons)


def _decide_one_feature(
    pull: np.ndarray, linear: np.ndarray, folds: np.ndarray, side: np.ndarray, tolerance: float
) -> bool:
    """Find the feature that decides some side for certain, or the one with the fewest ways; set it."""
    undecided = (pull != 0) & (side == 0)
    counts = undecided.sum(1)
    best: tuple[int, np.ndarray, np.ndarray] | None = None
    for feature in sorted(np.flatnonzero(counts), key=lambda j: (counts[j], j)):
        if counts[feature] > MOST_AT_ONCE:
            break
        neurons = np.flatnonzero(undecided[feature])
        ways = 1.0 - 2.0 * ((np.arange(2 ** len(neurons))[:, None] >> np.arange(len(neurons))) & 1)
        missing = np.abs(linear[feature] - pull[feature] @ side - ways @ pull[feature, neurons])
        # What is left on an axis must be nothing, or one half of its fold.
        error = np.abs(missing - np.abs(folds[feature]))
        fitting = ways[error <= tolerance]
        if len(fitting) == 0:
            continue
        certain = np.abs(fitting.mean(0)) == 1
        if certain.any() and (len(fitting) == 1 or len(neurons) <= 12):
            side[neurons[certain]] = fitting[0][certain]
            return True
        if best is None or len(fitting) < best[0]:
            best = (len(fitting), neurons, ways[error.argmin()])
    if best is None:
        return False
    side[best[1]] = best[2]
    return True
