"""The shape of the project: imports follow the flow of data, importing is silent, no file names a machine."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "thresher"

# The flow of data, first to last. A part may import its own layer and those before it, never a later one. A
# module of a folder may have a place of its own, before the rest of it.
FLOW = (
    {"_version", "errors", "versions", "progress", "threads", "memory", "atomic", "device", "clock"},
    {"linear"},
    {"data"},
    {"objective"},
    {"solvers"},
    {
        "network.metadata",
        "network.files",
        "network.layer",
        "network.structure",
        "network.forward",
        "network.formula",
        "network.requirements",
    },
    {"network.description", "export", "integer", "explain", "report.style", "report.graph", "report.effects"},
    {"network"},
    {"estimators", "stability"},
    {"theory", "baselines", "dask", "hardware"},
    {"experiments"},
    {"report"},
    {"cli", "__main__"},
)
LAYER_OF = {part: layer for layer, parts in enumerate(FLOW) for part in parts}

# Everything written by hand; what a run writes (results/) is not.
TEXT_FOLDERS = ("src", "tests", "benchmarks", "docs", "examples")
TEXT_SUFFIXES = {".py", ".md", ".rst", ".txt", ".toml", ".cff", ".yml", ".yaml", ".ipynb", ".html"}

# The backslashes and groups keep each pattern from matching its own line in this file.
REGISTRY_HOSTS = re.compile(
    r"pypi\.(?:org|python)|python(?:hosted)\.org|download\.(?:pytorch)|(?:ana)conda\.(?:org|com)"
    r"|(?:npm)js\.(?:org|com)|index[-_]url|find[-_]links",
    re.IGNORECASE,
)
MACHINE_PATHS = re.compile(
    r"(?<![\w.$}])/(?:work|home|root|tmp|opt|mnt|Users)/|file:(?://)|[A-Z]:\\{1,2}(?:Users)|\.\./(?:shared)"
)


def part_of(module: str) -> str:
    """Name the part of the package that a dotted module belongs to; the package itself is "__init__"."""
    below = module.split(".")[1:]
    if ".".join(below[:2]) in LAYER_OF:
        return ".".join(below[:2])
    return below[0] if below else "__init__"


def module_of(path: Path, source: Path = SOURCE) -> str:
    """Turn a file below `source` into its dotted name."""
    names = path.relative_to(source).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def nodes_that_run(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a syntax tree, leaving out what only a type checker reads."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for branch in child.orelse:
                yield from nodes_that_run(branch)
        else:
            yield from nodes_that_run(child)


def imported_modules(tree: ast.AST, package: str) -> Iterator[str]:
    """List the package's own modules that a file imports, wherever in the file it does so.

    Imports inside functions count, since they are the usual way around a forbidden direction. ``package`` is
    what a relative import starts from.
    """
    for node in nodes_that_run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "thresher")
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *filter(None, [base])])
            if base == "thresher":
                # `from thresher import gates` names a module, `from thresher import Network` the package.
                yield from (f"thresher.{a.name}" if a.name in LAYER_OF else base for a in node.names)
            elif base.startswith("thresher."):
                yield base


def violations(path: Path, source: Path = SOURCE) -> list[str]:
    """List the imports of one file that go against the flow, as sentences."""
    module = module_of(path, source)
    importer = part_of(module)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = []
    for imported in imported_modules(ast.parse(path.read_text(encoding="utf-8")), package):
        target = part_of(imported)
        if target == "__init__":
            # The package gathers the public names of nearly every layer: only its last layers may lean on it.
            allowed = LAYER_OF[importer] >= LAYER_OF["experiments"]
        else:
            allowed = LAYER_OF[target] <= LAYER_OF[importer]
        if not allowed:
            found.append(f"{module} imports {imported}, which comes later in the flow of data")
    return found


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """Run a few lines in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def text_files() -> list[Path]:
    """List the project's files that people read, those at the top level and those in the folders of text."""
    inside = [path for folder in TEXT_FOLDERS for path in (ROOT / folder).rglob("*")]
    chosen = [path for path in [*ROOT.iterdir(), *inside] if path.suffix in TEXT_SUFFIXES and path.is_file()]
    return [*chosen, ROOT / "Makefile"]


def test_every_part_has_a_place_in_the_flow() -> None:
    entries = [path for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    parts = {path.stem for path in entries} - {"__init__"}
    assert parts
    assert sorted(parts - LAYER_OF.keys()) == [], "add each of these to FLOW, where its imports allow it"


def test_imports_follow_the_flow_of_data() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"]
    placed = [path for path in files if part_of(module_of(path)) in LAYER_OF]
    assert [sentence for path in placed for sentence in violations(path)] == []


@pytest.mark.parametrize(
    ("file", "line", "allowed"),
    [
        ("solvers/loop.py", "from thresher.objective.gated import GatedOperator", True),
        ("solvers/loop.py", "from thresher import errors, objective", True),
        ("solvers/loop.py", "from .iht import iht", True),
        ("solvers/loop.py", "from ..linear.budget import keep_largest", True),
        ("solvers/__init__.py", "from .loop import run", True),
        ("cli/demo.py", "from thresher import Network", True),
        ("report/graph.py", "from thresher.report.style import styled", True),
        ("network/network.py", "def plot():\n    from thresher.report.graph import graph", True),
        ("network/network.py", "def plot():\n    from thresher.report.figures import draw", False),
        ("report/graph.py", "from thresher.report.figures import draw", False),
        ("network/files.py", "if TYPE_CHECKING:\n    from thresher.network import Network", True),
        (
            "network/files.py",
            "if TYPE_CHECKING:\n    pass\nelse:\n    from thresher.network import Network",
            False,
        ),
        ("solvers/loop.py", "from thresher import Network", False),
        ("solvers/loop.py", "from thresher import network", False),
        ("solvers/loop.py", "import thresher.estimators.mlp", False),
        ("solvers/loop.py", "from ..network import Network", False),
        ("solvers/__init__.py", "from ..network import Network", False),
        ("objective/gates.py", "from ..solvers import loop", False),
        ("objective/gates.py", "def draw():\n    from thresher.solvers import loop", False),
        ("errors.py", "from thresher.linear.budget import keep_largest", False),
    ],
)
def test_the_flow_is_enforced(tmp_path: Path, file: str, line: str, allowed: bool) -> None:
    path = tmp_path / "thresher" / file
    path.parent.mkdir(parents=True)
    path.write_text(line, encoding="utf-8")
    assert (violations(path, source=tmp_path) == []) == allowed


def test_importing_prints_nothing_and_loads_nothing_heavy() -> None:
    heavy = {"torch", "sklearn", "matplotlib"}
    done = run_python(f"import sys, thresher\nsys.exit(bool(sys.modules.keys() & {heavy}))")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_leaves_global_state_alone() -> None:
    # scikit-learn's own import draws from Python's `random` (it loads rich, whose styles do), so it comes
    # before the comparison.
    done = run_python(
        "import random, numpy, torch, sklearn.model_selection\n"
        "def state():\n"
        "    drawn = random.getstate(), str(numpy.random.get_state()), torch.get_rng_state().tolist()\n"
        "    settings = torch.get_default_dtype(), torch.get_num_threads(), torch.get_default_device()\n"
        "    return drawn, settings, torch.is_grad_enabled()\n"
        "before = state()\n"
        "import thresher\n"
        # Public names may be loaded only when asked for.
        "names = [getattr(thresher, name) for name in getattr(thresher, '__all__', ())]\n"
        "assert state() == before\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_network_module_loads_without_torch_and_its_company() -> None:
    absent = ("torch", "sklearn", "pandas", "matplotlib", "joblib", "typer", "rich")
    done = run_python(
        f"import sys\nsys.modules.update(dict.fromkeys({absent}))\nimport thresher.network.network"
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("pattern", [REGISTRY_HOSTS, MACHINE_PATHS], ids=["registry hosts", "machine paths"])
def test_no_file_names(pattern: re.Pattern[str]) -> None:
    named = []
    for path in text_files():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if found := pattern.search(line):
                named.append(f"{path.relative_to(ROOT)}:{number}: {found.group()}")
    assert named == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRY_HOSTS, "https://" + "pypi" + ".org/simple"),
        (REGISTRY_HOSTS, "--extra-index" + "-url"),
        (REGISTRY_HOSTS, "files.python" + "hosted.org"),
        (REGISTRY_HOSTS, "download" + ".pytorch.org/whl"),
        (MACHINE_PATHS, "see /" + "home/someone/thresher"),
        (MACHINE_PATHS, '"/' + 'tmp/model.thresher"'),
        (MACHINE_PATHS, "C:" + "\\Users\\someone"),
        (MACHINE_PATHS, ".." + "/shared/data"),
    ],
)
def test_the_patterns_find_what_they_forbid(pattern: re.Pattern[str], line: str) -> None:
    assert pattern.search(line)
