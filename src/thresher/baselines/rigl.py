"""Dynamic sparse training: as many active weights from first to last, and ever new places for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor

from thresher.baselines.base import Baseline, Trial, is_share, is_whole
from thresher.baselines.masked import MaskedMLP
from thresher.linear.budget import largest


@dataclass(eq=False, repr=False)
class RigL(Baseline):
    """RigL: train a random sparse network; drop its smallest weights, grow where the gradient is largest.

    The budget is shared out among the layers in proportion to inputs plus neurons (Erdos-Renyi), and each
    layer keeps its share. Until `moving_share` of the steps, every `update_every` steps, each layer exchanges
    a fraction of its weights that starts at `exchange` and falls to zero by half a cosine. New weights start
    at zero. Biases belong to their layer and compete with its weights.

    Weights are masked, not stored sparse, so this takes the memory of a dense network; growing needs the
    dense gradient anyway.

    Parameters
    ----------
    exchange : float
        The first fraction of a layer's weights that move.
    moving_share : float
        Share of the steps after which the places of the weights stay.
    update_every : int or None
        Steps from one exchange to the next; None for a hundredth of the run, and at most 100.
    **others
        As in :class:`thresher.baselines.base.Baseline`.

    References
    ----------
    U. Evci, T. Gale, J. Menick, P. S. Castro and E. Elsen, "Rigging the lottery: making all tickets winners",
    ICML 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = RigL("classification", budget=200, hidden=20, random_state=0).fit(X, y)
    >>> model.nonzeros_ <= 200, model.score(X, y) > 0.85
    (True, True)
    """

    exchange: float = 0.3
    moving_share: float = 0.75
    update_every: int | None = None

    # What starts at zero needs larger steps.
    pace: ClassVar[float] = 0.9

    def _search(self, trial: Trial, budget: int) -> None:
        model = trial.model
        if budget < model.size:
            scatter(model, budget, trial.generator)
        run = self._run(trial)
        every, last = self._exchanges(run.steps)

        def move(step: int) -> None:
            if step % every or step > last:
                return
            fraction = self.exchange * (1 + math.cos(math.pi * step / last)) / 2
            for layer in model.layers:
                run.forget(exchange(model, layer, fraction))

        run.train(trial.record, at_gradient=move)

    def _exchanges(self, steps: int) -> tuple[int, float]:
        """Give the steps from one exchange to the next, and when the last one may come."""
        return self.update_every or max(1, min(100, steps // 100)), self.moving_share * steps

    def _check_own(self, require: Any) -> None:
        require("exchange", is_share(self.exchange), "a number between 0 and 1")
        require("moving_share", is_share(self.moving_share), "a number between 0 and 1")
        allowed = self.update_every is None or is_whole(self.update_every)
        require("update_every", allowed, "a whole number of steps, 1 or more, or None")


def scatter(model: MaskedMLP, budget: int, generator: torch.Generator) -> None:
    """Choose the first active weights at random, and make up for the inputs that are missing."""
    active = []
    for layer, share in zip(model.layers, layer_budgets(model.widths, model.bias, budget), strict=True):
        size = layer.stop - layer.start
        active.append(layer.start + torch.randperm(size, generator=generator)[:share])
        # With a share of the inputs, the same variance of a neuron takes larger weights.
        model.flat[layer] *= math.sqrt(size / max(1, share))
    model.set_active(torch.cat(active))


def exchange(model: MaskedMLP, layer: slice, fraction: float) -> Tensor:
    """Drop the smallest active weights of a layer and grow as many where the gradient is largest.

    What was just dropped may grow again, at zero, if its gradient is large enough, as in the paper.

    Returns
    -------
    tensor
        Which parameters of the whole vector were grown.
    """
    weights, gradient, mask = model.flat[layer], model.flat_grad[layer], model.mask[layer]
    active = int(mask.sum(dtype=torch.float64))
    count = min(int(fraction * active), len(mask) - active)
    kept = largest(torch.where(mask > 0, weights.abs(), -1.0), active - count)
    mask.zero_()
    mask[kept] = 1
    grown = largest(torch.where(mask > 0, -1.0, gradient.abs()), count)
    mask[grown] = 1
    weights[grown] = 0
    weights.mul_(mask)
    return layer.start + grown


def layer_budgets(widths: tuple[int, ...], bias: bool, budget: int) -> list[int]:
    """Share a budget out in proportion to inputs plus neurons of each layer, none above the layer's size.

    Examples
    --------
    >>> layer_budgets((784, 100, 10), False, 1000), layer_budgets((4, 3, 2), True, 20)
    ([889, 111], [12, 8])
    """
    pairs = list(pairwise(widths))
    sizes = [(inputs + bias) * neurons for inputs, neurons in pairs]
    wanted = [inputs + bias + neurons for inputs, neurons in pairs]
    shares = [0] * len(pairs)
    # Whatever a full layer cannot take goes to the others.
    while (left := budget - sum(shares)) > 0:
        free = [number for number, share in enumerate(shares) if share < sizes[number]]
        total = sum(wanted[number] for number in free)
        exact = {number: left * wanted[number] / total for number in free}
        given = {number: int(exact[number]) for number in free}
        remainder = left - sum(given.values())
        for number in sorted(free, key=lambda n: (given[n] - exact[n], n))[:remainder]:
            given[number] += 1
        for number in free:
            shares[number] = min(sizes[number], shares[number] + given[number])
    return shares
