"""From absolute values to ReLUs: choose the active side of every neuron so that the linear part costs least.

``v |z| = 2 v relu(sigma z) - sigma v z`` for either side sigma, so a choice of sides changes the linear part
and nothing else. What remains of it, with the folds, is one ReLU for each half of an axis,
``q x + p |x| = (p + q) relu(x) + (p - q) relu(-x)``, or a direct connection where those are allowed. In a
planted network the right sides leave nothing that was not planted, and each feature by itself rules out most
choices, as in a crossword.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.linear.vector import SparseVector
from thresher.objective.relu import Relu
from thresher.objective.running import Point
from thresher.solvers.auto.recovery.absolute import AbsoluteForm
from thresher.solvers.auto.recovery.tuning import SidesTuning


@dataclass(frozen=True, eq=False)
class ReluForm:
    """A ReLU network with a fused output, as arrays that may hold zeros.

    Attributes
    ----------
    weights : tensor of shape (neurons, inputs), or (neurons, inputs + 1) with the biases last
    signs : tensor of shape (neurons,)
    direct : tensor of shape (inputs,)
        Direct connections; all zero where there are none.
    constant : tensor of shape (1,), or (0,) where there are no biases
        The output bias.
    """

    weights: Tensor
    signs: Tensor
    direct: Tensor
    constant: Tensor

    @property
    def neurons(self) -> int:
        """Neurons held."""
        return self.weights.shape[0]

    def strongest(self, count: int) -> ReluForm:
        """Keep the neurons with the largest weights, strongest first."""
        order = torch.argsort(self.weights.norm(dim=1), descending=True, stable=True)[:count]
        return ReluForm(self.weights[order], self.signs[order], self.direct, self.constant)

    def at(self, objective: Relu) -> tuple[Relu, Point]:
        """Give the objective with room for these neurons and no more, and this network as a point of it."""
        layout = replace(objective.layout, widths=(objective.layout.widths[0], self.neurons, 1))
        neuron, feature = (self.weights != 0).nonzero(as_tuple=True)
        constant = layout.output_biases[(self.constant != 0).nonzero().flatten()]
        places = [layout.position(0, neuron, feature), constant]
        values = [self.weights[neuron, feature], self.constant[self.constant != 0]]
        if layout.direct:
            used = (self.direct != 0).nonzero().flatten()
            places.append(used + layout.offsets[2])
            values.append(self.direct[used])
        w = SparseVector(torch.cat(places), torch.cat(values), layout.size)
        return replace(objective, layout=layout), Point(w, self.signs)


def to_relu(
    form: AbsoluteForm, tolerance: float, direct: bool, forced: bool, tuning: SidesTuning
) -> ReluForm:
    """Write a network in the absolute-value form as ReLU neurons, in float64.

    Parameters
    ----------
    form : AbsoluteForm
    tolerance : float
        What is left of the linear part, folds and constant up to this is taken for zero.
    direct : bool
        Whether a linear part may be left as direct connections.
    forced : bool
        Whether the output has a bias in any case.
    tuning : SidesTuning
    """
    side, rest, folds = choose_sides(form, tolerance, tuning)
    signs = form.signs.double()
    weights = form.weights.double()
    pulled = (side * signs) @ weights[:, form.inputs :]
    up, down, through = folds + rest, folds - rest, torch.zeros_like(rest)
    if direct:
        # relu(x) = x + relu(-x), so a direct connection and one half do what both halves do, with one neuron
        # fewer; without a fold nothing is left of that half.
        both = (up.abs() > tolerance) & (down.abs() > tolerance)
        through = torch.where(both, up, through)
        up, down = torch.where(both, 0.0, up), torch.where(both, up + down, down)
    up, down = (torch.where(part.abs() > tolerance, part, 0.0) for part in (up, down))
    axis = torch.zeros(form.inputs, weights.shape[1], dtype=torch.float64)
    axis[:, : form.inputs] = torch.eye(form.inputs, dtype=torch.float64)
    constant = form.constant.double() - pulled
    if not forced:
        constant = torch.where(constant.abs() > tolerance, constant, 0.0)
    relus = torch.cat([2 * weights * side[:, None], axis * up.abs()[:, None], -axis * down.abs()[:, None]])
    signs = torch.cat([signs, up.sign(), down.sign()])
    live = (relus[:, : form.inputs] != 0).any(1)
    return ReluForm(relus[live], signs[live], through, constant)


def choose_sides(form: AbsoluteForm, tolerance: float, tuning: SidesTuning) -> tuple[Tensor, Tensor, Tensor]:
    """Give the side of every neuron, the linear part that then remains, and the folds, all in float64."""
    pull = (form.weights[:, : form.inputs].double() * form.signs.double()[:, None]).T
    return sides_of(pull, form.linear.double(), form.folds.double(), tolerance, tuning)


def sides_of(
    pulls: Tensor, line: Tensor, kinks: Tensor, tolerance: float, tuning: SidesTuning
) -> tuple[Tensor, Tensor, Tensor]:
    """Choose sides that leave the least of a linear part; see `choose_sides`.

    Parameters
    ----------
    pulls : float64 tensor of shape (features, neurons)
        What every neuron adds to the linear part on one side, and takes from it on the other. Several outputs
        have features of their own, one after the other.
    line, kinks : float64 tensors of shape (features,)
        The linear part and the folds.
    tolerance : float
        What is left up to this is taken for zero.
    tuning : SidesTuning
    """
    pull, linear, folds = to_host(pulls), to_host(line), to_host(kinks)
    folds = np.where(np.abs(folds) <= tolerance, 0.0, folds)
    side = _by_least_squares(pull, linear, folds, tuning)
    while (side == 0).any():
        if not _decide_one_feature(pull, linear, folds, side, tolerance, tuning):
            undecided = np.flatnonzero(side == 0)
            heaviest = undecided[np.argmax(np.abs(pull[:, undecided]).sum(0))]
            agrees = pull[:, heaviest] @ (linear - pull @ side) >= 0
            side[heaviest] = 1.0 if agrees else -1.0
    return from_host(side), from_host(linear - pull @ side), from_host(folds)


def _by_least_squares(
    pull: np.ndarray,  # (features, neurons)
    linear: np.ndarray,
    folds: np.ndarray,
    tuning: SidesTuning,
) -> np.ndarray:
    """Solve for all sides at once where there are enough features without folds; zeros if that fails."""
    neurons, plain = pull.shape[1], folds == 0
    if 0 < neurons <= plain.sum():
        solved = np.linalg.lstsq(pull[plain], linear[plain], rcond=None)[0]
        if (np.abs(np.abs(solved) - 1) < tuning.near_one).all():
            return np.sign(solved)
    return np.zeros(neurons)


def _decide_one_feature(
    pull: np.ndarray,
    linear: np.ndarray,
    folds: np.ndarray,
    side: np.ndarray,
    tolerance: float,
    tuning: SidesTuning,
) -> bool:
    """Find the feature that decides some side for certain, or the one with the fewest ways; set it."""
    undecided = (pull != 0) & (side == 0)
    counts = undecided.sum(1)
    best: tuple[int, np.ndarray, np.ndarray] | None = None
    for feature in sorted(np.flatnonzero(counts), key=lambda j: (counts[j], j)):
        if counts[feature] > tuning.at_once:
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
        if certain.any() and (len(fitting) == 1 or len(neurons) <= tuning.trusted):
            side[neurons[certain]] = fitting[0][certain]
            return True
        if best is None or len(fitting) < best[0]:
            best = (len(fitting), neurons, ways[error.argmin()])
    if best is None:
        return False
    side[best[1]] = best[2]
    return True
