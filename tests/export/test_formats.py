"""Formats by name, names in files, and JSON that says everything."""

from __future__ import annotations

import json

import numpy as np
import pytest
from networks import NETWORKS, fused, rows_for

from thresher.errors import ParameterError
from thresher.export import FORMATS, exported, format_named
from thresher.export.naming import c_comment, c_string, checked_name, suggested_name


def computed(document, X):
    """Compute outputs from nothing but the document."""
    values = np.asarray(X, dtype=float)
    for number, layer in enumerate(document["layers"]):
        values = np.maximum(values, 0) if number else values
        sums = np.zeros((len(values), layer["neurons"]))
        for source, neuron, weight in layer["weights"]:
            sums[:, neuron] += weight * values[:, source]
        for neuron, bias in layer["biases"]:
            sums[:, neuron] += bias
        values = sums
    for source, output, weight in document.get("direct", []):
        values[:, output] += weight * np.asarray(X, dtype=float)[:, source]
    return values


@pytest.mark.parametrize("name", NETWORKS)
def test_json_says_everything(name):
    network = NETWORKS[name]
    document = json.loads(network.to_json())
    X = rows_for(network)
    assert np.allclose(computed(document, X), network.forward(X), rtol=1e-12, atol=1e-12)
    assert document["classes"] == (None if network.classes is None else network.classes.tolist())
    assert document["features"] == (None if network.features is None else list(network.features))
    told = (document["link"], document["details"], document["nonzeros"])
    assert told == (network.link, network.details, network.nonzeros)
    assert document["version"] == (1 if network.direct is None else 2)
    assert ("direct" in document) == (network.direct is not None)
    assert network.to_json().isascii()


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_network_gives_the_same_bytes(form):
    if form == "onnx":
        pytest.importorskip("onnx", reason="needs the package onnx: pip install 'thresher[onnx]'")
    network = NETWORKS["softmax"]
    assert exported(network, form, "net") == exported(network, form, "net")


def test_formats_are_found_by_name():
    assert [format_named(name).name for name in ("c", "ONNX", ".json", "torch")] == [
        "c",
        "onnx",
        "json",
        "torch",
    ]
    for wrong, right in (("onx", "onnx"), ("pytorch", "torch"), ("jsn", "json"), ("C99", "c")):
        with pytest.raises(ParameterError, match=rf"Did you mean {right}\?.*c, onnx, torch, json"):
            format_named(wrong)
    with pytest.raises(ParameterError, match=r"there is no format 'xyz'\. Use one of"):
        exported(fused(), "xyz")


@pytest.mark.parametrize("form", FORMATS)
def test_bad_names_are_refused_by_every_format(form):
    with pytest.raises(ParameterError, match="try 'a_b'"):
        exported(fused(), form, "a b")


@pytest.mark.parametrize(
    "text", ["my model", "1", "", "...", "\u00e9t\u00e9", "a" * 90, "int", "a/b.c", "__"]
)
def test_suggested_names_are_allowed(text):
    assert checked_name(suggested_name(text)) == suggested_name(text)


@pytest.mark.parametrize(
    "text", ["*/", "/*", "**//", "*/*/*/", "/*/", "??/", "????/", "a\\", "\n*/", "\u2713"]
)
def test_comments_cannot_be_left(text):
    safe = c_comment(text)
    assert safe.isascii()
    assert not any(pair in safe for pair in ("*/", "/*", "??", "\n"))


def test_strings_hold_their_bytes():
    for text in ('"', "\\", "??/", "a\nb", "\u2713", "1\u00e92", "\ud800"):
        literal = c_string(text)
        assert literal.isascii()
        assert "??" not in literal
        octal = literal[1:-1].replace("\\?", "?").encode().decode("unicode_escape").encode("latin-1")
        assert octal == text.encode("utf-8", "surrogatepass")
