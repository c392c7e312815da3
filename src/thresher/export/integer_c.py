"""An integer network as C99 without floating point, heap or library; its tables can stand in flash."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher._version import __version__
from thresher.errors import ParameterError
from thresher.export.bit_tables import bit_tables
from thresher.export.c_header import Header, flash, list_macro
from thresher.export.c_packed import packed_loops
from thresher.export.c_plain import plain_loops
from thresher.export.c_types import constant, layer_type, listed, signed_type, unsigned_type
from thresher.export.naming import checked_name
from thresher.integer import IntegerNetwork

# Rows of a test program: they stand in its source.
MOST_TEST_ROWS = 10_000


def c_files(
    network: IntegerNetwork, name: str, X: Any = None, *, packed: bool = True, used_inputs: bool = True
) -> dict[str, str]:
    """Return C99 files by name: source, header, and with rows X a program that checks them; all in ASCII.

    Parameters
    ----------
    network : IntegerNetwork
    name : str
        What every name in the files begins with.
    X : array-like of shape (n, inputs), optional
        Rows for the test.
    packed : bool
        Whether tables are a stream of bits rather than arrays.
    used_inputs : bool
        Whether the function takes the inputs in use alone.
    """
    name = checked_name(name)
    files = {
        f"{name}.h": _header(network, name, used_inputs),
        f"{name}.c": _source(network, name, packed, used_inputs),
    }
    if X is not None:
        files[f"{name}_test.c"] = _test(network, name, X, used_inputs)
    return files


def one_file(network: IntegerNetwork, name: str, *, packed: bool = True, used_inputs: bool = True) -> str:
    """Return source and header as one file."""
    files = c_files(network, name, packed=packed, used_inputs=used_inputs)
    return files[f"{name}.c"].replace(f'#include "{name}.h"\n', files[f"{name}.h"])


def bytes_of_tables(network: IntegerNetwork, *, all_inputs: bool = False) -> int:
    """Count the bytes of all tables of the packed form: weights, biases, shifts, and where they belong."""
    return len(bit_tables(network, all_inputs)[0])


def input_type(network: IntegerNetwork) -> str:
    """Name the type of one input."""
    kind = signed_type if network.coding.signed else unsigned_type
    return kind(network.coding.bits)


def output_type(network: IntegerNetwork) -> str:
    """Name the type of one output, in which it is also summed up."""
    return layer_type(network, len(network.layers) - 1)


def _header(network: IntegerNetwork, name: str, used_inputs: bool) -> str:
    low, high = network.coding.range
    meaning = (
        "and stand for themselves" if network.coding.plain else f"{name}_SCALE and _OFFSET tell what for"
    )
    lists = []
    if not network.coding.plain:
        lists.append("/* For each of the columns in use: number = offset + scale * code. */")
        for macro, values in (("SCALE", network.coding.scale), ("OFFSET", network.coding.offset)):
            spread = np.broadcast_to(values, network.used.shape).tolist()
            lists.append(list_macro(f"{name}_{macro}", map(repr, spread)))
    if network.classes is None:
        lists.append("/* What one step of each output is worth. */")
        lists.append(list_macro(f"{name}_STEP", map(repr, network.output_scale.tolist())))
    count = network.used.size if used_inputs else network.columns
    what = f"The {count} inputs in use, one after the other." if used_inputs else f"All {count} inputs."
    functions = [
        "",
        f"/* in: {what} out: {network.outputs} numbers. */",
        f"void {name}_run(const {name}_input *in, {name}_output *out);",
    ]
    if network.classes is not None:
        functions += [
            "",
            "/* The number of the class, from 0, for inputs or for outputs; of equal outputs the first. */",
            f"int {name}_class(const {name}_input *in);",
            f"int {name}_choose(const {name}_output *out);",
        ]
    about = [
        f"An integer network by Thresher {__version__}: {network.nonzeros:,} nonzeros.",
        f"Inputs are {network.coding.kind}, from {low} to {high}; {meaning}.",
    ]
    return str(
        Header(
            name=name,
            about=about,
            input_type=input_type(network),
            output_type=output_type(network),
            columns=network.columns,
            used=network.used,
            used_inputs=used_inputs,
            outputs=network.outputs,
            features=network.features,
            classes=network.classes,
            lists=lists,
            functions=functions,
        )
    )


ARGMAX = """
int NAME_choose(const NAME_output *out) {
    int best = 0, j;
    for (j = 1; j < NAME_OUTPUTS; j++)
        if (out[j] > out[best]) best = j;
    return best;
}
"""

COMPARED = """
int NAME_choose(const NAME_output *out) { return out[0] > THRESHOLD; }
"""

CLASS = """
int NAME_class(const NAME_input *in) {
    NAME_output out[NAME_OUTPUTS];
    NAME_run(in, out);
    return NAME_choose(out);
}
"""


def _source(network: IntegerNetwork, name: str, packed: bool, used_inputs: bool) -> str:
    loops = packed_loops if packed else plain_loops
    tables, body = loops(network, not used_inputs)
    parts = [flash(("8", "16", "32", "64")), tables, body]
    if network.classes is not None:
        compared = COMPARED.replace("THRESHOLD", constant(network.threshold))
        parts += [ARGMAX if network.outputs > 1 else compared, CLASS]
    head = f'/* {name}.h says what this is. Made by Thresher {__version__}. */\n#include "{name}.h"\n'
    return head + "\n" + "\n".join(parts).replace("NAME_", f"{name}_")


TEST = """\
/* Checks NAME on COUNT rows: the program ends with 0 if every output is that of Python, else with 1. */
#include "NAME.h"

#ifdef __AVR__
#include <avr/pgmspace.h>
#define TEST_FLASH PROGMEM
#define TEST_COPY(to, from, bytes) memcpy_P(to, from, bytes)
#include <string.h>
#else
#include <string.h>
#define TEST_FLASH
#define TEST_COPY(to, from, bytes) memcpy(to, from, bytes)
#endif

enum { ROWS = COUNT };

ROWS_TABLE
WANTED_TABLE
int main(void) {
    static NAME_input in[NAME_INPUTS];
    NAME_output out[NAME_OUTPUTS], right[NAME_OUTPUTS];
    int row, j, wrong = 0;
    for (row = 0; row < ROWS; row++) {
        TEST_COPY(in, rows[row], sizeof in);
        TEST_COPY(right, wanted[row], sizeof right);
        NAME_run(in, out);
        for (j = 0; j < NAME_OUTPUTS; j++)
            if (out[j] != right[j]) wrong = 1;
    }
    return wrong;
}
"""


def _test(network: IntegerNetwork, name: str, X: Any, used_inputs: bool) -> str:
    codes = network.codes(X)
    if not 1 <= len(codes) <= MOST_TEST_ROWS:
        raise ParameterError(f"X has {len(codes):,} rows, but a test program holds 1 to {MOST_TEST_ROWS:,}.")
    wanted = network.run(codes)
    rows = codes if used_inputs else spread_out(network, codes)
    tables = {
        "ROWS_TABLE": listed(f"{name}_input", f"rows[ROWS][{rows.shape[1]}]", "TEST_FLASH", rows),
        "WANTED_TABLE": listed(f"{name}_output", f"wanted[ROWS][{wanted.shape[1]}]", "TEST_FLASH", wanted),
    }
    text = TEST.replace("NAME", name).replace("COUNT", str(len(rows)))
    for place, content in tables.items():
        text = text.replace(place, content)
    return text


def spread_out(network: IntegerNetwork, codes: np.ndarray) -> np.ndarray:
    """Put codes of the inputs in use into rows of all columns, zeros elsewhere."""
    rows = np.zeros((len(codes), network.columns), dtype=np.int64)
    rows[:, network.used] = codes
    return rows
