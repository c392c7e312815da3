"""What made a sweep: the commands, the choices, the machine and the versions, kept beside its cells."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from thresher.atomic import write_whole
from thresher.errors import DataFileError
from thresher.experiments.machine import machine
from thresher.versions import versions

FILE = "settings.json"


@dataclass(frozen=True)
class Settings:
    """One command that added to a sweep.

    Attributes
    ----------
    command : str
        What was typed.
    choices : dict
        What of the experiment it chose.
    jobs : int
        Processes at a time.
    machine, versions : dict
        What it ran on.
    """

    command: str
    choices: dict[str, Any]
    jobs: int
    machine: dict[str, Any] = field(default_factory=machine)
    versions: dict[str, str] = field(default_factory=versions)


def write_settings(folder: Path, settings: Settings) -> None:
    """Add a command to those of a folder of results; one that is there already counts once."""
    plain = json.loads(json.dumps(asdict(settings)))
    known = read_settings(folder)
    if plain in known:
        return
    content = json.dumps({"commands": [*known, plain]}, indent=2)
    try:
        write_whole(folder / FILE, f"{content}\n".encode())
    except OSError as error:
        raise DataFileError(
            f"{folder / FILE} cannot be written ({error.strerror or error}). Use --out with a folder where "
            "you may write and that has room."
        ) from error


def read_settings(folder: Path) -> list[dict[str, Any]]:
    """Give the commands that made the results of a folder, the first one first; older results tell none."""
    path = folder / FILE
    try:
        commands = json.loads(path.read_text(encoding="utf-8"))["commands"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataFileError(
            f"{path} does not tell the settings of a sweep ({error}). Remove it, or use another folder."
        ) from None
    return list(commands)
