"""`thresher stability`: how sure the structure of a saved model is, and which others do as well."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thresher._version import __version__
from thresher.cli.rows import model_rows
from thresher.cli.screen import print_json, visible
from thresher.cli.writable import check_folder
from thresher.errors import writing
from thresher.network import Network
from thresher.progress import Display, bar

if TYPE_CHECKING:
    from thresher.stability import Pool, Stability


@dataclass(frozen=True)
class StabilityChoices:
    """What was chosen on the command line; `budget` is None for that of the model, `pool` for none."""

    model: Path
    data: Path
    target: str | None
    budget: int | None
    pairs: int
    threshold: float
    coverage: float
    resamples: int
    pool: int | None
    seed: int


class Work(Display):
    """Show how many fits are done, of whichever kind is under way."""

    def __init__(self, shown: bool) -> None:
        super().__init__(shown)
        self._tasks: dict[str, Any] = {}

    def _drawing(self) -> Any:
        from rich.progress import MofNCompleteColumn, TimeRemainingColumn

        return bar(MofNCompleteColumn(), TimeRemainingColumn())

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say how far some work is."""
        if self._drawn is not None:
            if what not in self._tasks:
                self._tasks[what] = self._drawn.add_task(what, total=total)
            self._drawn.update(self._tasks[what], completed=done)
        elif self._due(10.0):
            typer.echo(f"{what}: {done} of {total} done", err=True)


def run_stability(choices: StabilityChoices, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Fit a model's kind of network to halves of its rows, and print what recurs.

    Parameters
    ----------
    choices : StabilityChoices
    out : path, optional
        Folder for the results as JSON and their figure.
    as_json, quiet : bool
        As on the command line.
    """
    if out is not None:
        check_folder(out)
    network = Network.load(choices.model)
    with Work(shown=not quiet) as work:
        found, others = stability_of(network, choices, work)
    files = [] if out is None else _written(found, others, out)
    if as_json:
        document = {"version": __version__, "model": str(choices.model), "data": str(choices.data)}
        pool = None if others is None else others.plain()
        print_json({**document, **found.plain(), "pool": pool, "files": [str(file) for file in files]})
    elif not quiet:
        typer.echo(visible(str(found)))
        if others is not None:
            typer.echo(visible(f"\n{others}"))
        for file in files:
            typer.echo(f"wrote {file}", err=True)


def stability_of(network: Network, choices: StabilityChoices, work: Work) -> tuple[Stability, Pool | None]:
    """Measure what was asked for."""
    from thresher.stability import pool, stability

    rows = model_rows(network, choices.data, choices.target, needed=True)
    estimator = estimator_of(network, choices.budget, choices.seed)
    found = stability(
        estimator,
        rows.X,
        rows.y,
        pairs=choices.pairs,
        threshold=choices.threshold,
        coverage=choices.coverage,
        resamples=choices.resamples,
        random_state=choices.seed,
        each=work,
    )
    if choices.pool is None:
        return found, None
    return found, pool(estimator, rows.X, rows.y, choices.pool, random_state=choices.seed, each=work)


def estimator_of(network: Network, budget: int | None, seed: int) -> Any:
    """Give an estimator that fits networks of this kind, and holds this one."""
    from thresher.estimators import SparseMLPClassifier, SparseMLPRegressor

    loss = {"log": "poisson", "identity": "auto" if network.classes is None else "squared"}
    kind: Any = SparseMLPRegressor if network.classes is None else SparseMLPClassifier
    model = kind(
        network.nonzeros if budget is None else budget,
        network.hidden or 1,
        loss=loss.get(network.link, "auto"),
        random_state=seed,
    )
    model.network_ = network
    return model


def _written(found: Stability, others: Pool | None, out: Path) -> list[Path]:
    from thresher.atomic import write_whole
    from thresher.report.figures import save
    from thresher.report.stability import plot_stability

    path = out / "stability.json"
    document = {**found.plain(), "pool": None if others is None else others.plain()}
    with writing(path, "Use another --out."):
        write_whole(path, f"{json.dumps(document, indent=2, allow_nan=False)}\n".encode())
    return [path, *save(plot_stability(found), out, "stability")]
