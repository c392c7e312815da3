"""From a network of floating point to one of whole numbers: ranges from calibration rows, weights layer by
layer.

Inputs become codes. Then every layer is rounded against what its sums were before, on the activations that
the layers already rounded give, so that later weights make up for what earlier ones lost. A ReLU commutes
with scales above zero, so each hidden neuron has a step of its own that costs nothing; its shift puts it on
the scale of what it feeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from thresher.data.rows import OnDisk, is_sparse
from thresher.errors import DataError, ParameterError
from thresher.integer.calibration import Calibration, LayerTarget, Neuron
from thresher.integer.coding import InputCoding, chosen_coding
from thresher.integer.network import MOST_ACTIVATION, IntegerNetwork
from thresher.integer.outputs import output_layer
from thresher.integer.polish import loss_of, polished
from thresher.integer.prune import without_idle
from thresher.integer.rounding import Grid, grid_named, rounded
from thresher.integer.training import trained
from thresher.integer.whole import WholeLayer
from thresher.network.forward import checked, finite_chunks
from thresher.network.layer import live, narrowed
from thresher.network.structure import Structure

# Calibration rows that are used, and numbers in them (128 MB): more tell little of ranges, but training
# wants them.
MOST_ROWS, MOST_NUMBERS = 20_000, 2**24
MOST_ROWS_TRAINED, MOST_NUMBERS_TRAINED = 100_000, 2**25

# Steps that are tried for a neuron, and for the neurons of a fused layer together.
CANDIDATES = 16

# By how many bits a neuron may be shifted down.
MOST_SHIFT_DOWN = 30

BIAS_BITS = (4, 32)
MOST_PASSES = 10_000

# Neurons of so few bits may do better when each fills its own than when outputs' weights fill theirs. They
# are filled by this quantile of what a neuron is where it is on; the rest saturates.
FEW_BITS, FILLED = 6, 0.98


@dataclass(frozen=True)
class Settings:
    """How to round.

    Attributes
    ----------
    grid : Grid
        What weights can be.
    activation_bits : int
        Bits that neurons are kept to.
    bias_bits : int
        Bits of a bias, which is shifted up where they do not suffice.
    """

    grid: Grid
    activation_bits: int
    bias_bits: int

    @property
    def largest_activation(self) -> int:
        """What neurons saturate at."""
        return int(2**self.activation_bits - 1)


def quantise(
    network: Structure,
    X: Any,
    bits: int = 8,
    *,
    weights: str | None = None,
    activation_bits: int = 16,
    inputs: str | InputCoding = "auto",
    bias_bits: int = 32,
    passes: int = 0,
) -> IntegerNetwork:
    """Return a network of whole numbers that answers as another one does, as `Network.quantise` tells."""
    settings = checked_settings(bits, weights, activation_bits, bias_bits, passes)
    values, used = _calibration_rows(network, X, trained=passes > 0)
    read, layers, direct = _live_parts(network)
    values = values[:, np.searchsorted(used, read)]
    coding = _coding(inputs, values, read, network.inputs, layers, direct)
    calibration = Calibration.of(values, coding, layers, direct, network.link, network.classes is not None)
    outputs = calibration.targets[-1].sums
    found = [
        _assembled(network, _rounded_layers(calibration, settings, filled), read, coding, settings)
        for filled in ((False, True) if activation_bits <= FEW_BITS else (False,))
    ]
    best = min(found, key=lambda one: loss_of(one, calibration.codes, outputs, network.link))
    if passes:
        best = trained(best, calibration, settings.grid, settings.bias_bits, passes)
    best = polished(best, calibration.codes, outputs, network.link, settings.grid)
    return without_idle(best)


def _rounded_layers(calibration: Calibration, settings: Settings, filled: bool) -> list[WholeLayer]:
    """Round layer after layer, each on what those before it give."""
    coding, targets = calibration.coding, calibration.targets
    whole: list[WholeLayer] = []
    activations, worth = calibration.codes, np.broadcast_to(coding.scale, calibration.codes.shape[1:])
    exact = coding.plain
    for target in targets[:-1]:
        last = targets[-1] if len(whole) == len(targets) - 2 else None
        layer = hidden_layer(target, activations, worth, last, settings, exact, filled)
        activations, worth, exact = (
            layer.activations(activations, settings.largest_activation),
            layer.worth,
            False,
        )
        whole.append(layer)
    return [*whole, output_layer(calibration, activations, worth, settings)]


def checked_settings(
    bits: int, weights: str | None, activation_bits: int, bias_bits: int, passes: int
) -> Settings:
    """Return settings, or say which of them cannot be."""
    for name, value, least, most in (
        ("activation_bits", activation_bits, 1, MOST_ACTIVATION),
        ("bias_bits", bias_bits, *BIAS_BITS),
        ("passes", passes, 0, MOST_PASSES),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
            raise ParameterError(f"{name}={value!r}, but it is a whole number from {least} to {most}.")
    return Settings(grid_named(weights, bits), int(activation_bits), int(bias_bits))


def _calibration_rows(network: Structure, X: Any, *, trained: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows, evenly spaced, of the inputs in use; and these inputs."""
    X = checked(X, network.inputs, network.features)
    rows = X.shape[0]
    if rows == 0:
        raise DataError(
            "X has no rows, but ranges are chosen on calibration rows: pass some of those of training."
        )
    used = network.inputs_used()
    used = used if used.size else np.zeros(1, dtype=np.int64)
    most_rows, numbers = (MOST_ROWS_TRAINED, MOST_NUMBERS_TRAINED) if trained else (MOST_ROWS, MOST_NUMBERS)
    most = min(rows, most_rows, max(1, numbers // max(used.size, *network.hidden, network.outputs)))
    chosen = np.unique(np.linspace(0, rows - 1, most).astype(np.int64))
    X = X[: len(chosen)] if isinstance(X, OnDisk) else X[chosen]
    parts = [part for _, part in finite_chunks(X, 1000, used)]
    return np.concatenate([part.toarray() if is_sparse(part) else part for part in parts]), used


def _live_parts(network: Structure) -> tuple[np.ndarray, list[LayerTarget], np.ndarray | None]:
    """Return the inputs that take part, every layer between what takes part, and direct weights.

    Without a hidden layer direct weights are those of the layer.
    """
    read, all_layers, linear = narrowed(network.layers, network.direct)
    masks = live(all_layers, linear)
    if not masks[0].any():
        masks[0][0] = True
    layers = []
    for layer, (before, after) in zip(all_layers, pairwise(masks), strict=True):
        part, bias = layer.restricted(before, after)
        layers.append(LayerTarget(part.toarray(), bias, layer.signs_only))
    direct = None if linear is None else linear[masks[0]].toarray().astype(np.float64)
    # A hidden layer without a neuron passes nothing on: what follows is a constant.
    empty = [number for number, layer in enumerate(layers[:-1]) if layer.weights.shape[1] == 0]
    if empty:
        constant = np.zeros((int(masks[0].sum()), network.outputs))
        layers = [LayerTarget(constant, _constant(layers[empty[-1] + 1 :]), False)]
    if direct is not None and len(layers) == 1:
        layers, direct = [LayerTarget(layers[0].weights + direct, layers[0].bias, False)], None
    return read[masks[0]], layers, direct


def _constant(layers: list[LayerTarget]) -> np.ndarray:
    """Return what layers give of which the first is fed by nothing."""
    values = layers[0].bias
    for layer in layers[1:]:
        values = np.maximum(values, 0) @ layer.weights + layer.bias
    return values


def _coding(
    wanted: str | InputCoding,
    values: np.ndarray,
    read: np.ndarray,
    columns: int,
    layers: list[LayerTarget],
    direct: np.ndarray | None,
) -> InputCoding:
    """Return the coding of the inputs that take part; none may give a neuron its first bias."""
    reads = [(layers[0].weights, layers[0].bias)]
    if direct is not None:
        reads.append((direct, layers[-1].bias))
    movable = np.all([~((weights != 0) & (bias == 0)).any(axis=1) for weights, bias in reads], axis=0)
    if isinstance(wanted, InputCoding):
        for name in ("scale", "offset"):
            size = getattr(wanted, name).size
            if getattr(wanted, name).ndim and size != columns:
                raise ParameterError(
                    f"{name} of the inputs has {size} numbers, but there are {columns} columns."
                )
        wanted = wanted.restricted(read)
    coding = chosen_coding(wanted, values, movable)
    added = (coding.offset != 0) & ~movable
    if added.any():
        raise ParameterError(
            f"column {read[np.flatnonzero(added)[0]]} has an offset, and a neuron that reads it has no bias: "
            "the offset would add a nonzero. Use an offset of 0, or inputs='auto', which finds a coding "
            "without."
        )
    return coding


def hidden_layer(
    target: LayerTarget,
    activations: np.ndarray,
    worth: np.ndarray,
    last: LayerTarget | None,
    settings: Settings,
    exact: bool,
    filled: bool = False,
) -> WholeLayer:
    """Round a hidden layer neuron by neuron.

    Parameters
    ----------
    target : LayerTarget
        The layer as it was, with what its sums were and what each row counts.
    activations : ndarray of shape (n, inputs)
        What comes in, as whole numbers, each step of it `worth` so much.
    last : LayerTarget or None
        The output layer, where it comes next.
    settings : Settings
    exact : bool
        Whether what comes in stands for what came in before, so that nothing has to be refitted.
    filled : bool
        Whether every neuron is to fill its bits, rather than outputs' weights theirs.
    """
    neurons = [target.neuron(number, activations, worth, refit=not exact) for number in range(target.neurons)]
    reach = np.maximum(target.sums.max(axis=0, initial=0.0), 0.0)
    if last is not None and last.signs_only:
        return _fused_layer(neurons, reach, settings, len(worth))
    steps, columns = np.empty(len(neurons)), []
    filling = _filling(neurons, target.sums, settings) if filled else None
    for number, neuron in enumerate(neurons):
        trial = settings.grid.step_candidates(neuron.largest, CANDIDATES)
        if filling is not None:
            trial = filling[0][number : number + 1]
        found = rounded(neuron.curvature, neuron.weights, *neuron.steps(trial, settings), settings.grid)
        best = int(found.cost.argmin())
        steps[number] = trial[best]
        columns.append(neuron.whole(found.values[best], trial[best], settings))
    if filling is not None:
        shift = filling[1]
    elif last is None:
        needed = np.log2(np.maximum(reach / (steps * settings.largest_activation), 1.0))
        shift = np.ceil(needed).astype(np.int64)
    else:
        shift = _shifts_before_outputs(last, steps, reach, settings)
    return WholeLayer.of(columns, len(worth), shift, steps)


def _filling(neurons: list[Neuron], sums: np.ndarray, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and shifts with which every neuron fills its bits, all but its largest values in reach."""
    usual = np.array(
        [np.quantile(own[own > 0], FILLED) if (own > 0).any() else 0.0 for own in sums.T], dtype=np.float64
    )
    wanted = usual / (settings.largest_activation + 0.5)
    finest = np.array([neuron.largest for neuron in neurons]) / settings.grid.largest
    shift = np.ceil(np.log2(np.maximum(wanted / finest, 1.0))).astype(np.int64)
    shift = np.minimum(shift, MOST_SHIFT_DOWN)
    return np.maximum(wanted / 2.0**shift, finest), shift


def _shifts_before_outputs(
    last: LayerTarget, steps: np.ndarray, reach: np.ndarray, settings: Settings
) -> np.ndarray:
    """Return shifts with which all output weights fill their bits, and no activation exceeds its own.

    A neuron that matters little comes with fewer steps rather than with a weight that rounds to nothing.
    """
    largest = settings.grid.largest
    sizes = np.abs(last.weights)
    natural = (sizes * reach[:, None]).max(axis=0)
    natural = np.where(natural > 0, natural, np.maximum(sizes.max(axis=0), 1.0)) / largest
    if last.shares_scale:
        natural = np.full_like(natural, natural.max())
    # Output weights in steps of the neuron, as shares of the largest allowed.
    share = (sizes * steps[:, None] / (natural * largest)).max(axis=1)
    share = np.where(share > 0, share, 1.0)
    fineness = 1.0 / settings.largest_activation
    while True:
        shift = np.floor(np.log2(fineness / share) + 1e-9)
        fits = (shift >= 0).all() and (reach <= steps * 2.0**shift * settings.largest_activation).all()
        if fits:
            return np.minimum(shift, MOST_SHIFT_DOWN).astype(np.int64)
        fineness *= 1.05


def _fused_layer(neurons: list[Neuron], reach: np.ndarray, settings: Settings, inputs: int) -> WholeLayer:
    """Round neurons that are added up with free signs: their steps differ by powers of two, their shifts."""
    largest = np.array([neuron.largest for neuron in neurons])
    coarsest = largest.max() / settings.grid.largest
    trials = []
    for factor in 2.0 ** np.linspace(-0.9, 0.0, 6):
        common = max(coarsest * factor, reach.max() / settings.largest_activation)
        columns, shifts, total = [], [], 0.0
        for neuron in neurons:
            ideal = int(np.floor(np.log2(common * settings.grid.largest / neuron.largest) + 1e-9))
            tried = np.unique(np.clip([ideal, ideal + 1], 0, MOST_SHIFT_DOWN))
            trial = common * 2.0**-tried
            found = rounded(neuron.curvature, neuron.weights, *neuron.steps(trial, settings), settings.grid)
            best = int(found.cost.argmin())
            total += float(found.cost[best])
            shifts.append(int(tried[best]))
            columns.append(neuron.whole(found.values[best], trial[best], settings))
        trials.append((total, common, columns, np.array(shifts)))
    _, common, columns, shift = min(trials, key=lambda trial: trial[0])
    return WholeLayer.of(columns, inputs, shift, common * 2.0**-shift)


def _assembled(
    network: Structure, whole: list[WholeLayer], read: np.ndarray, coding: InputCoding, settings: Settings
) -> IntegerNetwork:
    output = whole[-1]
    scale = output.step
    threshold = 0
    if network.classes is not None and network.outputs == 1 and network.link == "identity":
        # An output of 0.5 or more means the second class.
        threshold = int(np.ceil(0.5 / scale[0])) - 1
    return IntegerNetwork(
        layers=tuple(layer.integer() for layer in whole),
        columns=network.inputs,
        used=read,
        coding=coding,
        activation_bits=settings.activation_bits,
        output_scale=scale,
        threshold=threshold,
        direct=output.direct,
        hidden_shift=output.hidden_shift,
        direct_shift=output.direct_shift,
        weight_kind=settings.grid.name,
        weight_bits=settings.grid.bits,
        classes=network.classes,
        link=network.link,
        features=network.features,
        details=network.details,
    )
