"""A network as C99 in floating point: tables in flash, sparse loops, and no library but expf for links."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from thresher._version import __version__
from thresher.export.c_header import Header, flash
from thresher.export.compact import CompactLayer, compact
from thresher.export.naming import c_comment, checked_name
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
    for (j = 1; j < NAME_OUTPUTS; j++)
        if (out[j] > largest) largest = out[j];
    for (j = 0; j < NAME_OUTPUTS; j++)
        total += out[j] = expf(out[j] - largest);
    for (j = 0; j < NAME_OUTPUTS; j++)
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
    float score[NAME_OUTPUTS];
    int best = 0, j;
    NAME_outputs(in, score);
    for (j = 1; j < NAME_OUTPUTS; j++)
        if (score[j] > score[best]) best = j;
    return best;""",
}


def c_files(network: Structure, name: str, *, used_inputs: bool = False) -> dict[str, str]:
    """Return the C99 source and header of a network by their names, in ASCII.

    Parameters
    ----------
    network : Network
    name : str
        What every name in the files begins with.
    used_inputs : bool
        Whether functions take the inputs in use alone rather than all columns.
    """
    name = checked_name(name)
    used, layers, direct = compact(network, all_inputs=not used_inputs, dtype=np.float32)
    tables = {str(number): layer for number, layer in enumerate(layers)}
    if direct is not None:
        tables[DIRECT] = direct
    includes = f'#include "{name}.h"\n'
    if network.link != "identity":
        includes += "\n#include <math.h>\n"
    parts = [
        "#ifndef NAME_sum\n#define NAME_sum float\n#endif\n",
        flash(sorted(_readers(tables.values()))) if any(map(_holds, tables.values())) else "",
        *(_tables(number, layer) for number, layer in tables.items()),
        _outputs(network, layers, direct),
    ]
    if network.classes is not None:
        parts += [
            "void NAME_predict(const NAME_input *in, NAME_output *out)"
            f" {{\n{PROBABILITIES[network.link]}\n}}\n",
            f"int NAME_class(const NAME_input *in) {{\n{CLASS[network.link]}\n}}\n",
        ]
    code = "\n".join(part for part in parts if part).replace("NAME_", f"{name}_")
    # The header holds texts of the user's, in which NAME_ must stay what it is.
    header = _header(network, list(tables.values()), used, name, used_inputs)
    return {f"{name}.h": header, f"{name}.c": f"{includes}\n{code}"}


def c_source(network: Structure, name: str, *, used_inputs: bool = False) -> str:
    """Write source and header as one C99 file."""
    files = c_files(network, name, used_inputs=used_inputs)
    return files[f"{name}.c"].replace(f'#include "{name}.h"\n', files[f"{name}.h"], 1)


def _header(
    network: Structure, tables: list[CompactLayer], used: np.ndarray, name: str, used_inputs: bool
) -> str:
    shape = " -> ".join(map(str, (network.inputs, *network.hidden, network.outputs)))
    count = used.size if used_inputs else network.inputs
    order = "in use, one after the other" if used_inputs else "in the order of training"
    outputs = network.outputs if network.classes is None else network.classes.size
    gives = "probabilities of labels" if network.gives_labels else "predictions"
    gives = gives if network.classes is None else "probabilities, in the order of NAME_LABELS"
    stack = sum(4 * neurons for neurons in network.live_neurons)
    about = [
        f"A sparse ReLU network, {shape}, {network.nonzeros} nonzeros. Written by Thresher {__version__}.",
        f"Tables take {_bytes_of_tables(tables):,} bytes, and hidden neurons {stack:,} of stack.",
        "Define NAME_sum as double to add up in double precision.",
    ]
    if network.link != "identity":
        about.append("Needs expf of the standard library (-lm on some systems).")
    about = [line.replace("NAME_", f"{name}_") for line in about]
    targets = target_names(network.details, network.targets)
    if targets is not None:
        about += ["", "Predicts:", *(f"  {c_comment(target)}" for target in targets)]
    if network.features is not None and used.size:
        called, places = input_names(network), range(used.size) if used_inputs else used.tolist()
        named = zip(places, used.tolist(), strict=True)
        about += ["", "Inputs in use:", *(f"  in[{place}]  {c_comment(called(i))}" for place, i in named)]
    functions = [
        "",
        f"/* in: {count} columns, {order}. out: {outputs} {gives}. */".replace("NAME_", f"{name}_"),
        f"void {name}_predict(const {name}_input *in, {name}_output *out);",
    ]
    if network.classes is not None:
        functions += [
            "",
            f"/* The most probable class, a place in {name}_LABELS. */",
            f"int {name}_class(const {name}_input *in);",
        ]
    return str(
        Header(
            name=name,
            about=about,
            input_type="float",
            output_type="float",
            columns=network.inputs,
            used=used,
            used_inputs=used_inputs,
            outputs=outputs,
            features=network.features,
            classes=network.classes,
            lists=[],
            functions=functions,
        )
    )


def _holds(layer: CompactLayer) -> bool:
    return bool(layer.nonzeros or layer.bias.any())


def _readers(layers: Iterable[CompactLayer]) -> set[str]:
    """Return the sizes of numbers that the tables of some layers hold."""
    found = set()
    for layer in layers:
        if layer.nonzeros:
            found |= {str(_bits(layer.start)), str(_bits(layer.index)), "8" if layer.signs_only else "F"}
        if layer.bias.any():
            found.add("F")
            found |= {str(_bits(np.array([layer.neurons])))} if _few_biases(layer) else set()
    return found


def _few_biases(layer: CompactLayer) -> bool:
    """Say whether biases with their places take less than one for each neuron."""
    biases = int(np.count_nonzero(layer.bias))
    return biases * 4 + (biases + 1) * _bits(np.array([layer.neurons])) // 8 < 4 * layer.neurons


def _tables(number: str, layer: CompactLayer) -> str:
    tables = []
    if layer.nonzeros:
        tables += [_whole(f"start{number}", layer.start), _whole(f"index{number}", layer.index)]
        if layer.signs_only:
            tables.append(_table("int8_t", f"value{number}", map(str, layer.value.astype(int).tolist())))
        else:
            tables.append(_table("float", f"value{number}", map(_float, layer.value)))
    if layer.bias.any() and _few_biases(layer):
        # The last place is that of no neuron, so that the end need not be looked for.
        places = np.append(np.flatnonzero(layer.bias), layer.neurons)
        tables.append(_whole(f"biased{number}", places))
        tables.append(_table("float", f"bias{number}", map(_float, layer.bias[places[:-1]])))
    elif layer.bias.any():
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
        biases = int(np.count_nonzero(layer.bias))
        if biases and _few_biases(layer):
            total += 4 * biases + (biases + 1) * _bits(np.array([layer.neurons])) // 8
        elif biases:
            total += 4 * layer.neurons
    return total


def _table(kind: str, name: str, values: Iterable[str]) -> str:
    numbers = list(values)
    each = max(1, WIDTH // (2 + max(map(len, numbers))))
    lines = [", ".join(numbers[i : i + each]) for i in range(0, len(numbers), each)]
    body = ",\n".join(f"    {line}" for line in lines)
    return f"static const {kind} NAME_{name}[{len(numbers)}] NAME_FLASH = {{\n{body}\n}};\n"


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
    links = {"log": "expf((float)sum)"}
    if network.gives_labels:
        links["logistic"] = "1.0f / (1.0f + expf(-(float)sum))"
    answer = links.get(network.link, "(float)sum")
    loops = [_loop(i, layer) for i, layer in enumerate(layers[:-1]) if layer.neurons]
    loops.append(_loop(len(layers) - 1, layers[-1], direct, f"out[j] = {answer}"))
    few = any(_few_biases(layer) and layer.bias.any() for layer in layers)
    return "\n".join(
        [
            f"{head}(const NAME_input *in, NAME_output *out) {{",
            *hidden,
            f"    uint32_t j{', k' * sums}{', b' * few};",
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
    before, first, added = "", "0", ""
    if layer.bias.any() and _few_biases(layer):
        bits = _bits(np.array([layer.neurons]))
        before = "    b = 0;\n"
        added = f"""
        if (NAME_READ{bits}(&NAME_biased{number}[b]) == j) sum = NAME_READF(&NAME_bias{number}[b++]);"""
    elif layer.bias.any():
        first = f"NAME_READF(&NAME_bias{number}[j])"
    inner = _sum(layer, str(number), "in" if number == 0 else f"h{number - 1}") if layer.nonzeros else ""
    if direct is not None:
        inner += _sum(direct, DIRECT, "in")
    return f"""\
{before}    for (j = 0; j < {layer.neurons}; j++) {{
        NAME_sum sum = {first};{added}{inner}
        {answer or f"h{number}[j] = sum > 0 ? (float)sum : 0"};
    }}"""


def _sum(layer: CompactLayer, number: str, source: str) -> str:
    start, index = (f"NAME_READ{_bits(values)}" for values in (layer.start, layer.index))
    value = "(int8_t)NAME_READ8" if layer.signs_only else "NAME_READF"
    return f"""
        for (k = {start}(&NAME_start{number}[j]); k < {start}(&NAME_start{number}[j + 1]); k++)
            sum += (NAME_sum){value}(&NAME_value{number}[k]) * {source}[{index}(&NAME_index{number}[k])];"""
