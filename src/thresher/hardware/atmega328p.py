"""The ATmega328P of an Arduino Uno: compiled by avr-gcc, run by simavr, every row and every cycle.

The simulator is a small C program on simavr's library. The firmware says by a register where a prediction
begins and ends; there the simulator puts a row into RAM, or takes the outputs out.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from thresher.export.integer_c import c_files, input_type, output_type, spread_out
from thresher.hardware.measured import Measured
from thresher.hardware.tools import ToolError, need, run
from thresher.integer import IntegerNetwork

TOOLS = ("avr-gcc", "avr-nm", "avr-size", "simavr", "gcc")
LIMITS = {"flash": 32 * 1024, "ram": 2 * 1024}
FLAGS = ("-mmcu=atmega328p", "-Os", "-std=c99", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")

FIRMWARE = """\
#include <avr/io.h>
#include "net.h"

net_input row[net_INPUTS];
net_output answer[net_OUTPUTS];
#ifdef net_CLASSES
int class_number;
#endif

int main(void) {
    for (;;) {
        GPIOR0 = 1;
        net_run(row, answer);
#ifdef net_CLASSES
        class_number = net_choose(answer);
#endif
        GPIOR0 = 2;
    }
}
"""

SIMULATOR = r"""
#include <stdio.h>
#include <stdlib.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <simavr/sim_io.h>

static int row_place, row_bytes, answer_place, answer_bytes, finished;
static unsigned long rows;
static avr_cycle_count_t began, total, longest;

static void told(avr_t *avr, avr_io_addr_t place, uint8_t value, void *parameter) {
    (void)parameter;
    avr->data[place] = value;
    if (value == 1) {
        if (fread(avr->data + row_place, 1, row_bytes, stdin) != (size_t)row_bytes) finished = 1;
        began = avr->cycle;
    } else {
        avr_cycle_count_t spent = avr->cycle - began;
        total += spent;
        if (spent > longest) longest = spent;
        rows++;
        fwrite(avr->data + answer_place, 1, answer_bytes, stdout);
    }
}

int main(int count, char **given) {
    elf_firmware_t firmware = {{0}};
    avr_t *avr;
    int lowest = 0xffff, state;
    if (count != 6) return 2;
    row_place = atoi(given[2]);
    row_bytes = atoi(given[3]);
    answer_place = atoi(given[4]);
    answer_bytes = atoi(given[5]);
    if (elf_read_firmware(given[1], &firmware)) return 3;
    avr = avr_make_mcu_by_name("atmega328p");
    if (!avr) return 4;
    avr_init(avr);
    avr_load_firmware(avr, &firmware);
    avr_register_io_write(avr, 0x3e, told, NULL);
    do {
        int stack = avr->data[R_SPL] | avr->data[R_SPH] << 8;
        state = avr_run(avr);
        if (rows + finished && stack < lowest) lowest = stack;
        if (!rows && began && stack < lowest) lowest = stack;
    } while (!finished && state != cpu_Done && state != cpu_Crashed);
    fprintf(stderr, "\nMEASURED %lu %llu %llu %d\n", rows, (unsigned long long)total,
        (unsigned long long)longest, lowest);
    return finished ? 0 : 5;
}
"""


def measure(network: IntegerNetwork, X: Any, *, packed: bool = True, used_inputs: bool = False) -> Measured:
    """Compile a network and run rows on the simulated device.

    Parameters
    ----------
    network : IntegerNetwork
    X : array-like of shape (n, inputs)
        Rows.
    packed : bool
        Whether tables are a stream of bits.
    used_inputs : bool
        Whether the device is given the inputs in use rather than all columns.
    """
    need(TOOLS, "the target atmega328p")
    codes = network.codes(X)
    given = codes if used_inputs else spread_out(network, codes)
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name, text in c_files(network, "net", packed=packed, used_inputs=used_inputs).items():
            (folder / name).write_text(text, encoding="ascii")
        flash, static = compiled(folder, FIRMWARE, ["net.c"])
        found, cycles, longest, stack = simulated(
            folder,
            given.astype(numpy_type(input_type(network))),
            numpy_type(output_type(network)),
            network.outputs,
        )
    agree = int((found == network.run(codes)).all(axis=1).sum())
    figures = {"flash": flash, "ram": static + stack, "cycles": cycles, "cycles_at_most": longest}
    figures = {**figures, "milliseconds_at_16_MHz": cycles / 16_000}
    return Measured("atmega328p", len(codes), agree, figures, LIMITS, "avr-gcc -Os and simavr")


def numpy_type(c_type: str) -> np.dtype:
    """Return NumPy's name of a type of C, little-endian."""
    return np.dtype(c_type.removesuffix("_t")).newbyteorder("<")


def compiled(folder: Path, firmware: str, sources: list[str]) -> tuple[int, int]:
    """Compile firmware to ``firmware.elf``; return bytes of flash, and of RAM before the stack."""
    (folder / "firmware.c").write_text(firmware, encoding="ascii")
    run(["avr-gcc", *FLAGS, "-o", "firmware.elf", "firmware.c", *sources, "-lm"], folder)
    sizes = run(["avr-size", "firmware.elf"], folder)[0].decode().splitlines()[1].split()
    text, data, bss = map(int, sizes[:3])
    return text + data, data + bss


def simulated(
    folder: Path, rows: np.ndarray, answer: np.dtype, outputs: int
) -> tuple[np.ndarray, float, int, int]:
    """Run rows on ``firmware.elf``; return outputs, mean and most cycles, and bytes of the stack."""
    (folder / "simulator.c").write_text(SIMULATOR, encoding="ascii")
    run(["gcc", "-O2", "-o", "simulator", "simulator.c", "-lsimavr"], folder)
    symbols = {
        parts[2]: int(parts[0], 16) & 0xFFFF
        for parts in map(str.split, run(["avr-nm", "firmware.elf"], folder)[0].decode().splitlines())
        if len(parts) == 3
    }
    sizes = [rows.shape[1] * rows.dtype.itemsize, outputs * answer.itemsize]
    places = [symbols["row"], sizes[0], symbols["answer"], sizes[1]]
    given = np.ascontiguousarray(rows).tobytes()
    content, told = run(["./simulator", "firmware.elf", *map(str, places)], folder, given=given)
    line = next(line for line in told.splitlines() if line.startswith("MEASURED")).split()
    count, total, longest, lowest = map(int, line[1:])
    if count != len(rows):
        raise ToolError(f"the simulator ran {count:,} of {len(rows):,} rows.")
    found = np.frombuffer(content[-count * sizes[1] :], dtype=answer).reshape(count, outputs)
    # The stack begins at the end of RAM.
    return found, total / count, longest, 0x8FF - lowest
