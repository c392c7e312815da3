"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(help="A model file, by custom ending in .thresher.", metavar="MODEL")]
Out = Annotated[Path, typer.Option("--out", help="Folder for what is written.", metavar="DIR")]
Seed = Annotated[str, typer.Option(help="Seed of everything random.", metavar="N")]
Json = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to standard output, and nothing else there.")
]
OnDisk = Annotated[
    bool, typer.Option("--on-disk", help="Leave the rows on disk, as for folders and .npy files in any case.")
]
Calibrate = Annotated[
    Path | None,
    typer.Option(help="Rows that ranges are chosen on, such as those of training.", metavar="DATA"),
]
Bits = Annotated[str, typer.Option(help="Bits of an integer weight, 2 to 16.", metavar="N")]
Weights = Annotated[
    str | None, typer.Option(help="Instead of bits: int8, int4 or pow2, powers of two.", metavar="KIND")
]
Activations = Annotated[str, typer.Option(help="Bits that neurons are kept to, 1 to 32.", metavar="N")]
Inputs = Annotated[
    str, typer.Option(help="What the device sees: auto, uint8, int16 and the like.", metavar="KIND")
]
BiasBits = Annotated[str, typer.Option(help="Bits of a bias, 4 to 32.", metavar="N")]
Passes = Annotated[
    str,
    typer.Option(help="Passes over the calibration rows that train with rounding in the loop.", metavar="N"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and print no tables.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")]
