"""A network as a formula: plain text, LaTeX, SymPy, in the names of the user's columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from thresher.errors import ParameterError
from thresher.network.layer import live, narrowed
from thresher.network.metadata import target_names
from thresher.network.structure import Structure, check_names

# A formula beyond these sizes is no longer something to read. A neuron that feeds several others is written
# out once for each, so a network of few nonzeros can still need many terms.
MOST_NONZEROS = 200
MOST_TERMS = 2_000

Term = TypeVar("Term")

# Words of the formula itself; a column of such a name is set in brackets like any that is no single word.
RESERVED = {"relu", "sigmoid", "exp", "score", "P"}

LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    **{character: f"\\{character}" for character in "$&#_%"},
}


def walk(
    network: Structure,
    inputs: Callable[[int], Term],
    relu: Callable[[int, int, Term], Term],
    total: Callable[[list[tuple[float, Term]], float], Term],
) -> list[Term]:
    """Build what stands for each output, before any link, from what stands for the inputs.

    What is always zero is left out. Direct connections come first in the sum of an output.

    Parameters
    ----------
    network : Network
    inputs : callable
        From the number of an input to what stands for it.
    relu : callable
        From layer, neuron and what stands for its sum to what stands for its value.
    total : callable
        From pairs of weight and term, and a bias, to what stands for their sum.
    """
    columns, layers, direct = narrowed(network.layers, network.direct)
    masks = live(layers, direct)
    read: dict[int, Term] = {i: inputs(int(columns[i])) for i in _where(masks[0])}
    terms, last = read, len(layers) - 1
    for number, (layer, mask) in enumerate(zip(layers, masks[1:], strict=True)):
        if number > 0:
            terms = {i: relu(number - 1, i, term) for i, term in terms.items()}
        weights = [(layer.weights.tocsc(), terms)]
        if number == last and direct is not None:
            weights.insert(0, (direct.tocsc(), read))
        terms = {
            j: total([pair for part in weights for pair in _pairs(*part, j)], float(layer.bias[j]))
            for j in _where(mask)
        }
    return [terms[j] for j in range(network.outputs)]


def _pairs(columns: sparse.csc_array, terms: dict[int, Term], j: int) -> list[tuple[float, Term]]:
    """List weight and term of what comes into one neuron."""
    part = slice(columns.indptr[j], columns.indptr[j + 1])
    entries = zip(columns.indices[part].tolist(), columns.data[part].tolist(), strict=True)
    return [(weight, terms[i]) for i, weight in entries if i in terms]


@dataclass(frozen=True)
class Notation:
    """How a formula is written: names and numbers as text, and what stands around them."""

    name: Callable[[str], str]
    number: Callable[[float, int], str]  # without its sign, to so many digits
    times: str
    relu: Callable[[str], str]
    links: Mapping[str, Callable[[str], str]]  # what is written around an output


def text(network: Structure, names: Sequence[str] | None, digits: int) -> str:
    """Write the network as plain text, a line for each output."""
    sums = _written(network, names, digits, PLAIN)
    lefts = left_sides(network, in_brackets, printable)
    return "\n".join(f"{left} = {total}" for left, total in zip(lefts, sums, strict=True))


def latex(network: Structure, names: Sequence[str] | None, digits: int) -> str:
    """Write the network as LaTeX for use in display mathematics."""
    sums = _written(network, names, digits, LATEX)
    lefts = left_sides(network, _latex_name, _latex_name)
    if len(sums) == 1:
        return f"{lefts[0]} = {sums[0]}"
    lines = [f"{left} &= {total}" for left, total in zip(lefts, sums, strict=True)]
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def _written(network: Structure, names: Sequence[str] | None, digits: int, notation: Notation) -> list[str]:
    """Write what each output is equal to."""
    _check_length(network)
    called = input_names(network, names)

    def product(weight: float, term: str) -> str:
        number = notation.number(weight, digits)
        return term if number == "1" else f"{number}{notation.times}{term}"

    sums = walk(
        network,
        lambda i: notation.name(called(i)),
        lambda _layer, _neuron, term: notation.relu(term),
        lambda pairs, bias: _sum([(w, product(w, t)) for w, t in pairs], bias, notation.number(bias, digits)),
    )
    around = notation.links.get(network.link)
    return sums if around is None else [around(total) for total in sums]


def sympy_expressions(network: Structure, names: Sequence[str] | None) -> list[Any]:
    """Build one SymPy expression for each output, over real symbols with the names of the inputs."""
    import sympy

    _check_length(network)
    called = input_names(network, names)

    def number(value: float) -> Any:
        return sympy.Integer(int(value)) if value in (-1, 0, 1) else sympy.Float(value)

    # SymPy would try to simplify every maximum, which takes long and finds nothing.
    sums = walk(
        network,
        lambda i: sympy.Symbol(called(i), real=True),
        lambda _layer, _neuron, term: sympy.Max(sympy.Integer(0), term, evaluate=False),
        lambda pairs, bias: sympy.Add(*(number(w) * t for w, t in pairs), number(bias)),
    )
    if network.link == "log":
        return [sympy.exp(total, evaluate=False) for total in sums]
    return [1 / (1 + sympy.exp(-total)) for total in sums] if network.link == "logistic" else sums


def input_names(network: Structure, names: Sequence[str] | None = None) -> Callable[[int], str]:
    """Name inputs, each its own way: those given, the network's, or x0, x1, ... as columns are numbered.

    A name that comes twice is told apart by the number of its column.
    """
    names = network.features if names is None else names
    if names is None:
        return lambda column: f"x{column}"
    check_names(names, network.inputs)
    counts = Counter(names)
    return lambda column: f"{names[column]} (column {column})" if counts[names[column]] > 1 else names[column]


def left_sides(network: Structure, name: Callable[[str], str], label: Callable[[str], str]) -> list[str]:
    """Say what each output is: a target, the probability of a class or label, or a class's score."""
    targets = target_names(network.details, network.targets)
    if network.classes is None:
        if targets is None:
            targets = ["y"] if network.outputs == 1 else [f"y{i}" for i in range(network.outputs)]
        return [f"P({label(one)})" if network.gives_labels else name(one) for one in targets]
    shown = network.classes[1:] if network.outputs == 1 else network.classes
    what = "P" if network.link == "logistic" else label("score")
    of = "" if targets is None else f"{name(targets[0])} = "
    return [f"{what}({of}{label(str(one))})" for one in shown.tolist()]


def _check_length(network: Structure) -> None:
    _, layers, direct = narrowed(network.layers, network.direct)
    masks = live(layers)
    terms = masks[0].astype(float)
    for layer, mask in zip(layers, masks[1:], strict=True):
        terms = (layer.pattern().T @ terms + (layer.bias != 0)) * mask
    if direct is not None:
        terms = terms + np.bincount(direct.indices, minlength=network.outputs)
    if network.nonzeros > MOST_NONZEROS or terms.sum() > MOST_TERMS:
        raise ParameterError(
            f"a formula of {network.nonzeros:,} nonzeros in {terms.sum():,.0f} terms is too long to read (at "
            f"most {MOST_NONZEROS} in {MOST_TERMS:,}): use describe() or to_python(), or fit with a smaller "
            "budget."
        )


def _where(mask: np.ndarray) -> list[int]:
    return [int(i) for i in np.flatnonzero(mask)]


def _sum(products: list[tuple[float, str]], bias: float, bias_text: str) -> str:
    """Join products by the signs of their weights, such as "2*x0 - x3 + 0.5"."""
    joined = ""
    for weight, product in [*products, (bias, bias_text)]:
        if weight != 0:
            sign = "-" if weight < 0 else "+"
            joined += f" {sign} {product}" if joined else sign.strip("+") + product
    return joined or "0"


def _number(value: float, digits: int) -> str:
    if not 1 <= digits <= 17:
        raise ParameterError(f"digits={digits}, but a number has between 1 and 17 significant digits.")
    return f"{abs(value):.{digits}g}"


def _latex_number(value: float, digits: int) -> str:
    mantissa, _, exponent = _number(value, digits).partition("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if exponent else mantissa


def printable(name: str) -> str:
    """Write what would break a line, steer a terminal, or cannot be seen, as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def in_brackets(name: str) -> str:
    return name if name.isidentifier() and name not in RESERVED else f"[{printable(name)}]"


def _latex_name(name: str) -> str:
    numbered = re.fullmatch(r"([A-Za-z])([0-9]+)", name)
    if numbered:
        return f"{numbered[1]}_{{{numbered[2]}}}"
    if re.fullmatch(r"[A-Za-z]", name):
        return name
    escaped = "".join(LATEX_ESCAPES.get(character, character) for character in printable(name))
    return rf"\mathrm{{{escaped}}}" if re.fullmatch(r"\w+", name) else rf"\text{{{escaped}}}"


PLAIN = Notation(
    in_brackets,
    _number,
    "*",
    "relu({})".format,
    {"logistic": "sigmoid({})".format, "log": "exp({})".format},
)
LATEX = Notation(
    _latex_name,
    _latex_number,
    r" \, ",
    lambda term: rf"\max\left(0, {term}\right)",
    {
        "logistic": lambda total: rf"\sigma\left({total}\right)",
        "log": lambda total: rf"\exp\left({total}\right)",
    },
)
