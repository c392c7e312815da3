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
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and print no tables.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")]
