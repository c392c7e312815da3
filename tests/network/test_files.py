"""A model file holds a network to the last bit, and no damaged one gets past the checks."""

from __future__ import annotations

import json
import os
import stat
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load
from safetensors.numpy import save as to_safetensors
from scipy import sparse

from thresher.errors import ModelFileError, ParameterError
from thresher.network import Layer, Network, files


def sample(dtype=np.float64, **config):
    """Five inputs, four fused neurons (one empty), three biases, one of them of the output."""
    weights = np.zeros((5, 4), dtype=dtype)
    weights[[0, 1, 3, 4], [0, 0, 2, 3]] = [0.1, -2.0, 3.5, 1e-7]
    return Network.fused(weights, [0.0, 0.25, 0.0, -1.0], [1, -1, 1, -1], output_bias=0.5, **config)


def deep():
    rng = np.random.default_rng(0)
    layers = [
        Layer(sparse.random_array(shape, density=0.4, rng=rng), rng.normal(size=shape[1]))
        for shape in ((6, 5), (5, 7), (7, 3))
    ]
    return Network(
        tuple(layers), classes=["a", "bb", "ccc"], link="softmax", features=[f"input {i}" for i in range(6)]
    )


NETWORKS = {
    "regression": sample(),
    "float32": sample(np.float32),
    "bool": sample(classes=[False, True], link="logistic"),
    "int": sample(classes=[-3, 2**53 + 1], link="identity"),
    "uint64": sample(classes=np.array([1, 2**64 - 1], dtype=np.uint64), link="logistic"),
    "int8": sample(classes=np.array([-128, 127], dtype=np.int8), link="logistic"),
    "float": sample(classes=[0.1, 1e300], link="logistic"),
    "float32 labels": sample(classes=np.array([0.1, 0.2], dtype=np.float32), link="logistic"),
    "string": sample(classes=["ja \u2713", 'no "quotes"'], link="logistic", features=list("abcd\u00e9")),
    "wide string": sample(classes=np.array(["a", "b"], dtype="U20"), link="logistic"),
    "object": sample(classes=np.array(["no", "yes"], dtype=object), link="logistic"),
    "mixed": sample(classes=np.array(["no", 1], dtype=object), link="logistic"),
    "deep": deep(),
    "linear": Network((Layer(np.array([[0.0], [2.0]]), np.zeros(1)),)),
    "empty": Network.fused(np.zeros((3, 2)), None, [1, -1]),
    "direct": sample(direct=[0.0, 2.5, 0.0, 0.0, -1e-9]),
    "direct float32": sample(np.float32, direct=[0.1, 0.0, 0.0, 0.0, 0.0]),
    "direct, deep": replace(deep(), direct=np.arange(18.0).reshape(6, 3)),
    "log": sample(link="log"),
    "details": sample(details={"target": "y", "encoding": {"a": ["red", None, 1.5, True, {}]}, "\u00e9": []}),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.thresher"


def content(tensors=None, direct=None, **change):
    """A model file of ``sample()``, with tensors or fields of its configuration replaced."""
    network = sample(direct=direct)
    config = {**json.loads(files._config_text(network)), **change}
    return to_safetensors({**files._tensors(network), **(tensors or {})}, {"thresher": json.dumps(config)})


def with_direct(indices=None, values=None, **change):
    """A model file of ``sample()`` with direct connections from inputs 1 and 4, these replaced."""
    given = {"direct.indices": indices, "direct.values": values}
    tensors = {name: value for name, value in given.items() if value is not None}
    return content(tensors, direct=[0.0, 2.5, 0.0, 0.0, -1.0], **change)


def without(data, name):
    """A model file without one of its tensors."""
    tensors = load(data)
    del tensors[name]
    length = int.from_bytes(data[:8], "little")
    return to_safetensors(tensors, json.loads(data[8 : 8 + length])["__metadata__"])


@pytest.mark.parametrize("name", NETWORKS)
def test_what_is_saved_is_what_is_loaded(name, path):
    network = NETWORKS[name]
    network.save(path)
    loaded = Network.load(str(path))
    assert loaded.equals(network)
    X = np.random.default_rng(1).normal(size=(9, network.inputs))
    assert np.array_equal(loaded.predict(X), network.predict(X))
    assert loaded.predict(X).dtype.kind == network.predict(X).dtype.kind
    assert loaded.nonzeros == network.nonzeros
    assert loaded.details == network.details


def test_the_same_network_gives_the_same_bytes(path):
    sample().save(path)
    first = path.read_bytes()
    sample().save(path)
    assert path.read_bytes() == first == content()


def test_only_direct_connections_make_a_file_of_version_2(path):
    for network, version in ((sample(), 1), (sample(link="log"), 1), (sample(direct=np.ones(5)), 2)):
        network.save(path)
        with safe_open(path, framework="numpy") as file:
            assert json.loads(file.metadata()["thresher"])["version"] == version
        direct = {name for name in load(path.read_bytes()) if name.startswith("direct")}
        assert direct == ({"direct.indices", "direct.values"} if version == 2 else set())
    network = replace(deep(), direct=np.diag(np.ones(6))[:, :3])
    network.save(path)
    with safe_open(path, framework="numpy") as file:
        assert file.get_tensor("direct.indices").tolist() == [0, 4, 8]


def test_the_file_grows_with_the_nonzeros_not_the_size(path):
    weights = sparse.coo_array((np.ones(10), (np.arange(10), np.arange(10))), shape=(10_000, 5_000))
    output = sparse.coo_array((np.ones(1), ([3], [0])), shape=(5_000, 1))
    network = Network((Layer(weights, np.zeros(5_000)), Layer(output, np.zeros(1))))
    network.save(path)
    assert path.stat().st_size < 2_000
    assert Network.load(path).equals(network)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([b"a", b"b"]),
        np.array([1, 2], dtype="datetime64[D]"),
        np.array([None, 1], dtype=object),
        np.array([np.nan, 1.0], dtype=object),
        np.array([1 + 2j, 3]),
    ],
    ids=str,
)
def test_labels_that_no_file_can_hold_are_refused_before_writing(classes, path):
    with pytest.raises(ModelFileError, match=r"class|label"):
        sample(classes=classes, link="logistic").save(path)
    assert not path.exists()


def test_widths_that_could_not_be_loaded_are_not_saved(path, monkeypatch):
    monkeypatch.setattr(files, "MAX_WIDTHS", 9)
    with pytest.raises(ModelFileError, match="add up to 10"):
        sample().save(path)
    assert not path.exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions are a matter of POSIX")
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(path, umask):
    before = os.umask(umask)
    try:
        sample().save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failed_save_leaves_what_was_there(path, monkeypatch, failing, error):
    sample().save(path)
    before = path.read_bytes()

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, fail)
        with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else ModelFileError):
            deep().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_link_is_followed(path):
    link = path.with_name("latest")
    path.write_bytes(b"old")
    try:
        link.symlink_to(path.name)
    except OSError:
        pytest.skip("no links on this system")
    sample().save(link)
    assert link.is_symlink()
    assert Network.load(path).equals(sample())


def test_places_that_cannot_be_written(path):
    for place in (path.parent, path.parent / "no such folder" / "model.thresher"):
        with pytest.raises(ModelFileError, match="cannot be written"):
            sample().save(place)
    assert not list(path.parent.iterdir())


def test_places_that_cannot_be_read(path):
    with pytest.raises(ModelFileError, match="does not exist"):
        Network.load(path)
    with pytest.raises(ModelFileError, match="folder"):
        Network.load(path.parent)
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        with pytest.raises(ModelFileError, match="device"):
            Network.load(path)


def floats(*values):
    return np.array(values, dtype=np.float64)


def whole(*values):
    return np.array(values, dtype=np.int64)


def nested(levels):
    return {"inside": nested(levels - 1)} if levels else {}


DAMAGE = {
    "nothing": (b"", "damaged"),
    "text": (b"hello, this is no model file at all", "damaged"),
    "pickle": (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94K\x01s.", "damaged"),
    "huge header": (b"\xff" * 8 + b"{}", "damaged"),
    "cut short": (content()[:-3], "damaged"),
    "too long": (content() + b"\0" * 8, "damaged"),
    "other safetensors": (to_safetensors({"a": np.zeros(2)}), "something else"),
    "other metadata": (to_safetensors({"a": np.zeros(2)}, {"format": "pt"}), "something else"),
    "no JSON": (to_safetensors({}, {"thresher": "{"}), "not JSON"),
    "deep JSON": (to_safetensors({}, {"thresher": "[" * 100_000}), "not JSON"),
    "long number": (to_safetensors({}, {"thresher": '{"version": ' + "9" * 10_000 + "}"}), "not JSON"),
    "a list": (to_safetensors({}, {"thresher": "[1]"}), "version"),
    "NaN": (content(widths=[float("nan")]), "not JSON"),
    "newer": (content(version=3), "upgrade"),
    "version 2 without direct": (content(version=2), "direct.indices and direct.values"),
    "version 1 with direct": (with_direct(version=1), "tensors"),
    "direct without indices": (without(with_direct(), "direct.indices"), "tensors"),
    "direct without values": (without(with_direct(), "direct.values"), "tensors"),
    "direct surplus": (with_direct(whole(1, 4), version=2, surplus=1), "exactly"),
    "direct empty": (with_direct(whole(), floats()), "empty"),
    "direct negative": (with_direct(whole(-1, 4)), "direct.indices should ascend"),
    "direct too large": (with_direct(whole(1, 5)), "direct.indices should ascend"),
    "direct enormous": (with_direct(whole(1, 2**62)), "direct.indices should ascend"),
    "direct twice": (with_direct(whole(1, 1)), "direct.indices should ascend"),
    "direct out of order": (with_direct(whole(4, 1)), "direct.indices should ascend"),
    "direct NaN": (with_direct(values=floats(1, np.nan)), "direct.values should be finite"),
    "direct infinite": (with_direct(values=floats(np.inf, 1)), "direct.values should be finite"),
    "direct zero": (with_direct(values=floats(1, 0)), "not zero"),
    "direct few values": (with_direct(values=floats(1)), "same length"),
    "direct a table": (with_direct(values=floats(1, 1).reshape(2, 1)), "vectors"),
    "direct half precision": (with_direct(values=np.ones(2, dtype=np.float16)), "float32 or float64"),
    "direct short indices": (with_direct(np.array([1, 4], dtype=np.int32)), "int64"),
    "direct of another type": (with_direct(values=np.ones(2, dtype=np.float32)), "different types"),
    "direct beyond room": (with_direct(np.arange(6), np.ones(6)), "room for 5"),
    "direct of fewer inputs": (with_direct(widths=[4, 4, 1]), "ascend"),
    "log for classes": (content(classes={"dtype": "int64", "values": [1, 2]}, link="log"), "outputs=1"),
    "version is true": (content(version=True), "version"),
    "surplus field": (content(colour="red"), "exactly"),
    "width 0": (content(widths=[5, 0, 1]), "1 or more"),
    "width 10^12": (content(widths=[5, 10**12, 1]), "at most"),
    "width 10^400": (content(widths=[5, 10**400, 1]), "at most"),
    "width of 4,300 digits": (content(widths=[10**4_299, 4, 1]), "at most"),
    "half a character in a name": (content(features=[*"abcd", "\ud800"]), "half of a character"),
    "half a character in the details": (content(details={"target": "\udfff"}), "half of a character"),
    "a spread of 10^400": (content(details={"spread": [10**400] * 5}), "a number of 1,329 bits"),
    "a spread beyond floats": (content(details={"spread": [2**1024] * 5}), "finite numbers"),
    "one long label": (
        content(classes={"dtype": "str", "values": ["x" * 12_000, *map(str, range(12_000))]}),
        "12,001 labels, the longest of 12,000 letters",
    ),
    "width 4.0": (content(widths=[5, 4.0, 1]), "whole numbers"),
    "one width": (content(widths=[5], signs_only=[]), "two or more"),
    "widths missing": (content(widths=None), "whole numbers"),
    "more layers": (content(widths=[5, 4, 1, 1], signs_only=[False, False, True]), "tensors"),
    "fewer layers": (content(widths=[5, 4], signs_only=[False]), "tensors"),
    "signs for one": (content(signs_only=[True]), "signs_only"),
    "signs as numbers": (content(signs_only=[0, 1]), "signs_only"),
    "signs of weights": (content(signs_only=[True, False]), "signs"),
    "narrower": (content(widths=[5, 3, 1]), "ascend"),
    "link": (content(link="probit"), "link"),
    "link is a list": (content(link=["identity"]), "link"),
    "classes of a regression": (content(link="logistic"), "needs classes"),
    "three classes": (content(classes={"dtype": "int64", "values": [1, 2, 3]}, link="logistic"), "outputs"),
    "a class twice": (content(classes={"dtype": "int64", "values": [1, 1]}, link="logistic"), "different"),
    "classes of objects": (content(classes={"dtype": "object", "values": [None, {}]}), "class"),
    "nested classes": (content(classes={"dtype": "object", "values": [[1], [2]]}), "class"),
    "unknown classes": (content(classes={"dtype": "O8", "values": ["a", "b"]}), "type"),
    "classes without type": (content(classes=["a", "b"]), "exactly"),
    "classes too large": (content(classes={"dtype": "int8", "values": [1, 1000]}), "int8"),
    "classes overflow": (
        content(classes={"dtype": "float32", "values": [1.0, 1e300]}, link="logistic"),
        "NaN",
    ),
    "classes as text": (content(classes={"dtype": "int64", "values": ["1", "2"]}), "int64"),
    "details missing": (content(details=None), "mapping"),
    "details as a list": (content(details=[1]), "mapping"),
    "deep details": (content(details=nested(25)), "deeply"),
    "very deep details": (content(details=nested(900)), "deeply"),
    "few features": (content(features=["a"]), "names"),
    "features as numbers": (content(features=[1, 2, 3, 4, 5]), "names"),
    "features as text": (content(features="abcde"), "names"),
    "surplus tensor": (content({"code": floats(1)}), "tensors"),
    "negative index": (content({"layer0.indices": whole(-1, 4, 14, 19)}), "ascend"),
    "index too large": (content({"layer0.indices": whole(0, 4, 14, 20)}), "ascend"),
    "enormous index": (content({"layer0.indices": whole(0, 4, 14, 2**62)}), "ascend"),
    "index twice": (content({"layer0.indices": whole(0, 4, 4, 19)}), "ascend"),
    "out of order": (content({"layer0.indices": whole(4, 0, 14, 19)}), "ascend"),
    "bias out of range": (content({"layer0.bias_indices": whole(1, 4)}), "ascend"),
    "bias twice": (content({"layer0.bias_indices": whole(1, 1)}), "ascend"),
    "NaN weight": (content({"layer0.values": floats(1, np.nan, 1, 1)}), "finite"),
    "infinite weight": (content({"layer0.values": floats(1, np.inf, 1, 1)}), "finite"),
    "infinite bias": (content({"layer0.bias_values": floats(1, -np.inf)}), "finite"),
    "zero weight": (content({"layer0.values": floats(1, 0, 1, 1)}), "not zero"),
    "more indices than room": (
        content({"layer1.bias_indices": whole(0, 1), "layer1.bias_values": floats(1, 1)}),
        "room for 1",
    ),
    "few values": (content({"layer0.values": floats(1, 1, 1)}), "same length"),
    "a table": (content({"layer0.values": floats(1, 1, 1, 1).reshape(2, 2)}), "vectors"),
    "a number": (content({"layer0.values": np.array(1.0)}), "vectors"),
    "half precision": (content({"layer0.values": np.ones(4, dtype=np.float16)}), "float32 or float64"),
    "short indices": (content({"layer0.indices": np.arange(4, dtype=np.int32)}), "int64"),
    "two types": (content({"layer0.bias_values": np.ones(2, dtype=np.float32)}), "different types"),
    "no sign": (content({"layer1.values": floats(1, -1, 1, 2)}), "signs"),
}


@pytest.mark.parametrize("place", ["a\0b", "half \ud800"])
def test_what_is_no_name_of_a_file_is_refused(place, tmp_path):
    with pytest.raises(ModelFileError):
        sample().save(tmp_path / place)
    with pytest.raises(ModelFileError):
        Network.load(tmp_path / place)


def test_half_a_character_is_not_saved(path):
    with pytest.raises(ModelFileError, match="half of a character"):
        sample(features=[*"abcd", "\ud800"]).save(path)
    assert not path.exists()


def test_a_file_that_is_replaced_keeps_its_permissions(path):
    sample().save(path)
    path.chmod(0o600)
    sample(np.float32).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Network.load(path).layers[0].weights.dtype == np.float32


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(name, path):
    damaged, words = DAMAGE[name]
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError, match=words) as caught:
        Network.load(path)
    assert str(path) in str(caught.value)


def test_an_absurd_width_allocates_nothing(path):
    empty = {
        f"layer{i}.{part}": whole() if "indices" in part else floats() for i in (0, 1) for part in files.PARTS
    }
    for width in (10**12, 2**31, files.MAX_WIDTHS):
        path.write_bytes(content(empty, widths=[1, width, 1], signs_only=[False, False]))
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError, match="at most"):
                Network.load(path)
            assert tracemalloc.get_traced_memory()[1] < 1e6
        finally:
            tracemalloc.stop()


def test_inputs_cost_nothing_but_their_places_end_at_64_bits(path):
    empty = {
        f"layer{i}.{part}": whole() if "indices" in part else floats() for i in (0, 1) for part in files.PARTS
    }
    path.write_bytes(content(empty, widths=[2**40, 3, 1], signs_only=[False, False]))
    assert Network.load(path).inputs == 2**40
    path.write_bytes(content(empty, widths=[2**62, 3, 1], signs_only=[False, False]))
    with pytest.raises(ModelFileError, match="positions end at"):
        Network.load(path)


@pytest.mark.parametrize(
    ("details", "words"),
    [
        ([("a", 1)], "mapping"),
        ({"a": {1: 2}}, r"details\['a'\] has a key"),
        ({"a": [0, np.float64(1.0)]}, r"details\['a'\]\[1\] is '1.0' of type float64"),
        ({"a": float("nan")}, "finite"),
        ({"a": {1, 2}}, "convert"),
        ({"a": b"x"}, "bytes"),
        (nested(25), "deeply"),
    ],
    ids=str,
)
def test_details_that_no_file_can_hold_are_refused_at_once(details, words):
    with pytest.raises(ParameterError, match=words):
        sample(details=details)


def test_details_are_copied_and_do_not_count():
    details = {"target": "y", "columns": ("a", "b"), "inner": {"x": [1]}}
    network = sample(details=details)
    details["inner"]["x"].append(2)
    assert network.details == {"target": "y", "columns": ["a", "b"], "inner": {"x": [1]}}
    assert network.equals(sample())
    assert Network(network.layers, details=None).details == {}
    itself: dict = {}
    itself["again"] = itself
    with pytest.raises(ParameterError, match="deeply"):
        sample(details=itself)
