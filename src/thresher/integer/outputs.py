"""The last layer rounded: all outputs that are compared share one step, and direct connections their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from thresher.integer.calibration import Calibration, bias_unit, refitted
from thresher.integer.rounding import rounded
from thresher.integer.whole import WholeLayer

if TYPE_CHECKING:
    from thresher.integer.quantise import Settings

# Common steps of all outputs that are tried.
CANDIDATES = 24

# Direct connections may be this many powers of two coarser or finer than other weights.
FARTHEST = 24


@dataclass(frozen=True, eq=False)
class Output:
    """One output to be rounded: weights of neurons, of inputs and the bias one after the other, refitted."""

    hidden: np.ndarray  # places of neurons; none where their signs are fixed
    direct: np.ndarray  # places of inputs
    has_bias: bool
    weights: np.ndarray
    curvature: np.ndarray

    @property
    def largest_hidden(self) -> float:
        """The largest weight of a neuron."""
        return float(np.abs(self.weights[: self.hidden.size]).max(initial=0.0))

    @property
    def largest_direct(self) -> float:
        """The largest direct weight."""
        own = self.weights[self.hidden.size : self.hidden.size + self.direct.size]
        return float(np.abs(own).max(initial=0.0))


def output_layer(
    calibration: Calibration, activations: np.ndarray, worth: np.ndarray, settings: Settings
) -> WholeLayer:
    """Round the last layer and direct connections on the activations of what was rounded before.

    Parameters
    ----------
    calibration : Calibration
    activations : ndarray of shape (n, inputs)
        What comes in, as whole numbers, each step of it `worth` so much.
    settings : Settings
    """
    target = calibration.targets[-1]
    outputs = [_output(calibration, number, activations, worth) for number in range(target.neurons)]
    base = _base_steps(outputs, worth, target.signs_only, target.shares_scale, settings)
    power = _direct_power(outputs, base, target.signs_only, settings)
    if not target.shares_scale:
        # An output of direct connections alone has the step that these need.
        alone = np.array([not (target.signs_only or output.largest_hidden) for output in outputs])
        base = np.where(alone, base * 2.0**-power, base)
    factors = (
        np.ones(1) if target.signs_only else settings.grid.step_candidates(settings.grid.largest, CANDIDATES)
    )
    found, cost = [], []
    for output, own in zip(outputs, base, strict=True):
        steps = _steps(output, own * factors, power, settings)
        free = np.zeros(output.weights.size, dtype=bool)
        free[output.hidden.size + output.direct.size :] = True
        result = rounded(output.curvature, output.weights, steps, free, settings.grid)
        found.append(result.values)
        cost.append(result.cost)
    best = np.argmin(cost, axis=1)
    if target.shares_scale:
        best[:] = np.sum(cost, axis=0).argmin()
    weights = np.zeros(target.weights.shape, dtype=np.int64)
    if target.signs_only:
        weights[:] = np.rint(target.weights)
    direct = np.zeros((calibration.codes.shape[1], target.neurons), dtype=np.int64)
    bias = np.zeros(target.neurons, dtype=np.int64)
    for number, (output, values) in enumerate(zip(outputs, found, strict=True)):
        chosen = values[best[number]]
        ends = np.cumsum([output.hidden.size, output.direct.size])
        weights[output.hidden, number], direct[output.direct, number] = (
            chosen[: ends[0]],
            chosen[ends[0] : ends[1]],
        )
        if output.has_bias:
            unit = base[number] * factors[best[number]] * 2.0 ** min(power, 0)
            bias[number] = int(chosen[-1] * bias_unit(output.weights[-1:] / unit, settings.bias_bits)[0])
    step = base * factors[best] * 2.0 ** min(power, 0)
    return WholeLayer(
        weights,
        bias,
        np.zeros(target.neurons, dtype=np.int64),
        step,
        target.signs_only,
        sparse.csc_array(direct) if direct.any() else None,
        max(0, -power),
        max(0, power),
    )


def _output(calibration: Calibration, number: int, activations: np.ndarray, worth: np.ndarray) -> Output:
    """Refit one output to what it was, on its support."""
    target = calibration.targets[-1]
    hidden = np.flatnonzero(target.weights[:, number])
    wanted = target.sums[:, number]
    if target.signs_only:
        wanted = wanted - activations[:, hidden] @ (target.weights[hidden, number] * worth[hidden])
        hidden = hidden[:0]
    linear = None if calibration.direct is None else calibration.direct[:, number]
    direct = np.zeros(0, dtype=np.int64) if linear is None else np.flatnonzero(linear)
    has_bias = bool(target.bias[number])
    scale = np.broadcast_to(calibration.coding.scale, calibration.codes.shape[1:])
    weights = np.concatenate(
        [
            target.weights[hidden, number] * worth[hidden],
            np.zeros(0) if linear is None else linear[direct] * scale[direct],
            [target.bias[number]] if has_bias else [],
        ]
    )
    rows = np.column_stack(
        [activations[:, hidden], calibration.codes[:, direct], np.ones((len(wanted), int(has_bias)))]
    )
    if has_bias:
        # Codes may begin elsewhere than the values they stand for.
        weights[-1] += np.mean(wanted - rows @ weights)
    counted = rows.T * target.counts[:, number]
    curvature = counted @ rows
    weights = refitted(curvature, counted @ (wanted - rows @ weights), weights)
    return Output(hidden, direct, has_bias, weights, curvature)


def _base_steps(
    outputs: list[Output], worth: np.ndarray, signs_only: bool, shares_scale: bool, settings: Settings
) -> np.ndarray:
    """Return the step of each output with which its largest weight just fits."""
    if signs_only:
        return np.full(len(outputs), worth[0])
    largest = np.array([output.largest_hidden or output.largest_direct for output in outputs])
    largest = np.where(largest > 0, largest, largest.max())
    if not largest.any():
        # Constants alone: steps as fine as biases allow.
        sizes = np.array([np.abs(output.weights).max(initial=0.0) for output in outputs])
        largest = np.where(sizes > 0, sizes, 1.0) / 2.0 ** (min(settings.bias_bits, 16) - 1)
        largest = largest * settings.grid.largest
    if shares_scale:
        largest = np.full_like(largest, largest.max())
    return largest / settings.grid.largest


def _direct_power(outputs: list[Output], base: np.ndarray, signs_only: bool, settings: Settings) -> int:
    """Return by how many powers of two a direct weight's step exceeds that of the others."""
    ratios = [
        output.largest_direct / (settings.grid.largest * own)
        for output, own in zip(outputs, base, strict=True)
        if output.largest_direct > 0 and (output.largest_hidden or signs_only)
    ]
    return int(np.clip(np.ceil(np.log2(max(ratios))), -FARTHEST, FARTHEST)) if ratios else 0


def _steps(output: Output, trial: np.ndarray, power: int, settings: Settings) -> np.ndarray:
    """Return what 1 is worth in every place, for every step of the output that is tried."""
    parts = [
        np.repeat(trial[:, None], output.hidden.size, axis=1),
        np.repeat(trial[:, None] * 2.0**power, output.direct.size, axis=1),
    ]
    if output.has_bias:
        unit = trial * 2.0 ** min(power, 0)
        parts.append((unit * bias_unit(output.weights[-1] / unit, settings.bias_bits))[:, None])
    return np.concatenate(parts, axis=1)
