"""The loops of an integer network in C over a stream of bits, the smallest form."""

from __future__ import annotations

import numpy as np

from thresher.export.bit_tables import Section, bit_tables
from thresher.export.c_types import (
    activation,
    answer,
    constant,
    declared,
    function,
    indented,
    layer_type,
    listed,
    product_type,
    sum_type,
    times,
    unsigned_type,
)
from thresher.integer import IntegerNetwork

BIT_READER = """\
/* Reads the stream, the highest bit of each byte first. */
typedef struct { const uint8_t *place; uint8_t byte, left; } NAME_stream;
typedef TAKEN NAME_taken;
typedef PLACE NAME_place;

static uint8_t NAME_bit(NAME_stream *s) {
    uint8_t bit;
    if (!s->left) {
        s->byte = NAME_READ8(s->place);
        s->place++;
        s->left = 8;
    }
    s->left--;
    bit = s->byte & 0x80;
    s->byte = (uint8_t)(s->byte << 1);
    return bit;
}

static NAME_taken NAME_take(NAME_stream *s, uint8_t bits) {
    NAME_taken value = 0;
    while (bits--) {
        value = (NAME_taken)(value << 1);
        if (NAME_bit(s)) value |= 1;
    }
    return value;
}

/* How many places are left out before the next weight. */
static NAME_place NAME_gap(NAME_stream *s, uint8_t rest) {
    NAME_place whole = 0;
    while (NAME_bit(s)) whole++;
    return (NAME_place)((NAME_place)(whole << rest) | NAME_take(s, rest));
}
"""


def packed_loops(network: IntegerNetwork, all_inputs: bool) -> tuple[str, str]:
    """Return the table of bits with its reader, and the function that reads it once for a prediction."""
    content, sections, direct = bit_tables(network, all_inputs)
    every = [*sections, *([] if direct is None else [direct])]
    taken = max(max(part.bias_bits, part.weight_bits, part.rice, part.shift_bits) for part in every)
    place = max(taken, *((max(part.farthest, part.width) + 1).bit_length() for part in every))
    reader = BIT_READER.replace("TAKEN", unsigned_type(max(taken, 8)))
    reader = reader.replace("PLACE", unsigned_type(max(place, 8)))
    bits = listed(
        "uint8_t", f"NAME_bits[{len(content)}]", "NAME_FLASH", np.frombuffer(content, dtype=np.uint8)
    )
    body = [
        *declared(network),
        "NAME_stream s = {NAME_bits, 0, 0};",
        "NAME_place next;",
        "uint16_t j;" if max(part.neurons for part in every) < 2**16 else "uint32_t j;",
    ]
    for number, part in enumerate(sections):
        last = number == len(sections) - 1
        if last and direct is not None:
            body += _loop(network, direct, None, layer_type(network, number), _direct_end(network))
        end = _output_end(network, part) if last else _hidden_end(network, part, number)
        body += _loop(network, part, number, layer_type(network, number), end)
    return bits + "\n" + reader, function(body)


def _direct_end(network: IntegerNetwork) -> list[str]:
    kind = layer_type(network, len(network.layers) - 1)
    return [f"out[j] = (NAME_output)(sum{times(kind, network.direct_shift)});"]


def _output_end(network: IntegerNetwork, part: Section) -> list[str]:
    return [answer(network, "bias" if part.has_bias else None)]


def _hidden_end(network: IntegerNetwork, part: Section, number: int) -> list[str]:
    add = [f"sum = ({layer_type(network, number)})(sum + bias);"] if part.has_bias else []
    if not part.shift_bits:
        return [*add, *activation(network, number, str(part.shift))]
    read = f"const uint8_t shift = (uint8_t)(NAME_take(&s, {part.shift_bits}) + {part.shift});"
    return [*add, "{", *indented([read, *activation(network, number, "shift")]), "}"]


def _loop(network: IntegerNetwork, part: Section, number: int | None, kind: str, end: list[str]) -> list[str]:
    """Write the loop over the neurons of a layer; without a number it is direct connections."""
    source = f"h{number - 1}" if number else "in"
    product = product_type(network, part.largest, number - 1 if number else None)
    index = "next - 1" if part.has_bias else "next"
    use = _weight(part, product)
    use.append(f"sum = ({kind})(sum + ({kind})(weight * ({product}){source}[{index}]));")
    if part.has_bias:
        wide = sum_type(part.bias_bits + 1)
        value = f"({kind})(({wide})NAME_take(&s, {part.bias_bits}) - {constant(1 << part.bias_bits - 1)})"
        bias = f"bias = ({kind})({value}{times(kind, part.bias_shift)});"
        use = ["if (next == 0) {", *indented([bias]), "} else {", *indented(use), "}"]
    inner = [
        f"{kind} sum = 0{', bias = 0' if part.has_bias else ''};",
        f"while (next < {part.width}) {{",
        *indented([*use, f"next = (NAME_place)(next + NAME_gap(&s, {part.rice}) + 1);"]),
        "}",
        f"next = (NAME_place)(next - {part.width});",
        *end,
    ]
    return [
        f"next = NAME_gap(&s, {part.rice});",
        f"for (j = 0; j < {part.neurons}; j++) {{",
        *indented(inner),
        "}",
    ]


def _weight(part: Section, product: str) -> list[str]:
    """Write how a weight is read."""
    if part.powers:
        exponent = part.weight_bits - 1
        mask = (1 << exponent) - 1
        return [
            f"const NAME_taken code = NAME_take(&s, {part.weight_bits});",
            f"const {product} size = ({product})(({product})1 << (code & {mask}));",
            f"const {product} weight = ({product})(code >> {exponent} ? -size : size);",
        ]
    return [
        f"{product} weight = ({product})NAME_take(&s, {part.weight_bits});",
        f"weight = ({product})(weight - {constant(part.largest)});",
        "if (weight >= 0) weight++;",
    ]
