"""Whether a command can write its results: asked before the work rather than after it."""

from __future__ import annotations

import secrets
from pathlib import Path

from thresher.errors import DataFileError


def check_file(path: Path) -> None:
    """Refuse a file that could not be written, and leave nothing behind."""
    folder = path.parent
    if path.is_dir():
        raise DataFileError(f"{path} is a folder. Use --out with the name of a file.")
    if not folder.is_dir():
        raise DataFileError(f"the folder {folder} does not exist. Make it, or use --out with another.")
    check_folder(folder)


def check_not_read(out: Path, *read: str | None) -> None:
    """Refuse to write over a file that is read."""
    for path in read:
        if path is not None and out.exists() and Path(path).exists() and out.samefile(path):
            raise DataFileError(
                f"--out {out} is {path}, which is read: it would be replaced. Use another --out."
            )


def check_folder(folder: Path) -> None:
    """Make a folder if there is none, and refuse one where files could not be written."""
    # A name that no file of the user's has.
    probe = folder / f".{secrets.token_hex(8)}.probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise DataFileError(
            f"{folder} cannot be written to ({error.strerror or error}). Use --out with another folder."
        ) from error
