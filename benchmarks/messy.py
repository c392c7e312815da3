"""Messy tables: 25 CSV files with the damage that people's tables have, each fitted without an option.

Real tables are written clean, and again with one kind of damage each, then with several at once. `thresher
fit` reads both, with the name of the target and no other option on how to read; the bar is that every file is
fitted, and that its score differs from the clean table's by 0.01 at most. Tables come from scikit-learn, and
from THRESHER_DATA where it names a folder with ``uci`` and ``tables``. Cells without a value are no part of
it: what becomes of these is the user's to say (``--missing``).

    python benchmarks/messy.py
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from comparing import markdown
from measuring import Measurement, Options
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from typer.testing import CliRunner

from thresher.cli.app import app

# The largest difference of scores, accuracy or R2.
BAR = 0.01

# Rows of a table that are used.
ROWS = 1500


@dataclass(frozen=True)
class Written:
    """A table on its way to a file: cells, and how the file is written."""

    frame: pd.DataFrame
    separator: str = ","
    encoding: str = "utf-8"
    header: tuple[str, ...] | None = None
    packed: bool = False
    spaced: bool = False

    def save(self, path: Path) -> None:
        """Write the file."""
        frame = self.frame if self.header is None else self.frame.set_axis(list(self.header), axis=1)
        text = frame.to_csv(sep=self.separator, index=False)
        if self.spaced:
            lines = text.splitlines()
            apart = [line.replace(self.separator, f"{self.separator} ") for line in lines[1:]]
            text = "\n".join([lines[0], "   ", *apart, ""])
        content = text.encode(self.encoding)
        path.write_bytes(gzip.compress(content) if self.packed else content)


Damage = Callable[[Written], Written]


@dataclass(frozen=True)
class Case:
    """One file: a table and what is done to it, one after the other.

    `loses` does to the clean table what a way of writing loses, and leaves plain numbers: fitted too, it
    tells what is lost by reading from what is lost by writing.
    """

    table: str
    damage: str
    steps: tuple[Damage, ...] = field(default=())
    loses: tuple[Damage, ...] = field(default=())


def cells(name: str | int, write: Callable[[Any], Any]) -> Damage:
    """Write the cells of one column in another way."""

    def done(to: Written) -> Written:
        column = to.frame.columns[name] if isinstance(name, int) else name
        return replace(to, frame=to.frame.assign(**{column: to.frame[column].map(write)}))

    return done


def numbers(write: Callable[[float], str]) -> Damage:
    """Write all numbers that have decimals in another way."""

    def done(to: Written) -> Written:
        floats = [name for name in to.frame.columns if to.frame[name].dtype.kind == "f"]
        return replace(to, frame=to.frame.assign(**{name: to.frame[name].map(write) for name in floats}))

    return done


def added(place: int, name: str, make: Callable[[int], Any]) -> Damage:
    """Add a column, made from the number of the row."""

    def done(to: Written) -> Written:
        frame = to.frame.copy()
        frame.insert(place, name, [make(row) for row in range(len(frame))])
        return replace(to, frame=frame)

    return done


def file(**how: Any) -> Damage:
    """Write the file in another way."""
    return lambda to: replace(to, **how)


def as_date(name: str, form: str) -> Damage:
    """Write a column of days as dates."""
    start = pd.Timestamp("2019-11-23")
    return cells(name, lambda days: (start + pd.Timedelta(days=float(days))).strftime(form))


def as_moment(name: str, form: str) -> Damage:
    """Write a column of any numbers as points in time, its range a thousand days of whole seconds."""

    def done(to: Written) -> Written:
        values = to.frame[name]
        seconds = ((values - values.min()) / (values.max() - values.min()) * 86_400_000).round()
        moments = pd.Timestamp("2019-11-23") + pd.to_timedelta(seconds, unit="s")
        return replace(to, frame=to.frame.assign(**{name: moments.dt.strftime(form)}))

    return done


def whole_seconds(name: str) -> Damage:
    """Round a column of numbers as :func:`as_moment` does."""

    def done(to: Written) -> Written:
        values = to.frame[name]
        size = (values.max() - values.min()) / 86_400_000
        rounded = values.min() + ((values - values.min()) / size).round() * size
        return replace(to, frame=to.frame.assign(**{name: rounded}))

    return done


def as_yes(name: str, yes: str, no: str) -> Damage:
    """Write a column of 0 and 1 as words."""
    return cells(name, lambda value: yes if value else no)


def named_alike(first: int, second: int) -> Damage:
    """Give a column the name of another."""

    def done(to: Written) -> Written:
        names = list(to.frame.columns)
        names[second] = names[first]
        return replace(to, header=tuple(names))

    return done


def comma(value: float) -> str:
    """Write a number with a decimal comma."""
    return repr(value).replace(".", ",")


def german(value: float) -> str:
    """Write a number with points between thousands and a decimal comma."""
    return f"{value:,.6f}".translate(str.maketrans(",.", ".,"))


def french(value: float) -> str:
    """Write a number with narrow spaces between thousands and a decimal comma."""
    return f"{value:_.6f}".replace(".", ",").replace("_", "\u202f")


VISITORS = ("Ann", "Bo", "Cy", "Di")


def words(row: int) -> str:
    """Write a note that no other row has."""
    return f"seen by {VISITORS[row % len(VISITORS)]} on visit {row}, nothing to add"


def code(row: int) -> str:
    """Write an identifier that no other row has."""
    return f"K{row * 7919 % 99991:05d}"


ID, CODE, NOTE = added(0, "id", lambda row: 10_001 + row), added(1, "case", code), added(2, "note", words)
EMPTY, CONSTANT = added(1, "remarks", lambda row: ""), added(2, "unit", lambda row: "metric")

GERMAN = (
    cells("y", lambda value: f"{german(value * 1000)} \u20ac"),
    *(numbers(german), ID, NOTE, EMPTY, file(separator=";", encoding="cp1252")),
)
WIDE = (
    *(as_yes("Age_geq_60", "y", "n"), as_yes("OvalShape", "TRUE", "FALSE")),
    *(CODE, CONSTANT, named_alike(4, 5), file(separator="\t", encoding="utf-16")),
)
AMERICAN = (
    *(as_date("x7", "%m/%d/%Y"), cells("x0", lambda value: f"{value * 100:,.2f}")),
    *(cells("y", lambda value: f"${value * 1000:,.2f}"), ID, NOTE, file(packed=True)),
)
FRENCH = (
    *(cells("x1", lambda value: value - 1), as_yes("x1", "oui", "non"), as_moment("x0", "%d/%m/%Y %H:%M")),
    *(numbers(french), CODE, EMPTY, file(separator=";", spaced=True)),
)

UMLAUTS = (*(f"Gr\u00f6\u00dfe {place}" for place in range(10)), "y")

CASES = (
    Case("iris", "semicolons and decimal commas", (numbers(comma), file(separator=";"))),
    Case("wine", "tabs in a .csv", (file(separator="\t"),)),
    Case("breast cancer", "UTF-16", (file(encoding="utf-16"),)),
    Case("diabetes", "Latin-1", (file(encoding="latin-1", header=UMLAUTS),)),
    Case("boston", "a byte-order mark", (file(encoding="utf-8-sig"),)),
    Case("concrete", "gzip without its ending", (file(packed=True),)),
    Case("energy", "thousands by commas", (numbers(lambda value: f"{value * 1000:,.4f}"),)),
    Case("boston", "a currency, target", (cells("y", lambda value: f"EUR {value * 1000:,.2f}"),)),
    Case("diabetes", "dollars, target", (cells("y", lambda value: f"${value * 1000:,.0f}.00"),)),
    Case("spambase", "percent signs", (numbers(lambda value: f"{value!r}%"),)),
    Case("mammo", "yes and no", (as_yes("RoundShape", "Yes", "No"), as_yes("Age_geq_45", "yes", "no"))),
    Case("concrete", "ISO dates", (as_date("x7", "%Y-%m-%d"),)),
    Case("wine", "dates, day first", (as_date("x12", "%d/%m/%Y"),)),
    Case("wine", "dates, month first", (as_date("x12", "%m/%d/%y"),)),
    Case("power", "dates with times", (as_moment("x0", "%d.%m.%Y %H:%M:%S"),), (whole_seconds("x0"),)),
    Case("kin8nm", "times in words", (as_moment("x2", "%d %b %Y %I:%M:%S %p"),), (whole_seconds("x2"),)),
    Case("iris", "identifiers", (ID, CODE)),
    Case("breast cancer", "free text", (NOTE,)),
    Case("diabetes", "names that come twice", (named_alike(2, 5),)),
    Case("wine", "columns without a value and with one", (EMPTY, CONSTANT)),
    Case("concrete", "spaces, and lines of them", (file(spaced=True),)),
    Case("boston", "mixed: German spreadsheet", GERMAN),
    Case("mammo", "mixed: UTF-16, tabs, yes and no, codes", WIDE),
    Case("concrete", "mixed: US export, packed", AMERICAN),
    Case("diabetes", "mixed: French export", FRENCH),
)


def measure(options: Options) -> list[Measurement]:
    """Fit the clean tables and the messy ones; `quick` takes the first eight."""
    cases = [case for case in CASES if table(case.table) is not None][: 8 if options.quick else None]
    with tempfile.TemporaryDirectory() as folder:
        clean = {
            name: score(Written(table(name)), Path(folder)) for name in dict.fromkeys(c.table for c in cases)
        }
        found = [measured(case, clean[case.table], Path(folder)) for case in cases]
    fitted = sum(one.value <= BAR for one in found)
    return [
        *found,
        Measurement("messy tables fitted as well as clean ones", fitted, len(cases), "files", at_least=True),
    ]


def measured(case: Case, clean: float | None, folder: Path) -> Measurement:
    """Fit one messy table and compare its score."""
    written = Written(table(case.table))
    for step in case.steps:
        written = step(written)
    messy = score(written, folder)
    gap = float("inf") if messy is None or clean is None else abs(messy - clean)
    plain = Written(table(case.table))
    for step in case.loses:
        plain = step(plain)
    numbers = score(plain, folder) if case.loses else clean
    detail = {"clean": clean, "numbers": numbers, "messy": messy}
    return Measurement(f"{case.table}, {case.damage}", gap, BAR, "of score", detail=detail)


def score(written: Written, folder: Path) -> float | None:
    """Fit a table on the command line, and give its score on the rows that were set aside."""
    path = folder / "table.csv"
    written.save(path)
    args = ["fit", str(path), "--target", str(written.frame.columns[-1]), "--out", str(folder / "m.thresher")]
    result = CliRunner().invoke(app, [*args, "--no-compare", "--json"], prog_name="thresher")
    if result.exit_code != 0:
        print(result.stderr)
        return None
    return float(json.loads(result.stdout)["score"])


def table(name: str) -> pd.DataFrame | None:
    """Give a clean table, its target last; None where its file is not at hand."""
    loaders: dict[str, Callable[..., Any]] = {
        "iris": load_iris,
        "wine": load_wine,
        "breast cancer": load_breast_cancer,
        "diabetes": load_diabetes,
    }
    if name in loaders:
        data = loaders[name](**({"scaled": False} if name == "diabetes" else {}))
        y = data.target_names[data.target] if hasattr(data, "target_names") else data.target
        return _frame(data.data, y)
    folder = Path(os.environ.get("THRESHER_DATA", "."))
    if (folder / "uci" / f"{name}.npz").exists():
        with np.load(folder / "uci" / f"{name}.npz") as held:
            return _frame(held["X"], held["y"])
    if (folder / "tables" / f"{name}.csv.gz").exists():
        frame = pd.read_csv(folder / "tables" / f"{name}.csv.gz")
        return _shuffled(frame[[*frame.columns[1:], frame.columns[0]]])
    return None


def _frame(X: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(X.shape[1])])
    # Whole numbers are written as such, as people do.
    whole = [name for name in frame.columns if (frame[name] % 1 == 0).all()]
    return _shuffled(frame.astype(dict.fromkeys(whole, int)).assign(y=y))


def _shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1.0, random_state=0).head(ROWS).reset_index(drop=True)


def main() -> None:
    """Measure, and write a table for people."""
    *found, total = measure(Options(threads=1))
    rows = [
        (
            *each.what.split(", ", 1),
            *(_cell(each.detail[which]) for which in ("clean", "numbers", "messy")),
            f"{each.value:.4f}",
        )
        for each in found
    ]
    print(markdown(("table", "damage", "clean", "same values as numbers", "messy", "difference"), rows))
    print(f"\n{total.value} of {len(found)} fitted, with a score that differs by {BAR} at most")


def _cell(score: float | None) -> str:
    return "not fitted" if score is None else f"{score:.4f}"


if __name__ == "__main__":
    main()
