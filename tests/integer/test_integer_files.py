"""Files of integer networks give back what was saved, and nothing that was tampered with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import fused
from safetensors.numpy import load_file, save
from whole import CHOSEN, rows, whole

from thresher.errors import ModelFileError
from thresher.integer import IntegerNetwork
from thresher.integer.files import ENTRY, config_of, tensors_of
from thresher.network import Network


@pytest.mark.parametrize("name", CHOSEN)
def test_a_saved_network_comes_back(name: str, tmp_path: Path) -> None:
    network = whole(name, "int4, narrow")
    network.save(tmp_path / "a")
    found = IntegerNetwork.load(tmp_path / "a")
    assert found.equals(network)
    assert found.details == network.details
    X = rows(network) / 4
    codes = network.codes(X)
    assert (found.run(codes) == network.run(codes)).all()
    assert found.classes is None or found.classes.dtype == network.classes.dtype


def tampered(path: Path, change: Any) -> Path:
    """Write a file with its configuration and tensors changed."""
    network = whole("direct, softmax", "int8")
    config = {**config_of(network), "details": {}}
    tensors = dict(tensors_of(network))
    change(config, tensors)
    path.write_bytes(save(tensors, metadata={ENTRY: json.dumps(config)}))
    return path


def put(name: str, value: Any) -> Any:
    return lambda config, tensors: (config if name in config else tensors).__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("version", 2), "format version 2, and this Thresher reads 1"),
        (put("widths", [6, 5, 3]), "should ascend, each index once, from 0 to 14"),
        (put("widths", [0, 5, 4]), "1 or more"),
        (put("widths", [2**30, 5, 4]), "add up to more"),
        (put("signs_only", [True]), "once for each layer"),
        (put("activation_bits", 99), "activation_bits=99"),
        (put("activation_bits", "8"), "each of its type"),
        (put("threshold", True), "each of its type"),
        (put("hidden_shift", 63), "0 to 62"),
        (put("input_kind", "float"), "inputs='float'"),
        (put("link", "tanh"), "link should be"),
        (put("classes", {"dtype": "int64", "values": [0, 1]}), "do not fit"),
        (put("features", ["a"]), "a name for each column"),
        (put("used", np.array([0.0])), "vector of type I64"),
        (put("output_scale", np.array([np.nan] * 4)), "finite"),
        (put("output_scale", np.array([-1.0] * 4)), "above zero"),
        (put("layer0.values", np.zeros(3, dtype=np.int64)), "one length"),
        (put("layer0.shift", np.array([90] * 5)), "shift"),
        (lambda config, tensors: tensors.pop("used"), "not those that its configuration tells of"),
        (lambda config, tensors: config.pop("link"), "exactly"),
        (lambda config, tensors: tensors["layer0.indices"].__setitem__(0, 10**6), "ascend"),
        (lambda config, tensors: tensors["layer0.values"].__setitem__(0, 0), "not be zero"),
        (lambda config, tensors: tensors["layer0.values"].__setitem__(0, 2**62), "use fewer bits"),
    ],
)
def test_what_was_tampered_with_is_refused(change: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=message):
        IntegerNetwork.load(tampered(tmp_path / "a", change))


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"", b"hello", save({"a": np.zeros(1)}), save({"a": np.zeros(1)}, metadata={ENTRY: "["})):
        path.write_bytes(content)
        with pytest.raises(ModelFileError):
            IntegerNetwork.load(path)
    with pytest.raises(ModelFileError, match="does not exist"):
        IntegerNetwork.load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="folder"):
        IntegerNetwork.load(tmp_path)
    with pytest.raises(ModelFileError, match="cannot be written"):
        whole("fused", "int8").save(tmp_path / "none" / "a")


def test_each_kind_of_network_names_the_other(tmp_path: Path) -> None:
    fused().save(tmp_path / "float")
    whole("fused", "int8").save(tmp_path / "whole")
    with pytest.raises(ModelFileError, match=r"use Network\.load"):
        IntegerNetwork.load(tmp_path / "float")
    with pytest.raises(ModelFileError, match=r"use IntegerNetwork\.load"):
        Network.load(tmp_path / "whole")


def test_a_file_holds_whole_numbers(tmp_path: Path) -> None:
    whole("direct, softmax", "pow2").save(tmp_path / "a")
    kinds = {name: values.dtype.kind for name, values in load_file(tmp_path / "a").items()}
    assert {name for name, kind in kinds.items() if kind != "i"} == {
        "input_scale",
        "input_offset",
        "output_scale",
    }
