"""C of integer networks compiles without a warning and gives Python's outputs to the last bit."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import ODD_NAMES, fused, rows_for
from whole import CHOSEN, ROUNDINGS, rows, whole

from thresher.errors import ParameterError
from thresher.export.bit_tables import bit_tables
from thresher.export.integer_c import bytes_of_tables, input_type, output_type, spread_out
from thresher.integer import IntegerNetwork

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wmissing-prototypes", "-Wconversion")
# Any overflow, shift too far or place outside a table ends the program.
CHECKED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")

needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="needs the compiler gcc, which is not here"
)


def extreme_codes(network: IntegerNetwork, count: int = 30) -> np.ndarray:
    """Codes from all of the range, its ends above all."""
    rng, (low, high) = np.random.default_rng(2), network.coding.range
    codes = rng.integers(low, high, size=(count, network.used.size), endpoint=True)
    codes[: count // 2] = rng.choice([low, high], size=(count // 2, network.used.size))
    return codes


def compiled(network: IntegerNetwork, folder: Path, **style: bool) -> Any:
    for name, text in network.to_c_files("net", **style).items():
        (folder / name).write_text(text, encoding="ascii")
    command = ["gcc", *STRICT, *CHECKED, "-O0", "-shared", "-fPIC", "-o", "net.so", "net.c"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return ctypes.CDLL(str(folder / "net.so"))


def answers(network: IntegerNetwork, library: Any, given: np.ndarray) -> tuple[np.ndarray, list[int]]:
    kinds = [np.dtype(kind(network).removesuffix("_t")) for kind in (input_type, output_type)]
    given = np.ascontiguousarray(given, dtype=kinds[0])
    # What lies behind the last output must not be touched.
    found = np.full((len(given), network.outputs + 1), -77, dtype=kinds[1])
    classes = []
    for row, out in zip(given, found, strict=True):
        library.net_run(row.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p))
        if network.classes is not None:
            classes.append(library.net_class(row.ctypes.data_as(ctypes.c_void_p)))
    assert (found[:, -1] == -77).all()
    return found[:, :-1], classes


@needs_gcc
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
@pytest.mark.parametrize(
    ("name", "how"), [(name, list(ROUNDINGS)[place % len(ROUNDINGS)]) for place, name in enumerate(CHOSEN)]
)
def test_c_gives_the_outputs_of_python(name: str, how: str, packed: bool, tmp_path: Path) -> None:
    network, used_inputs = whole(name, how), packed != (len(name) % 2 == 0)
    library = compiled(network, tmp_path, packed=packed, used_inputs=used_inputs)
    codes = extreme_codes(network)
    expected = network.run(codes)
    found, classes = answers(network, library, codes if used_inputs else spread_out(network, codes))
    assert (found == expected).all()
    if network.classes is not None:
        assert classes == network.class_numbers(expected).tolist()


@needs_gcc
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "plain"])
def test_the_test_program_finds_what_differs(packed: bool, tmp_path: Path) -> None:
    network = whole("direct, softmax", "int8")
    files = network.to_c_files("net", rows(network, 10) / 4, packed=packed)
    head, last = files["net_test.c"].split("wanted[ROWS]", 1)
    wrong = {**files, "net_test.c": head + "wanted[ROWS]" + re.sub(r"    \{\S+?,", "    {77,", last)}
    for content, end in ((files, 0), (wrong, 1)):
        for name, text in content.items():
            (tmp_path / name).write_text(text, encoding="ascii")
        command = ["gcc", *STRICT, "-o", "test", "net.c", "net_test.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
        assert subprocess.run([str(tmp_path / "test")], check=False).returncode == end


@needs_gcc
def test_one_file_compiles_by_itself(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(whole("logistic, deep", "pow2").to_c("int"), encoding="ascii")
    subprocess.run(["gcc", *STRICT, "-c", "a.c"], cwd=tmp_path, check=True)


@needs_gcc
def test_names_and_labels_of_any_kind_are_safe(tmp_path: Path) -> None:
    network = fused(features=ODD_NAMES, classes=['*/ "', "??/\n"], link="logistic")
    files = network.quantise(rows_for(network, 100)).to_c_files("net")
    main = '#include "net.h"\nconst char *const a[] = net_NAMES;\nconst char *const b[] = net_LABELS;\n'
    main += "const int used[] = net_USED;\nconst double scale[] = net_SCALE;\n"
    for name, text in {**files, "main.c": main}.items():
        (tmp_path / name).write_text(text, encoding="ascii")
    subprocess.run(["gcc", *STRICT, "-c", "net.c", "main.c"], cwd=tmp_path, check=True)


def test_there_is_no_floating_point_no_heap_and_no_library() -> None:
    for packed in (True, False):
        text = whole("direct, softmax", "int8").to_c("net", packed=packed)
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        assert not re.search(r"\b(float|double|malloc|free)\b", code)
        assert set(re.findall(r"#include (\S+)", code)) == {"<stdint.h>", "<avr/pgmspace.h>"}


@pytest.mark.parametrize("name", CHOSEN)
def test_bits_can_be_read_back(name: str) -> None:
    network = whole(name, "int4, narrow")
    content, sections, direct = bit_tables(network, True)
    bits = iter("".join(f"{byte:08b}" for byte in content))
    number = lambda count: int("".join(next(bits) for _ in range(count)) or "0", 2)  # noqa: E731
    order = [*sections[:-1], *([direct] if direct else []), sections[-1]]
    for section in order:
        hidden = [layer.weights for layer in network.layers]
        weights = network.direct if section is direct else hidden[sections.index(section)]
        layer = None if section is direct else network.layers[sections.index(section)]
        gap = lambda k: (lambda ones: (ones << k) + number(k))(  # noqa: E731
            sum(1 for _ in iter(lambda: next(bits), "0"))
        )
        read = np.zeros((section.inputs, section.neurons), dtype=np.int64)
        place = gap(section.rice)
        for neuron in range(section.neurons):
            while place < section.width:
                if section.has_bias and place == 0:
                    bias = number(section.bias_bits) - (1 << section.bias_bits - 1) << section.bias_shift
                    assert layer is not None
                    assert bias == layer.bias[neuron]
                else:
                    weight = number(section.weight_bits) - section.largest
                    read[place - section.has_bias, neuron] = weight + (weight >= 0)
                place += 1 + gap(section.rice)
            place -= section.width
            shift = number(section.shift_bits) + section.shift
            assert layer is None or shift == layer.shift[neuron]
        first = section is direct or section is sections[0]
        kept = network.used if first else np.arange(section.inputs)
        assert (read[kept] == weights.toarray()).all()
        assert np.count_nonzero(read) == weights.nnz
    assert len(list(bits)) < 8


def test_fewer_bits_take_fewer_bytes() -> None:
    sizes = [
        bytes_of_tables(whole("sparse and wide", how)) for how in ("int2, saturated", "int8", "int16, wide")
    ]
    assert sizes == sorted(sizes)
    assert bytes_of_tables(whole("direct, softmax", "int8")) < 120


def test_names_and_rows_that_cannot_be_are_refused() -> None:
    network = whole("fused", "int8")
    with pytest.raises(ParameterError, match="name='a b'"):
        network.to_c("a b")
    with pytest.raises(ParameterError, match="X has 0 rows"):
        network.to_c_files("net", np.zeros((0, 10)))
