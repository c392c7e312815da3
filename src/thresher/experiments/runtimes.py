"""The runtime examples of section 5: the paper's seconds on a GPU beside ours and the baselines' on a CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thresher.experiments import tasks
from thresher.experiments.catalogue import INPUTS, SEEDS
from thresher.experiments.claims import Claim, verdict
from thresher.experiments.estimate import planted_cost
from thresher.experiments.experiment import Choices, Experiment, Summary, Table, known
from thresher.experiments.fits import ROWS, median
from thresher.experiments.methods import METHODS, NAMES, PRUNING, batch_of, fit_by_method
from thresher.experiments.record import Cell, Outcome
from thresher.experiments.tasks import BINARY, DIGITS, PLANTED, SHAPES

NAME = "runtimes"
SECONDS = 50.0


@dataclass(frozen=True)
class Line:
    """One of the paper's examples, with what it reports: score and seconds of IHT and of IMP on an A6000."""

    name: str
    data: str
    m: int
    s: int
    passes: int
    iht: tuple[float, float]
    imp: tuple[float, float]
    batch_size: int | None = None
    outputs: int = 1

    @property
    def text(self) -> str:
        """Name the line for people."""
        return f"{self.name} ({self.m}, {self.s})"

    def shown(self, score: float) -> str:
        """Write a score with its unit."""
        return f"{score:.2f} dB" if self.data == PLANTED else f"{100 * score:.2f} %"


LINES = (
    Line("0 against 1", BINARY, 1, 1, 15, (0.9885, 1.2), (0.50, 27.78)),
    Line("0 against 1", BINARY, 10, 100, 15, (0.992, 1.66), (0.5015, 20.56)),
    Line("0 against 1", BINARY, 100, 1000, 15, (0.992, 8.4), (0.7766, 20.91)),
    Line("ten digits", DIGITS, 10, 1000, 50, (0.8873, 219.2), (0.7766, 68.98), batch_size=5_000, outputs=10),
    Line("planted, ten outputs", PLANTED, 10, 10, 15, (48.67, 3.02), (24.81, 28.46), outputs=10),
)
# In a quick run pruning sits out the lines on which it takes minutes.
QUICK_PRUNING = (LINES[0], LINES[1])


def _cells(choices: Choices) -> list[Cell]:
    methods = known("--methods", choices.methods or (METHODS[:5] if choices.quick else METHODS), METHODS)
    seeds = choices.seeds or (SEEDS[:1] if choices.quick else SEEDS)
    return [
        Cell(NAME, _configuration(line, method), seed)
        for seed in seeds
        for line in LINES
        for method in methods
        if not (choices.quick and method in PRUNING and line not in QUICK_PRUNING)
    ]


def _configuration(line: Line, method: str) -> dict[str, Any]:
    rows, inputs = (ROWS, INPUTS) if line.data == PLANTED else SHAPES[line.data]
    configuration = {
        "line": line.text,
        "data": line.data,
        "n": rows,
        "d": inputs,
        "outputs": line.outputs,
        "layers": 1,
        "hidden": line.m,
        "budget": line.s,
        "method": method,
        # The default solver stops by itself where a planted network is found.
        "passes": 200 if method == "auto" and line.data == PLANTED else line.passes,
        "batch_size": batch_of(method, line.batch_size, rows),
    }
    return configuration | ({"seconds": SECONDS} if method == "auto" else {})


def _measure(cell: Cell, folder: Path | None = None) -> dict[str, Any]:
    return {**fit_by_method(cell, tasks.load(cell, folder)), "cut": []}


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    rows: list[tuple[Any, ...]] = []
    claims: list[Claim] = []
    for line in LINES:
        of_line = [outcome for outcome in outcomes if outcome.cell["line"] == line.text]
        rows += [
            (line.text, "paper's IHT on an A6000", line.shown(line.iht[0]), line.iht[1], None),
            (line.text, "paper's IMP there", line.shown(line.imp[0]), line.imp[1], None),
        ]
        for method in METHODS:
            results = [outcome.result for outcome in of_line if outcome.cell["method"] == method]
            if results:
                score = median(result["score"] for result in results)
                seconds = median(result["fit_seconds"] for result in results)
                processor = median(result.get("processor_seconds", math.inf) for result in results)
                peak = round(median(result["peak_bytes"] for result in results) / 2**20, 1)
                rows.append((line.text, NAMES[method], line.shown(score), seconds, peak))
                if method in ("paper", "auto"):
                    claims.append(_claim(line, method, score, seconds, processor))
    cut = runtimes_left_out(outcomes)
    note = "accuracy on test images, or PSNR for planted; medians over seeds; one fit at a time, on all cores"
    table = Table(
        "Runtimes: (m, s), fit alone",
        ("line", "method", "score", "seconds", "peak MB"),
        tuple(rows),
        f"{note}; cut: {'; '.join(cut)}" if cut else note,
    )
    checked = Table(
        "Faster than the paper's GPU and no less accurate?",
        ("claim", "verdict", "what was measured"),
        tuple((claim.statement, claim.verdict, claim.evidence) for claim in claims),
    )
    tables = (table, checked) if claims else (table,)
    return Summary(tables, {"claims": [claim.plain() for claim in claims], "cut": cut})


def runtimes_left_out(outcomes: Sequence[Outcome]) -> list[str]:
    """Say what is missing of the seeds, and of the pairs of line and method."""
    seeds = len({outcome.cell.seed for outcome in outcomes})
    pairs = len({(outcome.cell["line"], outcome.cell["method"]) for outcome in outcomes})
    found = [f"{seeds} of {len(SEEDS)} seeds"] if seeds < len(SEEDS) else []
    every = len(LINES) * len(METHODS)
    return [*found, f"{pairs} of {every} pairs of line and method"] if pairs < every else found


def _claim(line: Line, method: str, score: float, seconds: float, processor: float) -> Claim:
    paper_score, paper_seconds = line.iht
    # The paper rounds accuracies to a hundredth of a percent.
    accurate = score >= paper_score - 5e-5
    # Where the processor took less, only other work on the machine made the fit as long.
    busy = accurate and processor < paper_seconds <= seconds
    evidence = (
        f"{seconds:.2f} s against {paper_seconds:g} s, {line.shown(score)} against {line.shown(paper_score)}"
    )
    if busy:
        evidence += f"; the machine was busy: the processor took {processor:.2f} s"
    return Claim(
        f"{line.text}: {NAMES[method]} is faster than the paper's A6000 and no less accurate",
        verdict(accurate and seconds < paper_seconds, busy),
        evidence,
    )


RUNTIMES = Experiment(
    NAME,
    "The paper's runtime examples (section 5)",
    _cells,
    tasks.print_of,
    _measure,
    _summarise,
    varies=("line", "method"),
    takes=("methods",),
    cost=lambda cell: planted_cost(cell, cell["method"], cell["passes"]),
    check=tasks.check,
    alone=True,
)
