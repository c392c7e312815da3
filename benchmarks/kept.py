"""What the long benchmarks share: cells that are run once and kept, and the choices of the command line.

A benchmark names its cells (a configuration and a seed each), how one is fitted, and what they show
together. Every finished cell is one line of ``results/benchmarks/NAME.jsonl``; a second run goes on from
there. Several runs may write to one file at a time, as long as they choose different cells.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from comparing import Results, markdown
from fits import warm_up
from measuring import Measurement, Options
from run import cells as cells_of_measurement
from threadpoolctl import threadpool_limits

import thresher
from thresher.atomic import write_whole
from thresher.errors import DataFileError
from thresher.experiments.record import DONE, Cell, CellFile, Outcome
from thresher.experiments.workers import Task, one_by_one

FOLDER = Path(__file__).parents[1] / "results" / "benchmarks"
SOME_FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True)
class LongBenchmark:
    """A benchmark of many fits.

    Attributes
    ----------
    name : str
        That of its module and of its file.
    options : callable
        Adds the choices it knows to a parser.
    cells : callable
        From the choices to the cells.
    fingerprint : callable
        From a cell to a short text that changes with its data.
    fit : callable
        From a cell to a dict of plain JSON values: scores and what they cost.
    tables : callable
        From results and choices to Markdown.
    bars : callable
        From results and choices to measurements with their bars.
    shown : mapping
        Choices that restrict what is fitted but not what is shown, each with all it can be.
    quick : tuple of str
        The arguments that choose a few cells.
    """

    name: str
    options: Callable[[argparse.ArgumentParser], None]
    cells: Callable[[argparse.Namespace], list[Cell]]
    fingerprint: Callable[[Cell], str]
    fit: Callable[[Cell], dict[str, Any]]
    tables: Callable[[Results, argparse.Namespace], list[str]]
    bars: Callable[[Results, argparse.Namespace], list[Measurement]]
    shown: Mapping[str, tuple[str, ...]]
    quick: tuple[str, ...]

    def main(self, description: str | None, arguments: Sequence[str] | None = None) -> int:
        """Run what was asked for and is not done yet, and print the tables."""
        given = self.parser(description).parse_args(arguments)
        file = CellFile(given.out / f"{self.name}.jsonl")
        try:
            cells = self.cells(given)
            if not given.table:
                self.run(file, cells, given)
            print(self.report(file, cells, given))
        except DataFileError as error:
            print(error, file=sys.stderr)
            return BAD_INPUT
        except KeyboardInterrupt:
            print("\nInterrupted. What is done is kept; the same command goes on.", file=sys.stderr)
            return INTERRUPTED
        return SOME_FAILED if any(not done(outcome) for outcome in chosen(file, cells)) else 0

    def measurements(self, options: Options) -> list[Measurement]:
        """Run what is not done yet, for the table of all benchmarks.

        `quick` takes a few cells. The threads are those of the command itself, so that both keep the same.
        """
        given = self.parser().parse_args(self.quick if options.quick else ())
        file, cells = CellFile(given.out / f"{self.name}.jsonl"), self.cells(given)
        self.run(file, cells, given)
        failed = [outcome for outcome in chosen(file, cells) if not done(outcome)]
        if failed:
            raise RuntimeError(f"{len(failed)} of {len(cells)} fits failed; the first: {line(failed[0])}")
        return self.bars(self.results(file, given), given)

    def parser(self, description: str | None = None) -> argparse.ArgumentParser:
        """Make the parser of the command line: its own choices, then those that all have."""
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        self.options(parser)
        parser.add_argument("--fresh", action="store_true", help="forget the chosen fits, no others, first")
        parser.add_argument("--table", action="store_true", help="print what is kept; fit nothing")
        parser.add_argument("--out", type=Path, default=FOLDER, help="folder of results")
        parser.add_argument("--threads", type=positive, default=1, help="threads of every fit (default 1)")
        return parser

    def run(self, file: CellFile, cells: Sequence[Cell], given: argparse.Namespace) -> None:
        """Fit the cells that have no result for their data yet, and append each one to the file."""
        data = {identity(cell): self.fingerprint(cell) for cell in cells}
        file.prepare()
        if given.fresh:
            forget(file, set(data))
        known = {(identity(outcome.cell), outcome.data) for outcome in chosen(file, cells) if done(outcome)}
        pending = [cell for cell in cells if (identity(cell), data[identity(cell)]) not in known]
        source = source_print()
        torch.set_num_threads(given.threads)
        with threadpool_limits(given.threads):
            if pending:
                warm_up()
            for number, cell in enumerate(pending, start=1):
                (outcome,) = Task(((cell, data[identity(cell)]),), partial(one_by_one, self.fit_finite)).run()
                file.append(replace(outcome, environment={**outcome.environment, "source": source}))
                print(f"{number}/{len(pending)} {line(outcome)}", file=sys.stderr, flush=True)

    def fit_finite(self, cell: Cell) -> dict[str, Any]:
        """Fit and score a cell; a score that is no number is a failure."""
        result = self.fit(cell)
        for name, value in result.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} is {value}")
        return result

    def report(self, file: CellFile, cells: Sequence[Cell], given: argparse.Namespace) -> str:
        """Write the tables, how the bars are met, and what is missing."""
        results = self.results(file, given)
        met = [cells_of_measurement(row) for row in self.bars(results, given)]
        parts = [*self.tables(results, given), markdown(("bar", "measured", "asked", "met"), met)]
        written = [part for part in parts if part] or ["Nothing of ours to compare yet."]
        return "\n\n".join(written + remarks(chosen(file, cells), len(cells)))

    def results(self, file: CellFile, given: argparse.Namespace) -> Results:
        """Read what is kept of the chosen data, of all methods."""
        cells = self.cells(argparse.Namespace(**{**vars(given), **self.shown}))
        return Results(filter(done, chosen(file, cells)))


def identity(cell: Cell) -> str:
    """Tell cells apart by configuration and seed alone."""
    return cell.key(data="", version="")


def done(outcome: Outcome) -> bool:
    """Say whether a cell has a result."""
    return outcome.status == DONE


def chosen(file: CellFile, cells: Sequence[Cell]) -> list[Outcome]:
    """Read the latest outcomes of some cells, in their order."""
    latest = {identity(outcome.cell): outcome for outcome in file.read().values()}
    return [latest[identity(cell)] for cell in cells if identity(cell) in latest]


def forget(file: CellFile, identities: set[str]) -> None:
    """Take the lines of some cells out of a file."""
    kept = [outcome for outcome in file.read().values() if identity(outcome.cell) not in identities]
    lines = [json.dumps(outcome.plain()) + "\n" for outcome in kept]
    write_whole(file.path, "".join(lines).encode())


def source_print() -> str:
    """Make a short text of the library's source, which tells results of one state of it from another's."""
    files = sorted(Path(thresher.__path__[0]).rglob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def line(outcome: Outcome) -> str:
    """Write one outcome for people who wait."""
    where = " ".join(str(value) for value in outcome.cell.configuration.values() if value is not None)
    found = outcome.error or " ".join(
        f"{name}={value:.4g}" for name, value in outcome.result.items() if isinstance(value, int | float)
    )
    return f"{where} {outcome.cell.seed}: {found} ({outcome.seconds:.1f} s)"


def remarks(outcomes: Sequence[Outcome], asked: int) -> list[str]:
    """Say what keeps a table from being whole: fits that failed, were not run, or ran on several sources."""
    said = []
    failed = [outcome for outcome in outcomes if not done(outcome)]
    if failed:
        said.append(f"{len(failed)} of {asked} fits failed; the first: {line(failed[0])}")
    if len(outcomes) < asked:
        said.append(f"{asked - len(outcomes)} of {asked} fits are not run yet.")
    ours = [o for o in outcomes if o.cell.configuration.get("method", "ours") == "ours"]
    sources = {outcome.environment.get("source") for outcome in ours}
    if len(sources) > 1:
        said.append(f"Fits of ours come from {len(sources)} states of the source; --fresh makes them one.")
    return said


def positive(text: str) -> int:
    """Read a whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more.")
    return int(text)


def numbers(least: int = 0, most: int | None = None) -> Callable[[str], tuple[int, ...]]:
    """Make a reader of numbers and ranges with commas between, such as 0-4,7."""
    allowed = f"whole numbers from {least}" + (" on" if most is None else f" to {most}")

    def read(text: str) -> tuple[int, ...]:
        found: list[int] = []
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            if not first.isdecimal() or (dash and not last.isdecimal()):
                raise argparse.ArgumentTypeError(f"{part!r} is no number or range. Use {allowed}.")
            found += range(int(first), int(last or first) + 1)
        if not found or min(found) < least or (most is not None and max(found) > most):
            raise argparse.ArgumentTypeError(f"{text!r} is out of range. Use {allowed}.")
        return tuple(dict.fromkeys(found))

    return read


def words(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Make a reader of known names with commas between."""
    names = tuple(known)

    def read(text: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
        unknown = [name for name in found if name not in names]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not known. Use any of {', '.join(names)}.")
        return found

    return read
