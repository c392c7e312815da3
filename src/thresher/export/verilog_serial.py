"""A network behind a shift register, for chips that have fewer pins than it has inputs."""

from __future__ import annotations

from thresher.export.verilog import class_bits, latency, module_name
from thresher.integer import IntegerNetwork


def serial(network: IntegerNetwork, name: str, *, pipeline: bool = False) -> str:
    """Write a module that takes one input at each clock, and gives the class, or the outputs side by side.

    Parameters
    ----------
    network : IntegerNetwork
    name : str
        The name of the network's own module; this one's ends in ``_serial``.
    pipeline : bool
        Whether the network's module has registers.
    """
    name = module_name(name)
    bits, count = network.coding.bits, network.used.size
    ports = [f".x{number}(row[{number * bits} +: {bits}])" for number in range(count)]
    wide = network.ranges.layers[-1].bits
    outputs = network.outputs
    if network.classes is None:
        ports += [f".y{number}(found[{number * wide} +: {wide}])" for number in range(outputs)]
        width = outputs * wide
    else:
        width = class_bits(network)
        ports += [f".y{number}()" for number in range(outputs)]
        ports.append(".class_number(found)")
    ports = [".clk(clk)", *ports] if pipeline else ports
    later = 1 + latency(network, pipeline)
    # A register of one input has nothing to shift.
    shifted = f"{{in, row}} >> {bits}" if count > 1 else "in"
    return f"""
// One input at each clock, x0 first; the answer to a row follows its last input by {later} clocks.
module {name}_serial(input clk, input [{bits - 1}:0] in, output reg [{width - 1}:0] out);
    reg [{count * bits - 1}:0] row;
    wire [{width - 1}:0] found;
    {name} network({", ".join(ports)});
    always @(posedge clk) begin
        row <= {shifted};
        out <= found;
    end
endmodule
"""
