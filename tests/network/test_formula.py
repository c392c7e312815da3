"""However a network is written out, the formula computes what the network does."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from networks import LINE, NETWORKS, ODD_NAMES, answers, fused, random_network, rows_for

from thresher.errors import ParameterError
from thresher.network import Layer, Network
from thresher.network.formula import input_names, printable


def expected(network, X):
    """What formulas say: targets, scores, or the probability of the second of two classes."""
    return network.predict_proba(X)[:, 1:] if network.link == "logistic" else answers(network, X)


def functions():
    return {
        "relu": lambda value: max(value, 0.0),
        "sigmoid": lambda value: 1 / (1 + math.exp(-value)),
        "exp": math.exp,
        "max": max,
        "__builtins__": {},
    }


def evaluated(lines, row, looked_up):
    """Compute right sides as Python would; names are looked up as the numbered variables they are made to."""
    variables = {variable: float(row[i]) for i, variable in looked_up.items()}
    return [eval(line, {**functions(), **variables}) for line in lines]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_text_computes_what_the_network_does(name):
    network = NETWORKS[name]
    lines = network.formula(digits=17).splitlines()
    assert len(lines) == network.outputs
    rights = [line.partition(" = ")[2] if "= " in line else line for line in lines]
    if network.classes is not None and "target" in network.details:
        rights = [line.split(" = ", 2)[2] for line in lines]
    called = [input_names(network)(i) for i in range(network.inputs)]
    looked_up = {i: f"v{i}_" for i in range(network.inputs)}
    for i in sorted(looked_up, key=lambda i: -len(called[i])):
        rights = [line.replace(f"[{printable(called[i])}]", f" {looked_up[i]} ") for line in rights]
        if called[i].isidentifier() and called[i] not in ("relu", "sigmoid", "exp"):
            rights = [re.sub(rf"\b{called[i]}\b", looked_up[i], line) for line in rights]
    X = rows_for(network, 10)
    found = [evaluated(rights, row, looked_up) for row in X]
    assert np.allclose(found, expected(network, X), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", NETWORKS)
def test_sympy_computes_what_the_network_does(name):
    import sympy

    network = NETWORKS[name]
    given = network.sympy()
    expressions = [given] if network.outputs == 1 else given
    symbols = [sympy.Symbol(called, real=True) for called in map(input_names(network), range(network.inputs))]
    assert {s for e in expressions for s in e.free_symbols} == {
        symbols[i] for i in np.flatnonzero(network.support())
    }
    X = rows_for(network, 10).astype(float)
    for number, expression in enumerate(expressions):
        compute = sympy.lambdify(symbols, expression, "math")
        found = [float(compute(*row)) for row in X]
        assert np.allclose(found, expected(network, X)[:, number], rtol=1e-11, atol=1e-11)


def from_latex(text, variables):
    """Turn the LaTeX that networks are written in into Python, right sides only."""
    body = text.removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    lines = [re.split(r"\s&?=\s", line) for line in body.split(" \\\\\n")]
    rights = [" = ".join(parts[1:]) for parts in lines]
    found = []
    for right in rights:
        right = right.rpartition(" = ")[2]
        for written, variable in variables:
            right = right.replace(written, variable)
        for written, function in (("max", "max"), ("sigma", "sigmoid"), ("exp", "exp")):
            right = right.replace(f"\\{written}\\left(", f"{function}(")
        right = re.sub(r" \\times 10\^\{(-?\d+)\}", r"e\1", right)
        found.append(right.replace("\\right)", ")").replace(" \\, ", " * "))
    return found


@pytest.mark.parametrize("name", [name for name in NETWORKS if "named" not in name and "mixed" not in name])
def test_latex_computes_what_the_network_does(name):
    network = NETWORKS[name]
    names = [f"x{i}" for i in range(network.inputs)]
    variables = [(f"x_{{{i}}}", f"v{i}_") for i in range(network.inputs)]
    rights = from_latex(network.latex(names, digits=17), variables)
    X = rows_for(network, 10)
    found = [evaluated(rights, row, {i: f"v{i}_" for i in range(network.inputs)}) for row in X]
    assert np.allclose(found, expected(network, X), rtol=1e-11, atol=1e-11)


def test_latex_reads_well_and_escapes_names():
    network = Network.fused([[2.0], [-1e-7]], [0.5], [-1], features=["a_b", "50% {x} \\ $y$"])
    assert network.latex() == (
        r"y = -\max\left(0, 2 \, \mathrm{a\_b} - 1 \times 10^{-7} \, "
        r"\text{50\% \{x\} \textbackslash{} \$y\$} + 0.5\right)"
    )
    several = random_network((2, 2), classes=None, details={"target": ["p", "q r"]})
    first, last = several.latex().splitlines()[0], several.latex().splitlines()[-1]
    assert (first, last) == ("\\begin{aligned}", "\\end{aligned}")
    assert "p &= " in several.latex()
    assert r"\text{q r} &= " in several.latex()
    for odd in ODD_NAMES:
        text = Network.fused([[2.0]], None, [1], features=[odd]).latex()
        unescaped = re.sub(r"\\.", "", text)
        assert unescaped.count("{") == unescaped.count("}")
        assert not re.search(r"[%$&#~\n]", unescaped)


@pytest.mark.parametrize("name", NETWORKS)
def test_python_computes_what_the_network_does(name):
    network = NETWORKS[name]
    space = {}
    exec(compile(network.to_python("answer"), "written", "exec"), space)
    X = rows_for(network)
    named = network.features is not None and len(set(network.features)) == network.inputs
    rows = [dict(zip(network.features, row, strict=True)) for row in X.tolist()] if named else X.tolist()
    found = [space["answer"](row) for row in rows]
    if network.classes is None:
        assert np.allclose(found, network.predict(X), rtol=1e-11, atol=1e-11)
    else:
        assert found == network.predict(X).tolist()
        assert [type(answer) for answer in found] == [type(label) for label in network.predict(X).tolist()]
        scores = [space["answer_scores"](row) for row in rows]
        assert np.allclose(scores, network.forward(X), rtol=1e-11, atol=1e-11)
        proba = [space["answer_proba"](row) for row in rows]
        assert np.allclose(proba, network.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_python_decides_ties_as_the_network_does():
    X = np.array([[0.0], [0.49], [0.5], [0.51], [-0.5]])
    for link in ("logistic", "identity"):
        network = Network.fused([[1.0, -1.0]], None, [1, -1], classes=["a", "b"], link=link)
        space = {}
        exec(network.to_python(), space)
        assert [space["predict"](row) for row in X.tolist()] == network.predict(X).tolist()


def test_python_holds_networks_that_no_formula_could():
    square = Layer(np.ones((2, 2)), np.zeros(2))
    deep = Network((square,) * 40)
    wide = random_network((4_000, 1, 1), density=1.0)
    for network in (deep, wide):
        space = {}
        exec(network.to_python(), space)
        X = rows_for(network, 3)
        found = [space["predict"](row) for row in X.astype(float).tolist()]
        assert np.allclose(found, network.predict(X), rtol=1e-9)


def test_names_of_functions_are_checked():
    for bad in ("", "a b", "1a", "_a", "a;b", "caf\u00e9", "x" * 60):
        with pytest.raises(ParameterError, match="name="):
            fused().to_python(bad)
    assert "def lambda_(row)" in fused().to_python("lambda")
    wide = random_network((60, 3, 3), density=1.0, classes=[1, 2, 3], link="softmax")
    X = rows_for(wide)
    for taken in ("max", "sum", "math", "CLASSES"):
        space = {}
        exec(wide.to_python(taken), space)
        assert [space[f"{taken}_"](row) for row in X.tolist()] == wide.predict(X).tolist()
        assert len(space[f"{taken}__proba"](X[0].tolist())) == 3


def test_a_linear_part_is_written_as_one():
    parts = {"features": ["x", "z"], "output_bias": 1.0}
    line = Network.fused(np.zeros((2, 3)), None, [1, 1, -1], direct=[2.0, -3.0], **parts)
    assert line.formula() == "y = 2*x - 3*z + 1"
    assert line.latex() == r"y = 2 \, x - 3 \, z + 1"
    assert str(line.sympy()) == "2.0*x - 3.0*z + 1"
    both = Network.fused([[0.0], [2.0]], [1.0], [-1], direct=[0.5, 0.0], link="log", **parts)
    assert both.formula() == "y = exp(0.5*x - relu(2*z + 1) + 1)"
    assert both.latex() == r"y = \exp\left(0.5 \, x - \max\left(0, 2 \, z + 1\right) + 1\right)"
    assert fused(direct=LINE, details={"target": "exp"}).formula().startswith("[exp] = 1.5*x1 - 0.8*x4 +")


def test_columns_of_one_name_are_told_apart():
    network = Network.fused([[2.0], [3.0], [4.0]], None, [1], features=["a", "b", "a"])
    assert network.formula() == "y = relu(2*[a (column 0)] + 3*b + 4*[a (column 2)])"
    assert len(network.sympy().free_symbols) == 3


def test_targets_and_labels_are_named():
    assert fused(details={"target": "net price"}).formula().startswith("[net price] = ")
    assert NETWORKS["logistic"].formula().startswith("P(ill = yes) = sigmoid(")
    lines = NETWORKS["deep, many outputs"].formula().splitlines()
    assert [line.partition(" = ")[0] for line in lines] == ["a", "[b c]", "d"]
    # Details that do not fit are left alone.
    for target in (["one", "two"], 3, None, [1]):
        assert fused(details={"target": target}).formula().startswith("y = ")


@pytest.mark.parametrize("method", ["formula", "latex", "sympy"])
def test_what_is_too_long_to_read_is_refused(method):
    for network in (
        random_network((300, 1, 1), density=1.0),
        random_network((300, 1, 1), density=0.0, direct=1.0),
    ):
        with pytest.raises(ParameterError, match="too long to read"):
            getattr(network, method)()
