"""Where the tests of real data find it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mnist_folder() -> Path:
    folder = os.environ.get("THRESHER_DATA")
    if not folder:
        pytest.skip("needs the MNIST files: set THRESHER_DATA to the folder that holds mnist/")
    return Path(folder)
