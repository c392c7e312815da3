"""The versions of everything that matters, for a report of a problem."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

PACKAGES = (
    "thresher",
    "numpy",
    "scipy",
    "torch",
    "scikit-learn",
    "pandas",
    "safetensors",
    "typer",
    "rich",
    "matplotlib",
)


def versions() -> dict[str, str]:
    """Give the versions of Python, the system and every dependency, without importing them."""
    found = {"python": sys.version.split()[0], "system": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def show_versions() -> None:
    """Print the versions of Python, the system and every dependency.

    Examples
    --------
    >>> show_versions()  # doctest: +ELLIPSIS
    python: ...
    """
    for name, found in versions().items():
        print(f"{name}: {found}")
