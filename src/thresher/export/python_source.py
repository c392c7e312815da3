"""A network as a Python function that needs no library."""

from __future__ import annotations

from thresher._version import __version__
from thresher.export.naming import plain_labels, python_name
from thresher.network.formula import input_names, walk
from thresher.network.structure import Structure

TAKEN = {"CLASSES", "abs", "int", "math", "max", "min", "sum"}

SHARE = '''
import math


def _share(score):
    """Return the probability of a label whose log-odds are known, without overflow."""
    small = math.exp(-abs(score))
    return (1.0 if score >= 0 else small) / (1.0 + small)
'''


def python_source(network: Structure, name: str) -> str:
    """Write the source of a function that takes one row and predicts.

    Every neuron is computed once, on a line of its own, so any network can be written. What comes from the
    user (names of columns, labels) enters as literals only.
    """
    name = python_name(name, TAKEN)
    # A name that comes twice cannot be looked up, so rows are then sequences.
    named = network.features is not None and len(set(network.features)) == network.inputs
    called = input_names(network)
    lines: list[str] = []

    def read(column: int) -> str:
        lines.append(f"    x{column} = row[{ascii(called(column)) if named else column}]")
        return f"x{column}"

    def relu(layer: int, neuron: int, term: str) -> str:
        lines.append(f"    h{layer + 1}_{neuron} = max(0.0, {term})")
        return f"h{layer + 1}_{neuron}"

    outputs = walk(network, read, relu, _total)
    kind = "a mapping from names to numbers" if named else "a sequence of all columns"
    head = f'"""A ReLU network with {network.nonzeros} nonzeros, written by thresher {__version__}."""\n'
    if network.classes is not None:
        return "\n".join([head, *_classifier(network, name, kind, lines, outputs)])
    if network.link == "log":
        head += "\nimport math\n"
        outputs = [f"math.exp({output})" for output in outputs]
    if network.gives_labels:
        head += SHARE
        outputs = [f"_share({output})" for output in outputs]
    answer = outputs[0] if network.outputs == 1 else f"[{', '.join(outputs)}]"
    what = "Give the probability of each label" if network.gives_labels else "Predict"
    says = f'    """{what} from one row, {kind}."""'
    return "\n".join([head, "", f"def {name}(row):", says, *lines, f"    return {answer}", ""])


def _total(pairs: list[tuple[float, str]], bias: float) -> str:
    units = {1.0: "", -1.0: "-"}
    terms = [units.get(weight, f"{weight!r} * ") + term for weight, term in pairs]
    terms += [repr(bias)] if bias or not pairs else []
    # Python's compiler descends once for every sign between terms, and not without limit.
    return f"sum(({', '.join(terms)}))" if len(terms) > 50 else " + ".join(terms).replace("+ -", "- ")


def _classifier(network: Structure, name: str, kind: str, lines: list[str], outputs: list[str]) -> list[str]:
    """Write three functions: scores, probabilities and the class."""
    assert network.classes is not None
    if network.link == "softmax":
        proba = [
            "    largest = max(scores)",
            "    parts = [math.exp(score - largest) for score in scores]",
            "    return [part / sum(parts) for part in parts]",
        ]
        place = "scores.index(max(scores))"
    elif network.link == "logistic":
        proba = [
            "    small = math.exp(-abs(scores[0]))",
            "    pair = [small / (1.0 + small), 1.0 / (1.0 + small)]",
            "    return pair if scores[0] >= 0 else pair[::-1]",
        ]
        place = "int(scores[0] > 0)"
    else:
        proba = ["    second = min(max(scores[0], 0.0), 1.0)", "    return [1.0 - second, second]"]
        place = "int(scores[0] >= 0.5)"
    return [
        *([] if network.link == "identity" else ["import math", ""]),
        f"CLASSES = {plain_labels(network.classes)!a}",
        "",
        "",
        f"def {name}_scores(row):",
        f'    """Return the outputs for one row, {kind}."""',
        *lines,
        f"    return [{', '.join(outputs)}]",
        "",
        "",
        f"def {name}_proba(row):",
        '    """Return the probability of each class."""',
        f"    scores = {name}_scores(row)",
        *proba,
        "",
        "",
        f"def {name}(row):",
        '    """Return the class of one row."""',
        f"    scores = {name}_scores(row)",
        f"    return CLASSES[{place}]",
        "",
    ]
