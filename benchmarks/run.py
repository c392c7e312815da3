"""Run the benchmarks and print one table: what was measured, the ratio, the bar, and whether it is met.

    python benchmarks/run.py                 all of them but the long ones
    python benchmarks/run.py gemm memory     those named
    python benchmarks/run.py tables          a long one: hours, of which every finished fit is kept
    python benchmarks/run.py --quick --json  extrapolate slow peers; one JSON document

The long ones are commands of their own too, with choices and tables: `python benchmarks/tables.py --help`.
A missed bar is a result, not a failure: the exit code is 0 unless a benchmark crashed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from measuring import Measurement, Options

BENCHMARKS = ("gemm", "literal", "memory", "export", "separation", "data_sets", "noisy", "start_up")
# Only where they are named: hours of fits to real tables and known laws.
LONG = (
    "tables",
    "classes",
    "laws",
    "stability",
    "large_tables",
    "budgets",
    "news20",
    "billion",
    "flat",
    "disk",
    "ranks",
    "cost",
    "intervals",
    "probabilities",
    "path_time",
    "requirements",
)
COLUMNS = ("what", "measured", "bar", "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; a benchmark that crashes does not keep the others from running."""
    chosen, options, as_json = parse(arguments)
    found: dict[str, list[Measurement]] = {}
    crashed: dict[str, str] = {}
    for name in chosen:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            found[name] = importlib.import_module(name).measure(options)
        except Exception as error:
            traceback.print_exc()
            crashed[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(document(found, crashed, options), indent=2) if as_json else table(found, crashed))
    return 1 if crashed else 0


def parse(arguments: Sequence[str] | None) -> tuple[list[str], Options, bool]:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Measure speed, memory and accuracy against peers and limits.",
        epilog="Example: python benchmarks/run.py gemm --threads 1",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which to run: {', '.join(BENCHMARKS)}, all of these by default; or {', '.join(LONG)}",
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of every matrix product (default 2)")
    parser.add_argument("--repeats", type=int, default=5, help="timings behind each median (default 5)")
    parser.add_argument("--quick", action="store_true", help="time slow peers on a few steps and extrapolate")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    given = parser.parse_args(arguments)
    known = (*BENCHMARKS, *LONG)
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no benchmark is called {unknown[0]!r}. Use any of {', '.join(known)}.")
    if given.threads < 1 or given.repeats < 1:
        parser.error("--threads and --repeats must be whole numbers of 1 or more.")
    options = Options(threads=given.threads, repeats=given.repeats, quick=given.quick)
    return list(given.names or BENCHMARKS), options, given.json


def table(found: dict[str, list[Measurement]], crashed: dict[str, str]) -> str:
    """Write everything as one table of text."""
    lines = [COLUMNS]
    lines += [cells(measurement) for rows in found.values() for measurement in rows]
    lines += [(f"{name}: {why}", "", "", "CRASHED") for name, why in crashed.items()]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        f"{what:<{widths[0]}}  {value:>{widths[1]}}  {bar:>{widths[2]}}  {verdict}".rstrip()
        for what, value, bar, verdict in [lines[0], rule, *lines[1:]]
    )


def cells(measurement: Measurement) -> tuple[str, str, str, str]:
    """Write one measurement as the cells of a line."""
    # A count is a whole number, and shows as one.
    digits = 0 if isinstance(measurement.value, int) else 1 if measurement.value >= 10 else 2
    unit = measurement.unit if measurement.unit == "x" else f" {measurement.unit}"
    if measurement.bar is None:
        return measurement.what, f"{measurement.value:.{digits}f}{unit}", "", ""
    bound = ">=" if measurement.at_least else "<="
    verdict = "pass" if measurement.passed else "FAIL"
    return (
        measurement.what,
        f"{measurement.value:.{digits}f}{unit}",
        f"{bound} {measurement.bar:g}{unit}",
        verdict,
    )


def document(
    found: dict[str, list[Measurement]], crashed: dict[str, str], options: Options
) -> dict[str, Any]:
    """Gather everything as one JSON document."""
    rows = [
        {
            "benchmark": name,
            "what": row.what,
            "measured": row.value,
            "unit": row.unit,
            "bar": row.bar,
            "bound": "at least" if row.at_least else "at most",
            "passed": row.passed,
            "detail": row.detail,
        }
        for name, rows in found.items()
        for row in rows
    ]
    return {
        "threads": options.threads,
        "repeats": options.repeats,
        "quick": options.quick,
        "measurements": rows,
        "crashed": crashed,
    }


if __name__ == "__main__":
    sys.exit(main())
