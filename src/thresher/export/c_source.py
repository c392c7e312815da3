"""A network as one C99 file: constant tables, sparse loops, and no library but expf for links."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from thresher._version import __version__
from thresher.export.compact import CompactLayer, compact
from thresher.export.naming import c_comment, c_string, checked_name, plain_labels
from thresher.network.formula import input_names
from thresher.network.metadata import target_names
from thresher.network.structure import Structure

# Characters of a line of a table.
WIDTH = 96

# Where the tables of a layer bear its number, those of direct connections bear this.
DIRECT = "_direct"

PROBABILITIES = {
    "logistic": """\
    float small;
    NAME_outputs(in, out);
    small = expf(out[0] < 0 ? out[0] : -out[0]);
    out[1] = (out[0] < 0 ? small : 1.0f) / (1.0f + small);
    out[0] = (out[0] < 0 ? 1.0f : small) / (1.0f + small);""",
    "identity": """\
    NAME_outputs(in, out);
    out[1] = out[0] < 0 ? 0.0f : out[0] > 1 ? 1.0f : out[0];
    out[0] = 1.0f - out[1];""",
    "softmax": """\
    float largest, total = 0;
    int j;
    NAME_outputs(in, out);
    largest = out[0];
    for (j = 1; j < NAME_classes; j++)
        if (out[j] > largest) largest = out[j];
    for (j = 0; j < NAME_classes; j++)
        total += out[j] = expf(out[j] - largest);
    for (j = 0; j < NAME_classes; j++)
        out[j] /= total;""",
}

CLASS = {
    "logistic": """\
    float score[1];
    NAME_outputs(in, score);
    return score[0] > 0;""",
    "identity": """\
    float score[1];
    NAME_outputs(in, score);
    return score[0] >= 0.5f;""",
    "softmax": """\
    float score[NAME_classes];
    int best = 0, j;
    NAME_outputs(in, score);
    for (j = 1; j < NAME_classes; j++)
        if (score[j] > score[best]) best = j;
    return best;""",
}


def c_source(network: Structure, name: str) -> str:
    """Write the C99 file of a network, in ASCII.

    Parameters
    ----------
    network : Network
    name : str
        What every name in the file begins with.
    """
    name = checked_name(name)
    used, layers, direct = compact(network, all_inputs=True, dtype=np.float32)
    tables = {str(number): layer for number, layer in enumerate(layers)}
    if direct is not None:
        tables[DIRECT] = direct
    parts = [
        _declarations(network),
        *(_tables(number, layer) for number, layer in tables.items()),
        _outputs(network, layers, direct),
    ]
    if network.classes is not None:
        parts += [
            f"void NAME_predict(const float *in, float *out) {{\n{PROBABILITIES[network.link]}\n}}\n",
            f"int NAME_class(const float *in) {{\n{CLASS[network.link]}\n}}\n",
        ]
    code = "\n".join(part for part in parts if part).replace("NAME_", f"{name}_")
    # Head and labels hold texts of the user's, in which NAME_ must stay what it is.
    ends = [] if network.classes is None else [_labels(network, name)]
    return "\n".join([_head(network, list(tables.values()), used, name), code, *ends])


def _head(network: Structure, tables: list[CompactLayer], used: np.ndarray, name: str) -> str:
    shape = " -> ".join(map(str, (network.inputs, *network.hidden, network.outputs)))
    names = target_names(network.details, network.targets)
    if network.classes is None:
        gives = f"out  {network.outputs} number{'s' * (network.outputs > 1)}, the prediction"
    else:
        gives = f"out  {network.classes.size} probabilities, in the order of the labels"
    lines = [
        f"A sparse ReLU network, {shape}, {network.nonzeros} nonzeros. Written by thresher {__version__}.",
        "",
        "void NAME_predict(const float *in, float *out);",
        f"  in   {network.inputs} numbers, the columns in the order of training",
        f"  {gives}",
    ]
    if network.classes is not None:
        lines += ["int NAME_class(const float *in);", "  the most probable class, a place in NAME_labels"]
    if network.link != "identity":
        lines.append("Needs expf of the standard library (-lm on some systems).")
    stack = sum(4 * neurons for neurons in network.live_neurons)
    lines += [
        f"Tables take {_bytes_of_tables(tables):,} bytes, and hidden neurons {stack:,} of stack.",
        "Define NAME_sum as double to add up in double precision.",
    ]
    lines = [line.replace("NAME_", f"{name}_") for line in lines]
    if names is not None:
        lines += ["", "Predicts:", *(f"  {c_comment(target)}" for target in names)]
    if network.features is not None:
        called = input_names(network)
        lines += ["", "Inputs in use:", *(f"  in[{i}]  {c_comment(called(i))}" for i in used.tolist())]
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


def _declarations(network: Structure) -> str:
    classes = network.classes
    lines = ["#include <stdint.h>"]
    if network.link != "identity":
        lines.append("#include <math.h>")
    lines += ["", "#ifndef NAME_sum", "#define NAME_sum float", "#endif", ""]
    if classes is None:
        lines.append(f"enum {{ NAME_inputs = {network.inputs}, NAME_targets = {network.outputs} }};")
    else:
        lines.append(f"enum {{ NAME_inputs = {network.inputs}, NAME_classes = {classes.size} }};")
        lines += ["extern const char *const NAME_labels[NAME_classes];", "int NAME_class(const float *in);"]
    return "\n".join([*lines, "void NAME_predict(const float *in, float *out);", ""])


def _labels(network: Structure, name: str) -> str:
    assert network.classes is not None
    labels = ",\n".join(f"    {c_string(str(label))}" for label in plain_labels(network.classes))
    return f"const char *const {name}_labels[{name}_classes] = {{\n{labels}\n}};\n"


def _tables(number: str, layer: CompactLayer) -> str:
    tables = []
    if layer.nonzeros:
        tables += [_whole(f"start{number}", layer.start), _whole(f"index{number}", layer.index)]
        if layer.signs_only:
            tables.append(_table("int8_t", f"value{number}", map(str, layer.value.astype(int).tolist())))
        else:
            tables.append(_table("float", f"value{number}", map(_float, layer.value)))
    if layer.bias.any():
        tables.append(_table("float", f"bias{number}", map(_float, layer.bias)))
    return "\n".join(tables)


def _whole(name: str, values: np.ndarray) -> str:
    """Write a table of whole numbers in the smallest type that holds them."""
    return _table(f"uint{_bits(values)}_t", name, map(str, values.tolist()))


def _bits(values: np.ndarray) -> int:
    return next(bits for bits in (8, 16, 32, 64) if int(values.max()) < 2**bits)


def _bytes_of_tables(layers: list[CompactLayer]) -> int:
    total = 0
    for layer in layers:
        if layer.nonzeros:
            total += sum(table.size * _bits(table) // 8 for table in (layer.start, layer.index))
            total += layer.nonzeros * (1 if layer.signs_only else 4)
        total += 4 * layer.neurons * bool(layer.bias.any())
    return total


def _table(kind: str, name: str, values: Iterable[str]) -> str:
    numbers = list(values)
    each = max(1, WIDTH // (2 + max(map(len, numbers))))
    lines = [", ".join(numbers[i : i + each]) for i in range(0, len(numbers), each)]
    body = ",\n".join(f"    {line}" for line in lines)
    return f"static const {kind} NAME_{name}[{len(numbers)}] = {{\n{body}\n}};\n"


def _float(value: np.float32) -> str:
    """Write a number with as few digits as bring it back to the last bit; nine always do."""
    digits = next(text for p in (6, 7, 8, 9) if np.float32(text := f"{float(value):.{p}g}") == value)
    return f"{digits}f" if "." in digits or "e" in digits else f"{digits}.0f"


def _outputs(network: Structure, layers: list[CompactLayer], direct: CompactLayer | None) -> str:
    """Write the function that computes the outputs before any link, or the answers of a regression."""
    head = "static void NAME_outputs" if network.classes is not None else "void NAME_predict"
    hidden = [f"    float h{i}[{layer.neurons}];" for i, layer in enumerate(layers[:-1]) if layer.neurons]
    reads = bool(layers[0].nonzeros) or direct is not None
    sums = any(layer.nonzeros for layer in layers) or direct is not None
    answer = "expf((float)sum)" if network.link == "log" else "(float)sum"
    loops = [_loop(i, layer) for i, layer in enumerate(layers[:-1]) if layer.neurons]
    loops.append(_loop(len(layers) - 1, layers[-1], direct, f"out[j] = {answer}"))
    return "\n".join(
        [
            f"{head}(const float *in, float *out) {{",
            *hidden,
            f"    uint32_t j{', k' * sums};",
            *([] if reads else ["    (void)in;"]),
            *loops,
            "}",
            "",
        ]
    )


def _loop(
    number: int, layer: CompactLayer, direct: CompactLayer | None = None, answer: str | None = None
) -> str:
    """Write the loop over the neurons of a layer; a hidden one has no answer of its own."""
    first = f"NAME_bias{number}[j]" if layer.bias.any() else "0"
    inner = _sum(str(number), "in" if number == 0 else f"h{number - 1}") if layer.nonzeros else ""
    if direct is not None:
        inner += _sum(DIRECT, "in")
    return f"""\
    for (j = 0; j < {layer.neurons}; j++) {{
        NAME_sum sum = {first};{inner}
        {answer or f"h{number}[j] = sum > 0 ? (float)sum : 0"};
    }}"""


def _sum(number: str, source: str) -> str:
    return f"""
        for (k = NAME_start{number}[j]; k < NAME_start{number}[j + 1]; k++)
            sum += (NAME_sum)NAME_value{number}[k] * {source}[NAME_index{number}[k]];"""
