"""The package as others get it: a wheel that installs into an environment of its own and works there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow

SMOKE = """
import sys, thresher
from pathlib import Path
assert Path(thresher.__file__).is_relative_to(sys.prefix), thresher.__file__
import numpy as np
from thresher import SparseMLPRegressor
X = np.random.default_rng(0).normal(size=(100, 3))
model = SparseMLPRegressor(budget=1, hidden=2, random_state=0).fit(X, 2 * np.maximum(X[:, 0], 0))
print(model.network_.formula())
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without the project's own sources in sight, and give what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**environment, "OMP_NUM_THREADS": "1", "PIP_NO_INDEX": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel from a copy of the sources, with the build tools that are at hand."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "copy"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (copy / name).write_bytes((ROOT / name).read_bytes())
    for path in (ROOT / "src").rglob("*"):
        if path.suffix == ".py" or path.name == "py.typed":
            target = copy / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, copy, cwd=folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a new environment, which borrows the dependencies from this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    # The pip that is at hand installs into the new environment, which needs none of its own.
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", wheel, cwd=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    # Only the folder is added: links that it holds to sources elsewhere are not followed.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python


def test_the_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }
    assert held == source


def test_it_trains_where_it_is_installed(python: Path, tmp_path: Path) -> None:
    assert run(python, "-c", SMOKE, cwd=tmp_path) == "y = relu(2*x0)\n"


def test_its_command_fits_and_predicts(python: Path, tmp_path: Path) -> None:
    rows = [f"{x / 7},{x % 5},{2 * max(x / 7, 0) + 0.5}" for x in range(-40, 40)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    thresher = python.parent / "thresher"
    assert run(thresher, "--version", cwd=tmp_path).startswith("thresher ")
    run(thresher, "fit", "table.csv", "--budget", "3", "--hidden", "2", "--no-compare", cwd=tmp_path)
    predicted = run(thresher, "predict", "model.thresher", "table.csv", cwd=tmp_path).splitlines()
    assert predicted[0] == "a,b,y,prediction"
    for line in predicted[1:]:
        *_, truth, guess = map(float, line.split(","))
        assert guess == pytest.approx(truth, abs=1e-3)
