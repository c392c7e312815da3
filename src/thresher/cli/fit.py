"""`thresher fit`: from a table to a model file, with its score beside those of its peers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thresher._version import __version__
from thresher.cli.columns import columns_document, print_columns
from thresher.cli.live import LiveTable
from thresher.cli.model import annotated, reads_from_disk
from thresher.cli.outcome import INTERRUPTED, typed_command
from thresher.cli.scores import Scores, peers_of, print_scores, scores_of, with_calibration
from thresher.cli.screen import print_json, print_table
from thresher.cli.settings import followable, settings_of
from thresher.cli.writable import check_file, check_not_read
from thresher.errors import InterruptedFitWarning, ParameterError
from thresher.progress import duration, readable_loss

if TYPE_CHECKING:
    from thresher.data.prepared import Prepared
    from thresher.objective.ranks import Alone

# Lines of the live table.
LINES = 10


@dataclass(frozen=True)
class FitChoices:
    """What was chosen on the command line; `budget` is None where it is to be chosen."""

    data: str
    target: str
    budget: int | None
    hidden: tuple[int, ...]
    out: Path
    test: str | None
    test_share: float
    task: str
    missing: str
    ignore: tuple[str, ...]
    text: tuple[str, ...]
    solver: str
    alpha: float | None
    seed: int
    compare: bool
    checkpoint: Path | None
    checkpoint_every: str | int
    on_disk: bool
    distributed: bool = False
    encoding: str | None = None
    decimal: str | None = None
    readings: Mapping[str, str] = field(default_factory=dict)
    class_weight: str | None = None
    max_iter: int | None = None
    loss: str = "auto"
    max_inputs: int | None = None
    max_fan_in: int | None = None
    max_cost: float | None = None
    feature_costs: Mapping[str, str] = field(default_factory=dict)
    monotone: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What came out: the model, the seconds it took, and what it and its peers score on the test rows."""

    model: Any
    seconds: float
    scores: Scores


def run_fit(choices: FitChoices, as_json: bool, quiet: bool) -> None:
    """Fit a network to a table, write it, and print how it does.

    Parameters
    ----------
    choices : FitChoices
    as_json, quiet : bool
        As on the command line.
    """
    if not choices.distributed:
        _run(choices, None, as_json, quiet)
        return
    from thresher.objective.ranks import meeting

    if choices.budget is None:
        raise ParameterError(
            "--budget auto cannot be combined with --distributed, whose ranks fit one network together. Give "
            "a number."
        )
    with meeting("env://") as ranks:
        _run(choices, ranks, as_json, quiet)


def _run(choices: FitChoices, ranks: Alone | None, as_json: bool, quiet: bool) -> None:
    first = ranks is None or ranks.number == 0
    ready = _prepared(choices) if ranks is None else ranks.together(lambda: _prepared(choices, first))
    # The first rank alone writes and prints.
    as_json, quiet = as_json and first, quiet or not first
    if not quiet:
        _announce(ready)
    own = ready if ranks is None else _dealt(ready, ranks)
    model, seconds = (_fitted_path if choices.budget is None else _fitted_once)(choices, own, not quiet)
    if not first:
        return
    missing = getattr(model, "missing_", None)
    fitted = _kept(choices, ready, model, seconds, shown=not quiet)
    if as_json:
        print_json(_document(choices, ready, fitted))
    elif not quiet:
        _print(choices, ready, fitted)
    if missing is not None:
        typer.echo(f"Interrupted: {missing} The command was\n  {typed_command()}", err=True)
        raise typer.Exit(INTERRUPTED)


def _prepared(choices: FitChoices, writes: bool = True) -> Prepared:
    if writes:
        check_file(choices.out)
        check_not_read(choices.out, choices.data, choices.test)
    return _ready_on_disk(choices) if reads_from_disk(choices.data, choices.on_disk) else _ready(choices)


def _ready(choices: FitChoices) -> Prepared:
    from thresher.data.prepared import prepare
    from thresher.data.tables import open_table

    return prepare(
        open_table(choices.data, choices.encoding),
        choices.target,
        task=choices.task,
        missing=choices.missing,
        ignore=choices.ignore,
        text=choices.text,
        readings=choices.readings,
        decimal=choices.decimal,
        test=None if choices.test is None else open_table(choices.test, choices.encoding),
        test_share=choices.test_share,
        seed=choices.seed,
    )


def _ready_on_disk(choices: FitChoices) -> Prepared:
    """Open rows that stay on disk; what would have to be held to be done is refused."""
    from thresher.data import open_rows
    from thresher.data.prepared import prepare_on_disk

    asked = {
        "--missing": choices.missing != "error",
        "--ignore": choices.ignore,
        "--text": choices.text,
        "--as": choices.readings,
        "--decimal": choices.decimal,
        "--encoding": choices.encoding,
    }
    refused = [option for option, given in asked.items() if given]
    if refused:
        raise ParameterError(
            f"{' and '.join(refused)} came, but rows on disk are read as they are. Leave it out, or write "
            "the rows as they are to be read."
        )
    rows = open_rows(choices.data, choices.target)
    columns = rows.columns
    return prepare_on_disk(
        rows,
        choices.target,
        task=choices.task,
        test=None if choices.test is None else open_rows(choices.test, choices.target, columns=columns),
        test_share=choices.test_share,
        seed=choices.seed,
    )


def _dealt(ready: Prepared, ranks: Alone) -> Prepared:
    """Give each rank its share of the rows, one after the other."""
    import numpy as np

    from thresher.estimators.inputs import part_of

    first, last = (len(ready.y) * number // ranks.count for number in (ranks.number, ranks.number + 1))
    X, rows = part_of(ready.X, np.arange(first, last))
    return replace(ready, X=X, y=ready.y[rows])


def _announce(ready: Prepared) -> None:
    other = "regression" if ready.task == "classification" else "classification"
    tested = 0 if ready.y_test is None else len(ready.y_test)
    override = f" (--task {other} overrides)" if ready.y.dtype.kind in "if" else ""
    print_columns(ready)
    inputs = len(ready.encoding.features)
    typer.echo(f"{ready.task.capitalize()}: {ready.why}{override}.", err=True)
    typer.echo(
        f"{len(ready.y):,} rows to train on, {tested:,} to test on, {inputs:,} input{'s' * (inputs != 1)}"
        + (f"; {ready.dropped:,} rows left out, for something was missing." if ready.dropped else "."),
        err=True,
    )


def _kept(choices: FitChoices, ready: Prepared, model: Any, seconds: float, shown: bool) -> Fitted:
    from thresher.data.aside import record

    share = choices.test_share if choices.test is None else 0.0
    details = {
        **model.network_.details,
        **ready.details(),
        "rows": record(ready.X, ready.y, share, choices.seed),
    }
    network = annotated(model.network_, ready.encoding.features, details)
    scores = scores_of(network, ready)
    # Before the peers, which may take longer than the fit.
    with_calibration(network, ready).save(choices.out)
    interrupted = getattr(model, "missing_", None) is not None
    if choices.checkpoint is not None and not interrupted:
        choices.checkpoint.unlink(missing_ok=True)
    # The peers would read all rows into memory.
    held = not reads_from_disk(choices.data, choices.on_disk)
    if choices.compare and ready.y_test is not None and held and not interrupted:
        scores = scores.with_peers(peers_of(ready, choices.seed, shown))
    return Fitted(model, seconds, scores)


def _fitted_once(choices: FitChoices, ready: Prepared, shown: bool) -> tuple[Any, float]:
    from thresher.estimators import SparseMLPClassifier, SparseMLPRegressor

    records: list[tuple[str, ...]] = []
    kind: Any = SparseMLPClassifier if ready.task == "classification" else SparseMLPRegressor
    with LiveTable("fitting", ("passes", "nonzeros", "loss", "seconds"), shown) as table:

        def show(record: dict[str, Any]) -> None:
            cells = (f"{record['passes']:.0f}", f"{record['nonzeros']:,}", readable_loss(record["loss"]))
            records[:] = [*records[1 - LINES :], (*cells, f"{record['seconds']:.1f}")]
            table.update(records, f"{cells[0]} passes, {cells[1]} nonzeros, loss {cells[2]}")

        model = kind(choices.budget, callback=show, **settings_of(choices, ready))
        return _trained(model, ready)


def _fitted_path(choices: FitChoices, ready: Prepared, shown: bool) -> tuple[Any, float]:
    from thresher.estimators.cv import SparseMLPClassifierCV, SparseMLPRegressorCV

    scores: dict[int, list[float]] = {}
    kind = SparseMLPClassifierCV if ready.task == "classification" else SparseMLPRegressorCV
    with LiveTable("choosing the budget", ("budget", "folds", "mean score"), shown) as table:

        def show(record: dict[str, Any]) -> None:
            budget, fold = record["budget"], record["fold"]
            if fold is not None:
                scores.setdefault(budget, []).append(record["score"])
            rows = [
                (f"{one:,}", f"{len(found)} of {record['folds']}", f"{sum(found) / len(found):.4f}")
                for one, found in sorted(scores.items())
            ]
            where = "all rows" if fold is None else f"fold {fold + 1} of {record['folds']}"
            left = record["seconds_left"]
            table.title = f"choosing the budget: {duration(left)} left"
            table.update(rows, f"budget {budget:,}, {where}, {duration(left)} left")

        model = kind(callback=show, **settings_of(choices, ready))
        return _trained(model, ready)


def _trained(model: Any, ready: Prepared) -> tuple[Any, float]:
    """Fit a model, and give the seconds it took; Ctrl-C ends the command, not only the fit."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        # Whether labels are many for the rows is said with the scores.
        warnings.filterwarnings("ignore", message="The number of unique classes")
        try:
            model.fit(ready.X, ready.y)
        except InterruptedFitWarning:
            # A path keeps the best network so far, and says what is missing.
            if getattr(model, "missing_", None) is None:
                raise KeyboardInterrupt from None
    return model, round(time.perf_counter() - began, 3)


def _measure(ready: Prepared) -> str:
    return "accuracy" if ready.task == "classification" else "R2"


def _print(choices: FitChoices, ready: Prepared, fitted: Fitted) -> None:
    model = fitted.model
    budget = model.budget_ if choices.budget is None else choices.budget
    if choices.budget is None:
        _print_path(model, _measure(ready))
    used = int(model.network_.support().sum())
    note = f"{used:,} of {len(ready.encoding.features):,} inputs are used. {followable(model.status_)}"
    name = f"Thresher, budget {budget:,}"
    print_scores(name, model.nonzeros_, fitted.seconds, ready, fitted.scores, note)
    typer.echo(f"wrote {choices.out}")


def _print_path(path: Any, measure: str) -> None:
    from thresher.experiments import Table

    rows = tuple(
        (int(budget), float(mean), float(error), "chosen" if budget == path.budget_ else "")
        for budget, mean, error in zip(path.budgets_, path.mean_scores_, path.standard_errors_, strict=True)
        if not isnan(mean)
    )
    columns = ("budget", f"mean {measure}", "standard error", "")
    note = "The smallest budget within one standard error of the best."
    print_table(Table(f"Cross-validated on {path.scores_.shape[1]} folds", columns, rows, note))


def _document(choices: FitChoices, ready: Prepared, fitted: Fitted) -> dict[str, Any]:
    model = fitted.model
    features = ready.encoding.features
    document = {
        "version": __version__,
        "data": choices.data,
        "target": ready.target,
        "task": ready.task,
        "why": ready.why,
        "rows": {
            "train": len(ready.y),
            "test": 0 if ready.y_test is None else len(ready.y_test),
            "dropped": ready.dropped,
        },
        "columns": columns_document(ready),
        "inputs": len(features),
        "inputs_used": [features[place] for place in model.get_support(indices=True)],
        "budget": choices.budget if choices.budget is not None else model.budget_,
        "nonzeros": model.nonzeros_,
        "measure": _measure(ready),
        **fitted.scores.document(),
        "seconds": fitted.seconds,
        "status": model.status_.name,
        "seed": choices.seed,
        "model": str(choices.out),
    }
    if choices.budget is None:
        document["path"] = {
            "budgets": model.budgets_.tolist(),
            # What Ctrl-C kept from being scored is null.
            "scores": [[None if isnan(one) else one for one in row] for row in model.scores_.tolist()],
            "missing": model.missing_,
            "best_budget": model.best_budget_,
        }
    return document
