"""What a network is made of, which inputs it uses and how much each of them matters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import sparse

from thresher.errors import DataError, ParameterError
from thresher.explain.readable import explain
from thresher.network.formula import input_names, printable
from thresher.network.forward import checked, outputs
from thresher.network.layer import Layer, columns_of, live, narrowed
from thresher.network.metadata import spread_of, target_names
from thresher.network.requirements import described, directions
from thresher.network.structure import Structure

# Networks up to this size are written out whole in a description.
FORMULA_NONZEROS = 30
# Inputs that a description lists, those that matter most first.
LISTED = 12
LONGEST_NAME = 40
# Lines of a formula longer than this are folded.
FOLDED = 90

MEASURES = {
    "unit": "how far the outputs move at most for one unit of each",
    "spread": "how far the outputs move at most for one standard deviation of each",
    "data": "how far the outputs move when each is held at its mean (root mean square)",
}


def importance(network: Structure, X: Any = None) -> tuple[np.ndarray, str]:
    """Measure how much each input matters, and say how it was measured, as a key of `MEASURES`.

    With data it is the root mean square, over rows, of the change of all outputs when an input is held at its
    mean. Without, it is the sum over all paths from the input to an output of the product of the weights'
    sizes: no output can move further for each unit of that input; where the details tell the inputs' standard
    deviations as ``spread``, for each of those.
    """
    columns, matters, measure = measured(network, X)
    found = np.zeros(network.inputs)
    found[columns] = matters
    return found, measure


def measured(network: Structure, X: Any = None) -> tuple[np.ndarray, np.ndarray, str]:
    """Give the inputs that are read, ascending, how much each of them matters, and how that was measured."""
    if X is not None:
        return *_on_rows(network, X), "data"
    columns, layers, direct = narrowed(network.layers, network.direct)
    reach = np.ones(network.outputs)
    spread = spread_of(network.details, network.inputs)
    with np.errstate(over="ignore"):
        for layer, mask in zip(reversed(layers), reversed(live(layers)[:-1]), strict=True):
            reach = np.where(mask, abs(layer.weights).astype(np.float64) @ reach, 0.0)
        if direct is not None:
            reach = reach + abs(direct).astype(np.float64) @ np.ones(network.outputs)
        reach = np.minimum(reach if spread is None else reach * spread[columns], np.finfo(np.float64).max)
    return columns, reach, "unit" if spread is None else "spread"


def _on_rows(network: Structure, X: Any) -> tuple[np.ndarray, np.ndarray]:
    X = checked(X, network.inputs, network.features)
    if X.shape[0] == 0:
        raise DataError("X has no rows, but at least one is needed to measure what an input does.")
    read, layers, direct = narrowed(network.layers, network.direct)
    used = live(layers, direct)[0]
    found = np.zeros(used.sum())
    if not used.any():
        return read[used], found
    before = outputs(network.layers, X, network.direct)
    columns = columns_of(X, read[used]).toarray() if sparse.issparse(X) else X[:, read[used]]
    columns = columns.astype(np.float64)
    layers = [Layer(layers[0].weights[used], layers[0].bias), *layers[1:]]
    direct = None if direct is None else direct[used]
    for place in range(len(found)):
        kept = columns[:, place].copy()
        columns[:, place] = kept.mean()
        change = outputs(layers, columns, direct) - before
        columns[:, place] = kept
        found[place] = np.sqrt((change**2).sum(axis=1).mean())
    return read[used], found


def summary(network: Structure, X: Any = None) -> dict[str, Any]:
    """Gather what a description says as plain values, fit for JSON."""
    columns, matters, measure = measured(network, X)
    names, ways = input_names(network), directions(network)
    used = np.isin(columns, network.inputs_used())
    columns, matters = columns[used], matters[used]
    order = np.argsort(-matters, kind="stable").tolist()
    return {
        "widths": [network.inputs, *network.hidden, network.outputs],
        "task": _task(network),
        "link": network.link,
        "classes": None if network.classes is None else network.classes.tolist(),
        "target": target_names(network.details, network.targets),
        "nonzeros": network.nonzeros,
        "size": network.size,
        "layers": _layers(network),
        "direct": _direct(network),
        "inputs_used": len(order),
        "requirements": described(network),
        "measure": MEASURES[measure],
        "inputs": [
            {
                "column": column,
                "name": names(column),
                "importance": float(matters[place]),
                "direction": ways[column],
            }
            for place, column in zip(order, columns[order].tolist(), strict=True)
        ],
        "formula": _short_formula(network),
    }


def _task(network: Structure) -> str:
    if network.gives_labels:
        return "several labels"
    return "regression" if network.classes is None else "classification"


def _layers(network: Structure) -> list[dict[str, Any]]:
    return [
        {
            "inputs": layer.inputs,
            "neurons": layer.neurons,
            "weights": int(layer.weights.nnz),
            "biases": int(np.count_nonzero(layer.bias)),
            "signs_only": layer.signs_only,
            "alive": int(mask.sum()),
        }
        for layer, mask in zip(network.layers, live(narrowed(network.layers)[1])[1:], strict=True)
    ]


def _direct(network: Structure) -> dict[str, int] | None:
    if network.direct is None:
        return None
    inputs = len(np.unique(network.direct.tocoo().row))
    return {"inputs": inputs, "weights": int(network.direct.nnz)}


def _short_formula(network: Structure) -> str | None:
    if network.nonzeros > FORMULA_NONZEROS:
        return None
    try:
        return explain(network).formula
    except ParameterError:  # few nonzeros can still mean many terms
        return None


def describe(network: Structure, X: Any = None, formula: bool = True) -> str:
    """Write a short summary: shape, purpose, nonzeros, what takes part and how much it matters.

    A small network is written out as a formula too, if that is asked for.
    """
    found = summary(network, X)
    lines = [
        f"ReLU network   {' -> '.join(map(str, found['widths']))}, {_purpose(network)}",
        f"nonzeros       {network.nonzeros:,} of {network.size:,} ({network.nonzeros / network.size:.2%})",
    ]
    for number, layer in enumerate(found["layers"], start=1):
        lines.append(f"{f'layer {number}':<15}{_layer_line(layer, last=number == len(found['layers']))}")
    if found["direct"] is not None:
        counts = [_counted(found["direct"][what], what[:-1]) for what in ("inputs", "weights")]
        lines.append(f"direct         linear part: {', '.join(counts)}")
    if found["requirements"] is not None:
        lines.append(f"required       {printable(found['requirements'])}")
    tail = f", by {found['measure']}:" if found["inputs"] else ""
    lines.append(f"inputs used    {found['inputs_used']:,} of {network.inputs:,}{tail}")
    lines += _input_lines(found["inputs"])
    if formula and found["formula"] is not None:
        lines += _formula_lines(found["formula"])
    return "\n".join(lines)


def _formula_lines(formula: str) -> list[str]:
    """Put a formula beside its head, and every neuron of a long one on a line of its own."""
    folded = [
        re.sub(r" ([+-] (?:[0-9.e+-]+\*)?(?:relu)?\()", r"\n    \1", line) if len(line) > FOLDED else line
        for line in formula.splitlines()
    ]
    lines = "\n".join(folded).split("\n")
    return [f"{'' if number else 'formula':<15}{line}" for number, line in enumerate(lines)]


def _purpose(network: Structure) -> str:
    names = target_names(network.details, network.targets)
    of = "" if names is None else f" of {', '.join(map(_cut, names))}"
    if network.gives_labels:
        named = "" if names is None else f": {', '.join(map(_cut, names))}"
        return f"{network.outputs} labels for each row{named}"
    if network.classes is None:
        link = ", log link" if network.link == "log" else ""
        several = "" if network.outputs == 1 else f" ({network.outputs} targets)"
        return f"regression{of}{several}{link}"
    labels = [_cut(str(label)) for label in network.classes.tolist()]
    listed = ", ".join(labels if len(labels) <= 10 else [*labels[:9], "...", labels[-1]])
    return f"classification{of} ({len(labels)} classes: {listed})"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _layer_line(layer: dict[str, Any], last: bool) -> str:
    weights = _counted(layer["weights"], "sign" if layer["signs_only"] else "weight")
    weights += " (free)" if layer["signs_only"] else ""
    biases = f"{layer['biases']:,} bias{'' if layer['biases'] == 1 else 'es'}"
    line = f"{layer['inputs']:,} -> {layer['neurons']:,}: {weights}, {biases}"
    return line if last else f"{line}, {layer['alive']:,} of {layer['neurons']:,} neurons alive"


def _input_lines(inputs: list[dict[str, Any]]) -> list[str]:
    shown = inputs if len(inputs) <= LISTED + 1 else inputs[:LISTED]
    names = [_cut(each["name"]) for each in shown]
    width = max([11, *map(len, names)])
    lines = [
        f"  {name:<{width}}  {each['importance']:>10.4g}  {each['direction']}".rstrip()
        for name, each in zip(names, shown, strict=True)
    ]
    if len(shown) < len(inputs):
        lines.append(f"  and {len(inputs) - len(shown):,} more")
    return lines


def _cut(name: str) -> str:
    name = printable(" ".join(name.split()))
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
