"""A network of several outputs as the stack of its outputs, each with weights of its own.

Where neuron i has weights ``u_ij`` and feeds output k by ``v_ik``, output k alone is a network with weights
``v_ik u_ij``. What holds of every output of the stack holds of the network: networks whose outputs share
neurons are stacks as well, so no two of them can differ where stacks cannot. The other way round it is not
so: a stack that does better need not be a network that shares its neurons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from thresher.network import Layer, Network
from thresher.theory import conditions as state
from thresher.theory import effects
from thresher.theory.conditions import FAILS, HOLDS, UNKNOWN, Condition
from thresher.theory.dictionary import Dictionary, Scan, scan, whole_spectrum
from thresher.theory.distinct import told_apart
from thresher.theory.effects import Refit, refit_of
from thresher.theory.fused import Fused, fused_of
from thresher.theory.identity import identity
from thresher.theory.rounding import Precision, Rounding, rounding_of
from thresher.theory.spectra import Spectrum, spectrum

# Conditions whose number is the worse the smaller it is.
SMALLER_IS_WORSE = ("rows", "independent", "resolved", "activity", "separation", "injective")


@dataclass(frozen=True, eq=False)
class Output:
    """One output of a network, and what rounding, its spectrum and its refit are on given rows.

    `refit` is None where the support's columns are dependent.
    """

    network: Network
    fused: Fused
    residual: NDArray[np.float64]
    rounding: Rounding
    spectrum: Spectrum
    refit: Refit | None


def outputs_of(
    network: Network, rows: NDArray[np.float64], targets: NDArray[np.float64], precision: Precision
) -> list[Output]:
    """Take a network with one hidden layer apart into its outputs."""
    parts = [network] if network.outputs == 1 else [_alone(network, k) for k in range(network.outputs)]
    biased = bool(network.layers[0].bias.any())
    made = []
    for part, target in zip(parts, targets.T, strict=True):
        fused = fused_of(part, rows, biased)
        rounding = rounding_of(part, fused.spread, target, precision)
        residual = fused.output - target
        found = spectrum(fused.columns)
        fitting = state.fits(residual, rounding.rows).holds
        refit = refit_of(fused, residual, rounding, fitting) if found.certain > 0 else None
        made.append(Output(part, fused, residual, rounding, found, refit))
    if len(made) > 1 and (idle := _idle(network)):
        made[0] = replace(made[0], fused=replace(made[0].fused, idle=made[0].fused.idle + idle))
    return made


def _alone(network: Network, number: int) -> Network:
    """Give one output as a network, without the neurons that do not feed it."""
    hidden, last = network.layers
    column = last.weights.toarray()[:, number]
    fed = np.flatnonzero(column)
    one = Layer(hidden.weights.tocsc()[:, fed].tocsr(), hidden.bias[fed])
    two = Layer(column[fed, None], last.bias[number : number + 1])
    direct = None if network.direct is None else network.direct_coef[:, number : number + 1]
    direct = None if direct is None or not direct.any() else direct
    return Network((one, two), direct=direct)


def _idle(network: Network) -> int:
    """Count the nonzeros of neurons that feed no output."""
    hidden, last = network.layers
    unfed = ~(last.weights.toarray() != 0).any(axis=1)
    return int(hidden.weights.tocsc()[:, np.flatnonzero(unfed)].nnz + np.count_nonzero(hidden.bias[unfed]))


def shared(network: Network) -> bool:
    """Say whether a neuron feeds more than one output."""
    return bool((np.diff(network.layers[1].weights.tocsr().indptr) > 1).any())


def conditions_of(output: Output) -> list[Condition]:
    """State the conditions on one output that no dictionary takes part in."""
    fused, refit = output.fused, output.refit
    fitting = state.fits(output.residual, output.rounding.rows)
    found = [
        fitting,
        state.enough_rows(len(fused.inputs), _distinct_rows(output), fused.size),
        state.decided_gates(fused),
        state.independent(fused, output.spectrum),
    ]
    if refit is None:
        sentence = "Not asked, since the support's columns are dependent."
        found += [state.condition(name, None, None, sentence) for name in ("stationary", "resolved")]
    else:
        found.append(effects.stationary(refit))
        found.append(effects.resolved(fused, output.residual, output.rounding, refit, fitting.holds))
    doubt = _doubt(output) if refit is not None and fitting.holds else None
    told = identity(output.network, doubt)
    return [*found, state.activity(fused), state.apart(fused), state.identified(told)]


def _distinct_rows(output: Output) -> int:
    """Count the rows that differ in the inputs used by more than rounding, and than labels can hide.

    How many can be told by their labels is counted no further than is asked for.
    """
    fused, distinct = output.fused, int(output.fused.groups.max()) + 1
    asked = state.ROWS_PER_WEIGHT * fused.size
    used = np.unique(fused.feature[fused.feature >= 0])
    worth = np.zeros(fused.inputs.shape[1])
    inner = fused.neuron >= 0
    np.maximum.at(worth, fused.feature[inner], np.abs(fused.weights[inner]))
    hidden = state.ROUNDING_FACTOR * output.rounding.rows
    told = told_apart(fused.inputs[:, used], worth[used], hidden, asked)
    return distinct if told >= asked else min(distinct, told)


def _doubt(output: Output) -> NDArray[np.float64]:  # (neurons, features + 1)
    """Give what rounding leaves uncertain of every hidden weight, and, last, of every hidden bias."""
    assert output.refit is not None
    fused = output.fused
    blur = effects.uncertain(output.residual, output.rounding, output.refit) / fused.norms
    hidden = fused.neuron >= 0
    doubt = np.zeros((len(fused.gates), output.network.inputs + 1))
    doubt[fused.neuron[hidden], fused.feature[hidden]] = blur[hidden]
    return doubt


def scanned(output: Output, dictionaries: Sequence[Dictionary]) -> tuple[list[Condition], list[Scan]]:
    """Go through every dictionary, and state what the refit leaves and both dual conditions over each."""
    if output.refit is None:
        sentence = "Not asked, since the support's columns are dependent."
        names = ["remainder"]
        names += [f"{kind} ({one.name})" for one in dictionaries for kind in ("injective", "tropp", "fuchs")]
        return [state.condition(name, None, None, sentence) for name in names], []
    arithmetic = float(np.linalg.norm(output.rounding.arithmetic))
    scans = [
        scan(
            one,
            output.fused,
            output.residual,
            output.spectrum,
            output.refit.rest,
            output.refit.errors,
            arithmetic,
        )
        for one in dictionaries
    ]
    fitting = state.fits(output.residual, output.rounding.rows).holds
    found = [effects.remainder(scans, fitting)]
    for one, seen in zip(dictionaries, scans, strict=True):
        found.append(state.injective(one, whole_spectrum(one, output.fused)))
        found += [state.tropp(one, seen), state.fuchs(one, seen)]
    return found, scans


def stacked(parts: Sequence[Sequence[Condition]], shares: bool) -> list[Condition]:
    """Combine the conditions of all outputs: each is as good as that of its worst output."""
    if len(parts) == 1:
        return list(parts[0])
    merged = []
    for same in zip(*parts, strict=True):
        place = max(range(len(same)), key=lambda one: _badness(same[one]))
        worst = same[place]
        sentence = f"Worst of {len(parts)} outputs, number {place + 1}: {worst.sentence}"
        status = worst.status
        if worst.name == "stationary" and status == FAILS and shares:
            status = UNKNOWN
            sentence += " But outputs share neurons, and need not be able to take these weights."
        merged.append(Condition(worst.name, status, worst.number, sentence))
    return merged


def _badness(one: Condition) -> tuple[int, float]:
    rank = (HOLDS, UNKNOWN, FAILS).index(one.status)
    if one.number is None:
        return rank, -math.inf
    return rank, -one.number if one.name.split(" (")[0] in SMALLER_IS_WORSE else one.number
