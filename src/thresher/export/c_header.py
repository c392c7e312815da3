"""What every C export shares: the header with sizes and names, and tables that can stand in flash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from thresher.export.naming import c_string, plain_labels

# Characters of a line of a list, about.
WIDTH = 90

FLASH = """\
/* Where tables stand and how they are read: in flash on AVR. Define NAME_FLASH and the readers for other
 * machines whose flash is no memory. */
#ifndef NAME_FLASH
#ifdef __AVR__
#include <avr/pgmspace.h>
#define NAME_FLASH PROGMEM
READERS_OF_AVR
#else
#define NAME_FLASH
READERS
#endif
#endif
"""

# By the size of a number how it is read on AVR.
AVR = {
    "8": "pgm_read_byte(place)",
    "16": "pgm_read_word(place)",
    "32": "pgm_read_dword(place)",
    "64": "\\\n    ((uint64_t)pgm_read_dword((const uint32_t *)(place) + 1) << 32 | pgm_read_dword(place))",
    "F": "pgm_read_float(place)",
}


def flash(sizes: Iterable[str]) -> str:
    """Write the macros of tables: where they stand, and how numbers of some sizes are read.

    Parameters
    ----------
    sizes : iterable of str
        ``"8"`` to ``"64"``, the bits of a whole number, and ``"F"`` for float.
    """
    found = list(sizes)
    avr = "\n".join(f"#define NAME_READ{size}(place) {AVR[size]}" for size in found)
    elsewhere = "\n".join(f"#define NAME_READ{size}(place) (*(place))" for size in found)
    return FLASH.replace("READERS_OF_AVR", avr).replace("READERS", elsewhere)


@dataclass(frozen=True, eq=False)
class Header:
    """A header file.

    Attributes
    ----------
    name : str
        What every name in it begins with.
    about : sequence of str
        Lines of the comment at its top, safe to stand there.
    input_type, output_type : str
        Types of C.
    columns : int
        Columns of the data.
    used : ndarray
        The columns that a prediction needs, ascending.
    used_inputs : bool
        Whether functions take these alone.
    outputs : int
        How many numbers come out.
    features : sequence of str, optional
        Names of all columns.
    classes : ndarray, optional
    lists : sequence of str
        More macros, each a line or a comment.
    functions : sequence of str
        Declarations, with comments.
    """

    name: str
    about: Sequence[str]
    input_type: str
    output_type: str
    columns: int
    used: np.ndarray
    used_inputs: bool
    outputs: int
    features: Sequence[str] | None
    classes: np.ndarray | None
    lists: Sequence[str]
    functions: Sequence[str]

    @property
    def inputs(self) -> int:
        """How many numbers functions take."""
        return int(self.used.size) if self.used_inputs else self.columns

    def __str__(self) -> str:
        """Write it."""
        name = self.name
        lines = [
            "/*",
            *(f" * {line}".rstrip() for line in self.about),
            " */",
            f"#ifndef {name}_H",
            f"#define {name}_H",
            "",
            "#include <stdint.h>",
            "",
            f"typedef {self.input_type} {name}_input;",
            f"typedef {self.output_type} {name}_output;",
            "",
            f"#define {name}_INPUTS {self.inputs}",
            f"#define {name}_COLUMNS {self.columns}",
            f"#define {name}_OUTPUTS {self.outputs}",
            "",
        ]
        if self.used.size:
            lines.append("/* The columns of the data that a prediction needs, as lists in braces. */")
            lines.append(list_macro(f"{name}_USED", map(str, self.used.tolist())))
            if self.features is not None:
                names = (c_string(self.features[column]) for column in self.used)
                lines.append(list_macro(f"{name}_NAMES", names))
        lines += self.lists
        if self.classes is not None:
            lines.append(f"#define {name}_CLASSES {self.classes.size}")
            labels = (c_string(str(label)) for label in plain_labels(self.classes))
            lines.append(list_macro(f"{name}_LABELS", labels))
        return "\n".join([*lines, *self.functions, "", f"#endif /* {name}_H */", ""])


def list_macro(macro: str, values: Iterable[str]) -> str:
    """Write a list as a macro, which takes no memory where it is not used."""
    lines, line = [], ""
    for value in values:
        line = f"{line}, {value}" if line else value
        if len(line) > WIDTH:
            lines.append(f"{line}, \\")
            line = ""
    body = "\n    ".join([*lines, line])
    return f"#define {macro} {{ \\\n    {body.rstrip(', ')} }}"
