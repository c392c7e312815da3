"""A Cortex-M3: compiled by arm-none-eabi-gcc, run by QEMU, every row.

QEMU counts instructions rather than cycles. Rows and outputs pass through files of the host (semihosting);
what that takes is not counted as the network's: its flash is that of its own object file.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from thresher.export.integer_c import c_files, input_type, output_type, spread_out
from thresher.hardware.atmega328p import numpy_type
from thresher.hardware.measured import Measured
from thresher.hardware.tools import ToolError, need, run
from thresher.integer import IntegerNetwork

TOOLS = ("arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm")
FLAGS = ("-mcpu=cortex-m3", "-mthumb", "-std=c99", "-ffreestanding", "-nostdlib")

LINKER = """\
MEMORY { FLASH (rx) : ORIGIN = 0, LENGTH = 4M  RAM (rw) : ORIGIN = 0x20000000, LENGTH = 4M }
ENTRY(start)
SECTIONS {
    .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > FLASH
    .data : { *(.data*) } > RAM
    .bss : { *(.bss*) *(COMMON) } > RAM
}
"""

# Vectors, calls to the host, a clock that counts instructions, and a stack that is painted to see its depth.
FIRMWARE = """\
#include "net.h"

enum { OPEN = 1, WRITE = 5, READ = 6, EXIT = 0x18, DEEPEST = 65536 };

static net_input row[net_INPUTS];
static net_output answer[net_OUTPUTS];
int class_number;

void start(void);
__attribute__((section(".vectors"), used)) static const uint32_t vectors[] = {
    0x20400000, (uint32_t)start
};

static int host(int what, const void *with) {
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static int opened(const char *name, int length, int mode) {
    const uint32_t given[3] = {(uint32_t)name, (uint32_t)mode, (uint32_t)length};
    return host(OPEN, given);
}

#define COUNTER (*(volatile uint32_t *)0xe000e018)

void start(void) {
    int rows = opened("rows", 4, 1), answers = opened("answers", 7, 5);
    uint64_t ticks = 0;
    uint32_t i, deepest = 0, counted = 0, summary[3];
    volatile uint8_t *bottom;
    uint8_t here;
    *(volatile uint32_t *)0xe000e014 = 0xffffff;
    COUNTER = 0;
    *(volatile uint32_t *)0xe000e010 = 5;
    for (;;) {
        const uint32_t reading[3] = {(uint32_t)rows, (uint32_t)row, sizeof row};
        const uint32_t writing[3] = {(uint32_t)answers, (uint32_t)answer, sizeof answer};
        uint32_t began;
        if (host(READ, reading)) break;
        bottom = (volatile uint8_t *)0x20400000 - DEEPEST;
        if (!counted)
            for (i = 0; bottom + i < &here - 48; i++) bottom[i] = 0xa5;
        began = COUNTER;
        net_run(row, answer);
#ifdef net_CLASSES
        class_number = net_choose(answer);
#endif
        ticks += (began - COUNTER) & 0xffffff;
        counted++;
        host(WRITE, writing);
    }
    for (i = 0; i < DEEPEST && bottom[i] == 0xa5; i++) ;
    deepest = (uint32_t)(&here - (bottom + i));
    summary[0] = counted;
    summary[1] = (uint32_t)(ticks * 40 / (counted ? counted : 1));
    summary[2] = deepest;
    {
        const uint32_t last[3] = {(uint32_t)answers, (uint32_t)summary, sizeof summary};
        host(WRITE, last);
    }
    host(EXIT, (const void *)0x20026);
    for (;;) ;
}
"""


def measure(network: IntegerNetwork, X: Any, *, packed: bool = False, used_inputs: bool = False) -> Measured:
    """Compile a network and run rows on the emulated device.

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
    need(TOOLS, "the target cortex-m3")
    codes = network.codes(X)
    given = codes if used_inputs else spread_out(network, codes)
    rows = np.ascontiguousarray(given.astype(numpy_type(input_type(network))))
    answer = numpy_type(output_type(network))
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name, text in c_files(network, "net", packed=packed, used_inputs=used_inputs).items():
            (folder / name).write_text(text, encoding="ascii")
        (folder / "firmware.c").write_text(FIRMWARE, encoding="ascii")
        (folder / "link.ld").write_text(LINKER, encoding="ascii")
        (folder / "rows").write_bytes(rows.tobytes())
        run(["arm-none-eabi-gcc", *FLAGS, "-Os", "-c", "net.c"], folder)
        # What copies memory is not there: the compiler may not make calls to it.
        kept = ("-Os", "-fno-tree-loop-distribute-patterns", "-T", "link.ld")
        run(
            ["arm-none-eabi-gcc", *FLAGS, *kept, "-o", "firmware.elf", "firmware.c", "net.o", "-lgcc"], folder
        )
        sizes = run(["arm-none-eabi-size", "net.o"], folder)[0].decode().splitlines()[1].split()
        machine = ("-M", "mps2-an385", "-display", "none", "-serial", "null", "-monitor", "none")
        clocked = ("-semihosting", "-icount", "shift=0", "-kernel", "firmware.elf")
        run(["qemu-system-arm", *machine, *clocked], folder)
        content = (folder / "answers").read_bytes()
    count, instructions, stack = np.frombuffer(content[-12:], dtype="<u4").tolist()
    if count != len(rows):
        raise ToolError(f"the emulator ran {count:,} of {len(rows):,} rows.")
    found = np.frombuffer(content[:-12], dtype=answer).reshape(count, network.outputs)
    agree = int((found == network.run(codes)).all(axis=1).sum())
    code, data, bss = map(int, sizes[:3])
    buffers = rows.shape[1] * rows.dtype.itemsize + network.outputs * answer.itemsize
    figures: dict[str, float] = {
        "flash": code + data,
        "ram": data + bss + buffers + stack,
        "instructions": instructions,
    }
    return Measured("cortex-m3", count, agree, figures, {}, "arm-none-eabi-gcc -Os and qemu-system-arm")
