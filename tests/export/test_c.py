"""The C file compiles without a warning and computes what the network does."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import NETWORKS, ODD_NAMES, answers, fused, random_network, rows_for
from scipy import sparse

from thresher.errors import ParameterError
from thresher.network import Layer, Network

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wmissing-prototypes", "-Wconversion")

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="needs the compiler gcc, which is not here"
)


class Compiled:
    """The functions of a C file, called from Python."""

    def __init__(
        self,
        network: Network,
        folder: Path,
        name: str = "net",
        flags: tuple[str, ...] = (),
        used_inputs: bool = False,
    ) -> None:
        library = folder / f"{name}.so"
        for file, text in network.to_c_files(name, used_inputs=used_inputs).items():
            (folder / file).write_text(text, encoding="ascii")
        labels = f'#include "{name}.h"\nextern const char *const labels[];\n'
        labels += f"const char *const labels[] = {name}_LABELS;\n" if network.classes is not None else ""
        (folder / "labels.c").write_text(labels, encoding="ascii")
        sources = [folder / f"{name}.c", folder / "labels.c"]
        command = ["gcc", *STRICT, *flags, "-O1", "-shared", "-fPIC", "-o", library, *sources, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        self.network, self.name, self.library = network, name, ctypes.CDLL(str(library))

    def function(self, suffix: str) -> Any:
        return self.library[f"{self.name}_{suffix}"]

    def predict(self, X: np.ndarray) -> np.ndarray:
        classes = self.network.classes
        # What lies behind the last number must not be touched.
        found = np.full(
            (len(X), (self.network.outputs if classes is None else classes.size) + 1), -77.0, "f4"
        )
        floats = ctypes.POINTER(ctypes.c_float)
        for row, answer in zip(X, found, strict=True):
            self.function("predict")(row.ctypes.data_as(floats), answer.ctypes.data_as(floats))
        assert (found[:, -1] == -77.0).all()
        return found[:, :-1]

    def classes(self, X: np.ndarray) -> list[int]:
        floats = ctypes.POINTER(ctypes.c_float)
        return [self.function("class")(row.ctypes.data_as(floats)) for row in X]

    def labels(self) -> list[str]:
        assert self.network.classes is not None
        kind = ctypes.c_char_p * self.network.classes.size
        return [text.decode() for text in kind.in_dll(self.library, "labels")]


@needs_gcc
@pytest.mark.parametrize("flags", [(), ("-Dnet_sum=double",)], ids=["float", "double"])
@pytest.mark.parametrize("name", NETWORKS)
def test_c_computes_what_the_network_does(name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    network = NETWORKS[name]
    compiled = Compiled(network, tmp_path, flags=flags)
    X = rows_for(network)
    if network.classes is None:
        assert np.allclose(compiled.predict(X), answers(network, X), rtol=1e-5, atol=1e-5)
        return
    assert np.allclose(compiled.predict(X), network.predict_proba(X), rtol=1e-4, atol=1e-6)
    assert compiled.labels() == [str(label) for label in network.classes.tolist()]
    clear = np.ptp(np.sort(network.predict_proba(X), axis=1)[:, -2:], axis=1) > 1e-5
    assert clear.sum() > 30 or not network.support().any()
    found = network.classes[compiled.classes(X)]
    assert (found == network.predict(X))[clear].all()


@needs_gcc
def test_ten_thousand_images_get_the_labels_of_the_network(tmp_path: Path) -> None:
    network = random_network((784, 30, 10), density=0.04, classes=range(10), link="softmax")
    images = np.random.default_rng(3).random((10_000, 784), dtype=np.float32)
    assert np.array_equal(Compiled(network, tmp_path).classes(images), network.predict(images))
    assert len(set(network.predict(images))) > 3


@needs_gcc
def test_probabilities_far_out_are_finite(tmp_path: Path) -> None:
    for name, link, classes in (("two", "logistic", [0, 1]), ("many", "softmax", [0, 1, 2])):
        outputs = 1 if link == "logistic" else 3
        network = random_network((2, outputs), density=1.0, classes=classes, link=link)
        X = np.array([[1e4, 1e4], [-1e4, 1e4], [-1e4, -1e4], [3e4, -3e4]], dtype=np.float32)
        found = Compiled(network, tmp_path, name).predict(X)
        assert np.allclose(found, network.predict_proba(X), atol=1e-6)


@needs_gcc
def test_ties_go_where_the_network_takes_them(tmp_path: Path) -> None:
    X = np.array([[0.0], [0.5], [-0.5]], dtype=np.float32)
    for name, link in (("a", "logistic"), ("b", "identity")):
        network = Network.fused([[1.0, -1.0]], None, [1, -1], classes=[0, 1], link=link)
        assert Compiled(network, tmp_path, name).classes(X) == network.predict(X).tolist()
    three = Network((Layer(np.array([[1.0, 1.0, 0.0]]), np.zeros(3)),), classes=[0, 1, 2], link="softmax")
    assert Compiled(three, tmp_path, "c").classes(X) == three.predict(X).tolist() == [0, 0, 2]


@needs_gcc
def test_indices_of_any_size_are_read(tmp_path: Path) -> None:
    weights = sparse.coo_array((np.arange(1.0, 5.0), ([0, 255, 65_535, 69_999], [0, 1, 0, 1])), (70_000, 2))
    network = Network.fused(weights, None, [1, -1])
    text = network.to_c()
    assert "uint32_t network_index0[4] network_FLASH" in text
    assert "uint8_t network_start0[3]" in text
    X = rows_for(network, 5)
    assert np.allclose(Compiled(network, tmp_path).predict(X), network.forward(X), rtol=1e-5, atol=1e-5)


def table_of(text: str, name: str) -> np.ndarray:
    """Read the numbers of a table as C would."""
    body = re.search(rf"network_{name}\[\d+\] network_FLASH = \{{([^}}]*)\}}", text)
    assert body is not None
    return np.array([number.strip().rstrip("f") for number in body[1].split(",")], dtype=np.float32)


def test_weights_come_back_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.normal(size=200), 10.0 ** rng.uniform(-44, 38, size=200), [1, -2, 1e10, 3e38]]
    )
    weights = values.astype(np.float32)[:, None]
    with np.printoptions(precision=2, legacy="1.13"):
        text = Network.fused(weights, None, [1]).to_c()
    assert np.array_equal(table_of(text, "value0"), weights[:, 0])
    sizes = {"float": 4, "uint8_t": 1, "uint16_t": 2, "int8_t": 1}
    tables = re.findall(r"static const (\w+) network_\w+\[(\d+)\]", text)
    total = sum(sizes[kind] * int(length) for kind, length in tables)
    assert f"Tables take {total:,} bytes, and hidden neurons 4 of stack." in text


def test_index_tables_are_as_small_as_can_be() -> None:
    for width, kind in ((256, "uint8_t"), (257, "uint16_t"), (65_536, "uint16_t"), (65_537, "uint32_t")):
        weights = sparse.coo_array((np.ones(1), ([width - 1], [0])), (width, 1))
        assert f"{kind} network_index0[1]" in Network.fused(weights, None, [1]).to_c()


def test_the_file_grows_with_the_nonzeros_not_the_size() -> None:
    weights = sparse.coo_array((np.ones(10), (np.arange(10), np.arange(10))), shape=(100_000, 5_000))
    network = Network.fused(weights, None, np.ones(5_000))
    assert len(network.to_c()) < 4_000


@needs_gcc
def test_two_networks_fit_into_one_program(tmp_path: Path) -> None:
    texts = [
        NETWORKS["softmax"].to_c("one"),
        NETWORKS["logistic"].to_c("two"),
        NETWORKS["fused"].to_c("three"),
    ]
    (tmp_path / "all.c").write_text("\n".join([*texts, "int main(void) { return 0; }\n"]), encoding="ascii")
    command = ["gcc", *STRICT, "-o", tmp_path / "all", tmp_path / "all.c", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_texts_of_the_user_cannot_leave_their_place() -> None:
    text = fused(
        features=ODD_NAMES, details={"target": "*/ #error"}, classes=["NAME_", '"'], link="logistic"
    ).to_c()
    head, _, code = text.partition(" */\n")
    assert text.isascii()
    assert head.count("/*") == 1
    assert "*/" not in head
    assert '"NAME_"' in code
    assert r'"\""' in code
    bare = re.sub(r'"(\\.|[^"\\])*"', "", code)
    assert bare.count("*/") == bare.count("/*")
    assert bare.count('"') == 0


@needs_gcc
@pytest.mark.parametrize("name", NETWORKS)
def test_the_inputs_in_use_are_all_that_is_needed(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    X, used = rows_for(network), network.inputs_used()
    (tmp_path / "whole").mkdir()
    whole = Compiled(network, tmp_path / "whole").predict(X)
    few = Compiled(network, tmp_path, used_inputs=True).predict(np.ascontiguousarray(X[:, used]))
    assert np.array_equal(whole, few)
    header = (tmp_path / "net.h").read_text()
    assert f"#define net_INPUTS {used.size}\n#define net_COLUMNS {network.inputs}\n" in header
    listed = re.search(r"net_USED \{([^}]*)\}", header)
    assert [int(n) for n in re.findall(r"\d+", listed[1] if listed else "")] == used.tolist()


@needs_gcc
@pytest.mark.parametrize("biases", [[0, 0, 0, 0, 5, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, -2], [1] * 8, [0] * 8])
def test_few_biases_are_kept_with_their_places(biases: list[float], tmp_path: Path) -> None:
    first = Layer(np.random.default_rng(0).normal(size=(3, 8)), np.array(biases, dtype=float))
    network = Network((first, Layer(np.ones((8, 1)), np.array([0.5]))))
    found = Compiled(network, tmp_path)
    X = rows_for(network)
    assert np.allclose(found.predict(X), network.forward(X), rtol=1e-5, atol=1e-5)
    table = re.search(r"float net_bias0\[(\d+)\]", (tmp_path / "net.c").read_text())
    assert (int(table[1]) if table else 0) == np.count_nonzero(biases)


@pytest.mark.parametrize("name", ["", "a b", "1st", "_x", "a-b", "int main", "caf\u00e9", "x" * 49])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="try '"):
        fused().to_c(name)


def test_numbers_beyond_float_are_refused() -> None:
    with pytest.raises(ParameterError, match="largest float32"):
        Network.fused([[1e200]], None, [1]).to_c()
