"""What all tests share: one thread for each process, and the data that some of them need."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
import torch

# Tests run in several processes at once; torch threads that compete for the same cores slow them many times.
torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whatever asks for the MNIST files, so that ``-m "not mnist"`` leaves it out."""
    for item in items:
        if "mnist_folder" in getattr(item, "fixturenames", ()):
            item.add_marker("mnist")


def pytest_collection_finish() -> None:
    """Leave modules and tests out of later searches for garbage: measuring memory asks for many."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def mnist_folder() -> Path:
    """Give the data folder (it holds ``mnist/``), or skip the test and say what is missing."""
    setting = os.environ.get("THRESHER_DATA")
    if not setting:
        pytest.skip("needs MNIST: set THRESHER_DATA to a folder that holds mnist/ with its four .gz files")
    folder = Path(setting).expanduser()
    if not (folder / "mnist").is_dir():
        pytest.skip(f"needs MNIST: THRESHER_DATA={setting} holds no folder mnist/ with the four .gz files")
    return folder
