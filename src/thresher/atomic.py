"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_whole(path: str | os.PathLike[str], content: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all: what was there before stays until all of it is on the disk.

    Parameters
    ----------
    path : str or path
        A link is followed; the folder must exist.
    content : bytes or iterable of bytes
        All of the file, or its parts as they come.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise IsADirectoryError(f"{target} is a folder or a device, and cannot be replaced by a file")
    # open() gives a new file the permissions that the umask asks for; tempfile would keep them private. What
    # is replaced keeps its own.
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    # Where folders can be opened, this makes the new name survive a power cut as well.
    with suppress(OSError):
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
