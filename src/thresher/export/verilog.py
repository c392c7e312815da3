"""An integer network as a Verilog-2001 module: shifts and additions, comparisons, no multiplier and no
memory.

Sums are those of :mod:`thresher.export.adders`; widths are those that ranges prove. What several sums need
is left to synthesis to share.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from thresher._version import __version__
from thresher.errors import ParameterError
from thresher.export.adders import Signal, sum_lines
from thresher.export.naming import c_comment, checked_name
from thresher.integer import IntegerNetwork
from thresher.integer.network import names_in_use
from thresher.integer.ranges import signed_bits

# Inputs of a module: more ports than this are no chip's.
MOST_INPUTS = 4096

# Rows of a test bench: they stand in its source.
MOST_ROWS = 20_000

WORDS = (
    "always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign "
    "default defparam design disable edge else end endcase endconfig endfunction endgenerate endmodule "
    "endprimitive endspecify endtable endtask event for force forever fork function generate genvar "
    "highz0 highz1 if ifnone incdir include initial inout input instance integer join large liblist "
    "library localparam macromodule medium module nand negedge nmos nor noshowcancelled not notif0 "
    "notif1 or output parameter pmos posedge primitive pull0 pull1 pulldown pullup rcmos real realtime "
    "reg release repeat rnmos rpmos rtran rtranif0 rtranif1 scalared showcancelled signed small specify "
    "specparam strong0 strong1 supply0 supply1 table task time tran tranif0 tranif1 tri tri0 tri1 "
    "triand trior trireg unsigned use vectored wait wand weak0 weak1 while wire wor xnor xor clk "
    "rst "
    # Those of SystemVerilog too, as which many tools read any file.
    "alias always_comb always_ff always_latch assert assume before bind bins bit break byte chandle checker "
    "class clocking const constraint context continue cover covergroup coverpoint cross dist do endchecker "
    "endclass endclocking endgroup endinterface endpackage endprogram endproperty endsequence enum "
    "eventually expect export extends extern final first_match foreach forkjoin global iff ignore_bins "
    "illegal_bins implements implies import inside int interconnect interface intersect join_any join_none "
    "let local logic longint matches modport nettype new nexttime null package packed priority program "
    "property protected pure rand randc randcase randsequence ref reject_on restrict return s_always "
    "s_eventually s_nexttime s_until s_until_with sequence shortint shortreal soft solve static string "
    "strong struct super sync_accept_on sync_reject_on tagged this throughout timeprecision timeunit type "
    "typedef union unique unique0 until until_with untyped var virtual void wait_order weak wildcard with "
    "within"
)
RESERVED = frozenset(WORDS.split())


def module_name(name: str) -> str:
    """Return a checked name, another where Verilog has its own use for it.

    Examples
    --------
    >>> module_name("digits"), module_name("table")
    ('digits', 'table_network')
    """
    checked = checked_name(name)
    return f"{checked}_network" if checked in RESERVED else checked


def latency(network: IntegerNetwork, pipeline: bool) -> int:
    """Count the clocks from inputs to outputs."""
    return (len(network.layers) + (network.classes is not None)) if pipeline else 0


def verilog(network: IntegerNetwork, name: str, *, pipeline: bool = False) -> str:
    """Write the module of a network.

    Parameters
    ----------
    network : IntegerNetwork
    name : str
        Name of the module.
    pipeline : bool
        Whether registers follow every layer and the comparison of outputs.
    """
    if network.used.size > MOST_INPUTS:
        raise ParameterError(
            f"the network reads {network.used.size:,} inputs, and a module has {MOST_INPUTS:,} at most: fit "
            "with fewer inputs (max_inputs)."
        )
    name = module_name(name)
    lines = [*_head(network, name, pipeline), *_layers(network, pipeline), *_answers(network, pipeline)]
    return "\n".join([*lines, "endmodule", ""])


def class_bits(network: IntegerNetwork) -> int:
    """Count the bits of the number of a class."""
    assert network.classes is not None
    return max(1, (network.classes.size - 1).bit_length())


def _head(network: IntegerNetwork, name: str, pipeline: bool) -> Iterator[str]:
    yield f"// {name}: an integer network by Thresher {__version__}, {network.nonzeros:,} nonzeros."
    names = names_in_use(network)
    yield f"// Inputs in use, {network.coding.kind}:"
    for number, column in enumerate(network.used.tolist()):
        called = "" if names is None else f" {c_comment(names[number])}"
        yield f"//   x{number}: column {column}{called}"
    if network.classes is None:
        yield "// One step of the outputs: " + ", ".join(map(repr, network.output_scale.tolist()))
    else:
        labels = (c_comment(str(label)) for label in network.classes.tolist())
        yield "// Classes: " + ", ".join(labels)
    if pipeline:
        yield f"// Registers follow every layer: answers come {latency(network, True)} clocks after inputs."
    ports = [f"input {_range(network.coding.bits)}x{number}" for number in range(network.used.size)]
    ports = [port.replace("input ", "input signed ") for port in ports] if network.coding.signed else ports
    bits = network.ranges.layers[-1].bits
    ports += [f"output signed {_range(bits)}y{number}" for number in range(network.outputs)]
    if network.classes is not None:
        ports.append(f"output {_range(class_bits(network))}class_number")
    ports = ["input clk", *ports] if pipeline else ports
    yield f"module {name}("
    yield from (f"    {port}," for port in ports[:-1])
    yield f"    {ports[-1]}"
    yield ");"


def _range(bits: int) -> str:
    return f"[{bits - 1}:0] "


def _layers(network: IntegerNetwork, pipeline: bool) -> Iterator[str]:
    """Write the sums of every layer; with registers the inputs wait for direct connections."""
    signals = inputs = [
        Signal(f"x{number}", network.coding.bits, network.coding.signed)
        for number in range(network.used.size)
    ]
    for number, layer in enumerate(network.layers[:-1]):
        ranges, following = network.ranges.layers[number], []
        for neuron in range(layer.neurons):
            bits = signed_bits(int(ranges.low[neuron]), int(ranges.high[neuron]))
            width = max(1, int(ranges.activation[neuron]).bit_length())
            total, name = f"s{number}_{neuron}", f"h{number}_{neuron}"
            yield from sum_lines(f"{total}a", _terms(layer.weights, neuron, signals), int(layer.bias[neuron]))
            yield f"    wire signed {_range(bits)}{total} = {total}a;"
            value = _activation(network, number, neuron, total, bits)
            yield from _held(f"{_range(width)}{name}", name, value, pipeline)
            following.append(Signal(name, width, False))
        signals = following
    yield from _outputs(network, signals, inputs, pipeline)


def _terms(
    weights: sparse.csc_array, neuron: int, signals: list[Signal], shift: int = 0
) -> list[tuple[Signal, int]]:
    part = slice(weights.indptr[neuron], weights.indptr[neuron + 1])
    entries = zip(weights.indices[part].tolist(), weights.data[part].tolist(), strict=True)
    return [(signals[place], weight << shift) for place, weight in entries]


def _activation(network: IntegerNetwork, number: int, neuron: int, name: str, bits: int) -> str:
    """Write what follows a sum: nothing below zero, shifted down, kept to the largest."""
    ranges, layer = network.ranges.layers[number], network.layers[number]
    shift = int(layer.shift[neuron])
    width = int(ranges.activation[neuron]).bit_length()
    if width == 0:
        return "1'b0"
    value = f"{name}[{shift + width - 1}:{shift}]"
    high = max(0, int(ranges.high[neuron])) >> shift
    if high > network.activation_limit:
        # What is kept to the largest has all its bits set.
        value = f"({value} | {{{width}{{|{name}[{bits - 2}:{shift + width}]}}}})"
    return f"{name}[{bits - 1}] ? {width}'d0 : {value}"


def _held(declaration: str, name: str, value: str, pipeline: bool) -> Iterator[str]:
    """Write a value as a wire, or as a register where there are registers."""
    if not pipeline:
        yield f"    wire {declaration} = {value};"
        return
    yield f"    reg {declaration};"
    yield f"    always @(posedge clk) {name} <= {value};"


def _outputs(
    network: IntegerNetwork, signals: list[Signal], inputs: list[Signal], pipeline: bool
) -> Iterator[str]:
    layer, ranges = network.layers[-1], network.ranges.layers[-1]
    if pipeline and network.direct is not None:
        # Inputs wait as many clocks as hidden layers take.
        for step in range(len(network.layers) - 1):
            waiting = [signal._replace(name=f"w{step}_{number}") for number, signal in enumerate(inputs)]
            for number in np.unique(network.direct.tocoo().row).tolist():
                yield f"    reg {_range(network.coding.bits)}{waiting[number].name};"
                yield f"    always @(posedge clk) {waiting[number].name} <= {inputs[number].name};"
            inputs = waiting
    for output in range(network.outputs):
        terms = _terms(layer.weights, output, signals, network.hidden_shift)
        if network.direct is not None:
            terms += _terms(network.direct, output, inputs, network.direct_shift)
        yield from sum_lines(f"o{output}a", terms, int(layer.bias[output]))
        yield from _held(f"signed {_range(ranges.bits)}o{output}", f"o{output}", f"o{output}a", pipeline)


def _answers(network: IntegerNetwork, pipeline: bool) -> Iterator[str]:
    """Write outputs and the number of the class: comparisons in a tree, of equal outputs the first."""
    bits = network.ranges.layers[-1].bits
    source = "o"
    if pipeline and network.classes is not None:
        for output in range(network.outputs):
            yield f"    reg signed {_range(bits)}p{output};"
            yield f"    always @(posedge clk) p{output} <= o{output};"
        source = "p"
    yield from (f"    assign y{output} = {source}{output};" for output in range(network.outputs))
    if network.classes is None:
        return
    wide = class_bits(network)
    if network.outputs == 1:
        threshold = network.threshold
        width = max(bits, signed_bits(threshold, threshold))
        limit = f"{'-' if threshold < 0 else ''}{width}'sd{abs(threshold)}"
        best = f"(o0 > {limit})"
    else:
        level = [(f"o{output}", f"{wide}'d{output}") for output in range(network.outputs)]
        depth = 0
        while len(level) > 1:
            following = []
            for pair in range(0, len(level) - 1, 2):
                (one, first), (two, second) = level[pair : pair + 2]
                name = f"{depth}_{pair // 2}"
                yield f"    wire better{name} = {two} > {one};"
                yield f"    wire signed {_range(bits)}most{name} = better{name} ? {two} : {one};"
                yield f"    wire {_range(wide)}which{name} = better{name} ? {second} : {first};"
                following.append((f"most{name}", f"which{name}"))
            level = following + level[len(level) - len(level) % 2 :]
            depth += 1
        best = level[0][1]
    if pipeline:
        yield f"    reg {_range(wide)}best;"
        yield f"    always @(posedge clk) best <= {best};"
        best = "best"
    yield f"    assign class_number = {best};"


def test_bench(network: IntegerNetwork, name: str, codes: np.ndarray, *, pipeline: bool = False) -> str:
    """Write a test bench that runs rows of codes and compares every output with what Python computes.

    It ends with a line ``PASS rows`` or ``FAIL wrong of rows``.
    """
    if not 1 <= len(codes) <= MOST_ROWS:
        raise ParameterError(f"X has {len(codes):,} rows, but a test bench takes 1 to {MOST_ROWS:,}.")
    name = module_name(name)
    outputs = network.run(codes)
    bits, inputs = network.ranges.layers[-1].bits, network.coding.bits
    columns = [packed_rows(codes, inputs), packed_rows(outputs, bits)]
    widths = [codes.shape[1] * inputs, outputs.shape[1] * bits]
    ports = [f".x{number}(row[{number * inputs} +: {inputs}])" for number in range(codes.shape[1])]
    ports += [f".y{number}(y[{number * bits} +: {bits}])" for number in range(network.outputs)]
    declared, compared = "", "y !== wanted"
    if network.classes is not None:
        wide = class_bits(network)
        columns.append(packed_rows(network.class_numbers(outputs)[:, None], wide))
        widths.append(wide)
        ports.append(".class_number(class_number)")
        declared = f"    wire [{wide - 1}:0] class_number;\n"
        compared += " || class_number !== wanted_class"
    ports = [".clk(clk)", *ports] if pipeline else ports
    wait = "repeat (CLOCKS) begin #1 clk = 1; #1 clk = 0; end #1" if pipeline else "#1"
    rows = "\n".join(
        "        check({" + ", ".join(f"{w}'h{v}" for w, v in zip(widths, values, strict=True)) + "});"
        for values in zip(*columns, strict=True)
    )
    fields = ["row", "wanted", "wanted_class"][: len(widths)]
    registers = "\n".join(f"    reg [{w - 1}:0] {field};" for w, field in zip(widths, fields, strict=True))
    return f"""\
module {name}_test;
    reg clk = 0;
{registers}
    wire [{widths[1] - 1}:0] y;
{declared}    integer wrong = 0;
    {name} network({", ".join(ports)});
    task check(input [{sum(widths) - 1}:0] line);
        begin
            {{{", ".join(fields)}}} = line;
            {wait.replace("CLOCKS", str(latency(network, True)))}
            if ({compared}) wrong = wrong + 1;
        end
    endtask
    initial begin
{rows}
        if (wrong) $display("FAIL %0d of {len(codes)}", wrong);
        else $display("PASS {len(codes)}");
        $finish;
    end
endmodule
"""


def packed_rows(values: np.ndarray, bits: int) -> list[str]:
    """Write every row of whole numbers (n, k) as one hexadecimal number, the first in its lowest bits.

    Examples
    --------
    >>> packed_rows(np.array([[1, -1]]), 4)
    ['f1']
    """
    shifts = np.arange(bits)
    planes = (values[:, :, None] >> shifts & 1).astype(np.uint8).reshape(len(values), -1)
    packed = np.packbits(planes, axis=1, bitorder="little")[:, ::-1]
    digits = -(-values.shape[1] * bits // 4)
    return [row.tobytes().hex()[-digits:] for row in packed]
