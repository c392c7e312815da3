"""What an experiment is: the declaration of its cells, how one is measured, and what they show together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from thresher.errors import ParameterError
from thresher.experiments.record import Cell, Outcome

# The choices that only some experiments know.
PARTICULAR = ("rows", "k", "m", "s", "methods", "parts")


@dataclass(frozen=True)
class Choices:
    """What to run of an experiment; None is what the experiment itself declares.

    Attributes
    ----------
    seeds : tuple of int, optional
    quick : bool
        Whether to take a few cells and fewer rows.
    rows : int, optional
        Rows of data.
    k, m, s : tuple of int, optional
        Steps between updates of the gates, widths, budgets.
    methods, parts : tuple of str, optional
        Solvers and baselines, and the parts of a figure.
    """

    seeds: tuple[int, ...] | None = None
    quick: bool = False
    rows: int | None = None
    k: tuple[int, ...] | None = None
    m: tuple[int, ...] | None = None
    s: tuple[int, ...] | None = None
    methods: tuple[str, ...] | None = None
    parts: tuple[str, ...] | None = None

    def given(self) -> dict[str, Any]:
        """Give the choices that were made, as what JSON can hold."""
        return {name: value for name, value in asdict(self).items() if value not in (None, False)}


@dataclass(frozen=True)
class Table:
    """Rows of plain values under column names, with a sentence on how to read them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Summary:
    """What an experiment shows: tables to read, and numbers by name."""

    tables: tuple[Table, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Give the summary as what JSON can hold."""
        return {"tables": [asdict(table) for table in self.tables], "numbers": dict(self.numbers)}


@dataclass(frozen=True)
class Cost:
    """What a cell is expected to need: seconds of one core, and bytes of memory."""

    seconds: float
    memory: float


@dataclass(frozen=True)
class Experiment:
    """The declaration of a sweep: its cells, how one is measured, and what they show together.

    Attributes
    ----------
    name, title : str
    cells : callable
        From choices to cells.
    fingerprint : callable
        From a cell to a short text that changes with its data.
    measure : callable
        From a cell to a dict of plain JSON values. One that reads files (see `check`) takes the data folder,
        or None, as `folder`.
    summarise : callable
        From the outcomes that are done to a summary.
    varies : tuple of str
        The parts of a configuration that tell cells apart, for people.
    takes : tuple of str
        The choices, beyond seeds and quick, that this experiment knows.
    cost : callable
        From a cell to what it is expected to need.
    check : callable, optional
        For experiments that read files. Given cells and the data folder, it raises before anything is run if
        what they need is not there.
    methods : tuple of str
        The methods there are, for an experiment that does not know all of them.
    alone : bool
        Whether cells run one after the other, each with all the cores, because their time is the result.
    path : callable, optional
        From a cell to what it shares with those that one run measures together; None is a cell by itself.
    along : callable, optional
        From the cells of a path to pairs of a cell and its measurement, in the order in which they come. It
        takes the data folder as `measure` does.
    """

    name: str
    title: str
    cells: Callable[[Choices], list[Cell]]
    fingerprint: Callable[[Cell], str]
    measure: Callable[..., dict[str, Any]]
    summarise: Callable[[Sequence[Outcome]], Summary]
    varies: tuple[str, ...]
    takes: tuple[str, ...] = ("rows",)
    cost: Callable[[Cell], Cost] = lambda cell: Cost(1.0, 0.0)
    check: Callable[..., None] | None = None
    methods: tuple[str, ...] = ()
    alone: bool = False
    path: Callable[[Cell], Hashable] | None = None
    along: Callable[..., Iterator[tuple[Cell, dict[str, Any]]]] | None = None

    def runs(self, cells: Iterable[Cell]) -> list[list[Cell]]:
        """Group cells: those of a path together, every other one by itself."""
        found: dict[Hashable, list[Cell]] = {}
        for number, cell in enumerate(cells):
            shared = None if self.path is None else self.path(cell)
            found.setdefault(number if shared is None else ("path", shared), []).append(cell)
        return list(found.values())

    def chosen(self, choices: Choices) -> list[Cell]:
        """Give the cells that are to be run."""
        for name in PARTICULAR:
            if getattr(choices, name) is not None and name not in self.takes:
                known = ", ".join(f"--{option}" for option in ("seeds", "quick", *self.takes))
                raise ParameterError(f"--{name} means nothing to {self.name}. It knows {known}.")
        return self.cells(choices)

    def understood(self, choices: Choices) -> Choices:
        """Leave out the choices that mean nothing here, for a command that runs every experiment.

        Of the methods, those stay that are known here; if there are none, all are.
        """
        changes: dict[str, Any] = {name: None for name in PARTICULAR if name not in self.takes}
        if self.methods and choices.methods is not None and choices.methods != ("all",):
            kept = tuple(method for method in choices.methods if method in self.methods)
            changes["methods"] = kept or None
        return replace(choices, **changes)

    def left_out(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Say what outcomes lack of all that is declared: values of what varies, rows, seeds."""
        declared = self.cells(Choices())
        found = []
        for name in dict.fromkeys(("n", *self.varies)):
            all_of_them = {_hashable(cell.configuration.get(name)) for cell in declared}
            shown = {_hashable(outcome.cell.configuration.get(name)) for outcome in outcomes}
            if shown >= all_of_them:
                continue
            if name == "n":
                fewer, all_rows = (_listed(rows) for rows in (shown, all_of_them))
                found.append(f"{fewer} of {all_rows} rows")
            else:
                found.append(f"{len(shown & all_of_them)} of {len(all_of_them)} values of {name}")
        seeds = {outcome.cell.seed for outcome in outcomes}
        wanted = {cell.seed for cell in declared}
        return [*found, f"{len(seeds)} of {len(wanted)} seeds"] if len(seeds) < len(wanted) else found

    def label(self, cell: Cell) -> str:
        """Name a cell in a few words."""
        parts = [f"{name}={cell[name]}" for name in self.varies if name in cell.configuration]
        return ", ".join([*parts, f"seed={cell.seed}"])


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _listed(rows: set[Any]) -> str:
    return ", ".join(f"{n:,}" for n in sorted(rows, reverse=True))


def known(option: str, given: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """Check names that were asked for against those there are; "all" is every one.

    Examples
    --------
    >>> known("--methods", ("auto", "gmp"), ("paper", "auto", "gmp"))
    ('auto', 'gmp')
    >>> known("--methods", ("all",), ("paper", "auto"))
    ('paper', 'auto')
    """
    if tuple(given) == ("all",):
        return tuple(allowed)
    for name in given:
        if name not in allowed:
            close = get_close_matches(name, allowed, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise ParameterError(f"{option} {name}, but there are {', '.join(allowed)}, and all.{hint}")
    return tuple(given)
