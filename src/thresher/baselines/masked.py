"""A dense ReLU network whose weights lie in one vector, of which a mask switches some off."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from thresher.linear.budget import largest
from thresher.network import Layer, Network


class MaskedMLP(nn.Module):
    """Linear layers with ReLU between them, without biases where none are wanted.

    All parameters are views of one vector, and so are their gradients. Magnitudes are then compared across
    layers by one selection, and an optimiser's step or a mask is one pass over one array.

    Parameters
    ----------
    widths : sequence of int
        Inputs, neurons of each hidden layer, outputs.
    bias : bool
        Whether every layer has biases; they can be switched off like weights.
    generator : torch.Generator
        Where the first weights come from: uniform within 1 / sqrt(inputs of the layer), torch's default.

    Attributes
    ----------
    flat, flat_grad : tensors of shape (size,)
        All parameters, layer by layer, the weights (neurons, inputs) before the biases; their gradients.
    mask : tensor of shape (size,)
        1 where a parameter is active, 0 where it is switched off.
    layers : list of slice
        Which part of the vector belongs to which layer.

    Examples
    --------
    >>> model = MaskedMLP((4, 3, 1), bias=False, generator=torch.Generator().manual_seed(0))
    >>> model.size, model.keep_largest(5), model.active
    (15, 10, 5)
    """

    def __init__(self, widths: tuple[int, ...], bias: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.widths, self.bias = widths, bias
        self.size = count_parameters(widths, bias)
        self.flat = torch.empty(self.size)
        self.flat_grad = torch.zeros(self.size)
        self.mask = torch.ones(self.size)
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        self.layers: list[slice] = []
        start = 0
        for inputs, neurons in pairwise(widths):
            stop = start + neurons * inputs
            self.weights.append(self._view(start, stop, (neurons, inputs)))
            if bias:
                self.biases.append(self._view(stop, stop + neurons, (neurons,)))
                stop += neurons
            within = 1 / math.sqrt(inputs)
            self.flat[start:stop].uniform_(-within, within, generator=generator)
            self.layers.append(slice(start, stop))
            start = stop

    def _view(self, start: int, stop: int, shape: tuple[int, ...]) -> nn.Parameter:
        parameter = nn.Parameter(self.flat[start:stop].view(shape))
        parameter.grad = self.flat_grad[start:stop].view(shape)
        return parameter

    def forward(self, inputs: Tensor) -> Tensor:  # (rows, inputs) -> (rows, outputs)
        """Give the outputs."""
        for number, weight in enumerate(self.weights):
            values = nn.functional.linear(inputs, weight, self.biases[number] if self.bias else None)
            inputs = torch.relu_(values) if number + 1 < len(self.weights) else values
        return inputs

    @property
    def active(self) -> int:
        """How many parameters are switched on."""
        return int(self.mask.sum(dtype=torch.float64))

    def keep_largest(self, budget: int) -> int:
        """Switch off all but the `budget` active parameters of largest magnitude; say how many that were.

        Parameters of all layers compete with one another. What is off stays off.
        """
        before = self.active
        # Whatever is off ranks behind everything that is on, even behind a weight that happens to be zero.
        magnitude = torch.where(self.mask > 0, self.flat.abs(), -1.0)
        self.set_active(largest(magnitude, min(budget, before)))
        return before - self.active

    def set_active(self, indices: Tensor) -> None:
        """Switch on exactly these parameters; the others become zero."""
        self.mask.zero_()
        self.mask[indices] = 1
        self.apply_mask()

    def apply_mask(self) -> None:
        """Set what is switched off to zero."""
        self.flat.mul_(self.mask)

    def to_network(
        self,
        x_scale: float,
        y_scale: float,
        classes: np.ndarray | None,
        link: str,
        features: tuple[str, ...] | None,
    ) -> Network:
        """Hand out the network that takes raw inputs: the scales are folded into the outer layers.

        Parameters
        ----------
        x_scale, y_scale : float
            What inputs and targets were divided by.
        classes, link, features
            As in :class:`thresher.network.network.Network`.
        """
        layers = []
        last = len(self.weights) - 1
        for number, weight in enumerate(self.weights):
            values = weight.detach().double().T
            bias = self.biases[number].detach().double() if self.bias else torch.zeros(values.shape[1])
            if number == 0:
                values = values / x_scale
            if number == last:
                values, bias = values * y_scale, bias * y_scale
            layers.append(Layer(values.numpy(), bias.numpy()))
        return Network(tuple(layers), classes=classes, link=link, features=features)


def count_parameters(widths: tuple[int, ...], bias: bool) -> int:
    """Count the weights, and the biases where there are any.

    Examples
    --------
    >>> count_parameters((784, 100, 10), bias=False), count_parameters((784, 100, 10), bias=True)
    (79400, 79510)
    """
    return sum((inputs + bias) * neurons for inputs, neurons in pairwise(widths))
