"""`thresher fit`: from a table to a model file, with its score beside those of its peers."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thresher._version import __version__
from thresher.cli.live import LiveTable
from thresher.cli.model import annotated
from thresher.cli.screen import print_json, print_table
from thresher.cli.writable import check_file
from thresher.errors import InterruptedFitWarning

if TYPE_CHECKING:
    from thresher.data.prepared import Prepared
    from thresher.experiments.peers import Peer

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


@dataclass(frozen=True, eq=False)
class Fitted:
    """What came out: the model, its score on the test rows, and the peers' scores."""

    model: Any
    score: float | None
    seconds: float
    peers: tuple[Peer, ...]


def run_fit(choices: FitChoices, as_json: bool, quiet: bool) -> None:
    """Fit a network to a table, write it, and print how it does.

    Parameters
    ----------
    choices : FitChoices
    as_json, quiet : bool
        As on the command line.
    """
    from thresher.data.prepared import prepare
    from thresher.data.tables import read_table

    check_file(choices.out)
    ready = prepare(
        read_table(choices.data),
        choices.target,
        task=choices.task,
        missing=choices.missing,
        ignore=choices.ignore,
        text=choices.text,
        test=None if choices.test is None else read_table(choices.test),
        test_share=choices.test_share,
        seed=choices.seed,
    )
    if not quiet:
        _announce(ready)
    fitted = _fit(choices, ready, shown=not quiet)
    if as_json:
        print_json(_document(choices, ready, fitted))
    elif not quiet:
        _print(choices, ready, fitted)


def _announce(ready: Prepared) -> None:
    other = "regression" if ready.task == "classification" else "classification"
    tested = 0 if ready.y_test is None else len(ready.y_test)
    override = f" (--task {other} overrides)" if ready.y.dtype.kind in "if" else ""
    typer.echo(f"{ready.task.capitalize()}: {ready.why}{override}.", err=True)
    typer.echo(
        f"{len(ready.y):,} rows to train on, {tested:,} to test on, {len(ready.encoding.features):,} inputs"
        + (f"; {ready.dropped:,} rows left out, for something was missing." if ready.dropped else "."),
        err=True,
    )


def _fit(choices: FitChoices, ready: Prepared, shown: bool) -> Fitted:
    fit = _fitted_path if choices.budget is None else _fitted_once
    model, seconds = fit(choices, ready, shown)
    # Before the peers, which may take longer than the fit.
    annotated(model.network_, ready.encoding.features, ready.details()).save(choices.out)
    if choices.checkpoint is not None:
        choices.checkpoint.unlink(missing_ok=True)
    if ready.y_test is None:
        return Fitted(model, None, seconds, ())
    score = round(float(model.score(ready.X_test, ready.y_test)), 4)
    return Fitted(model, score, seconds, _peers(choices, ready, shown) if choices.compare else ())


def _fitted_once(choices: FitChoices, ready: Prepared, shown: bool) -> tuple[Any, float]:
    from thresher.estimators import SparseMLPClassifier, SparseMLPRegressor

    records: list[tuple[str, ...]] = []
    kind: Any = SparseMLPClassifier if ready.task == "classification" else SparseMLPRegressor
    with LiveTable("fitting", ("passes", "nonzeros", "loss", "seconds"), shown) as table:

        def show(record: dict[str, Any]) -> None:
            cells = (f"{record['passes']:.0f}", f"{record['nonzeros']:,}", f"{record['loss']:.4g}")
            records[:] = [*records[1 - LINES :], (*cells, f"{record['seconds']:.1f}")]
            table.update(records, f"{cells[0]} passes, {cells[1]} nonzeros, loss {cells[2]}")

        model = kind(
            choices.budget,
            _hidden(choices),
            solver=choices.solver,
            alpha=choices.alpha,
            random_state=choices.seed,
            callback=show,
            checkpoint=choices.checkpoint,
            checkpoint_every=choices.checkpoint_every,
        )
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
            table.update(rows, f"budget {budget:,}, {where}")

        model = kind(
            hidden=_hidden(choices),
            solver=choices.solver,
            alpha=choices.alpha,
            random_state=choices.seed,
            callback=show,
            checkpoint=choices.checkpoint,
            checkpoint_every=choices.checkpoint_every,
        )
        return _trained(model, ready)


def _hidden(choices: FitChoices) -> int | tuple[int, ...]:
    return choices.hidden[0] if len(choices.hidden) == 1 else choices.hidden


def _trained(model: Any, ready: Prepared) -> tuple[Any, float]:
    """Fit a model, and give the seconds it took; Ctrl-C ends the command, not only the fit."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedFitWarning)
        try:
            model.fit(ready.X, ready.y)
        except InterruptedFitWarning:
            raise KeyboardInterrupt from None
    return model, round(time.perf_counter() - began, 3)


def _peers(choices: FitChoices, ready: Prepared, shown: bool) -> tuple[Peer, ...]:
    from thresher.experiments.peers import fit_peer, peer_models

    assert ready.y_test is not None
    found: list[Peer] = []
    models = peer_models(ready.task == "classification", ready.encoding.sparse, choices.seed)
    with LiveTable("comparing", ("model", "score"), shown) as table:
        for name, model in models.items():
            table.update([*((peer.model, f"{peer.score:.4f}") for peer in found), (name, "...")], name)
            found.append(fit_peer(name, model, ready.X, ready.y, ready.X_test, ready.y_test))
    return tuple(found)


def _measure(ready: Prepared) -> str:
    return "accuracy" if ready.task == "classification" else "R2"


def _print(choices: FitChoices, ready: Prepared, fitted: Fitted) -> None:
    from thresher.experiments import Table

    model = fitted.model
    budget = model.budget_ if choices.budget is None else choices.budget
    if choices.budget is None:
        _print_path(model, _measure(ready))
    rows: list[tuple[Any, ...]] = [
        (f"Thresher, budget {budget:,}", model.nonzeros_, fitted.score, fitted.seconds)
    ]
    rows += [(peer.model, peer.numbers, peer.score, peer.seconds) for peer in fitted.peers]
    tested = "no rows set aside" if ready.y_test is None else f"{len(ready.y_test):,} rows it has not seen"
    columns = ("model", "nonzeros", _measure(ready), "seconds")
    used = int(model.network_.support().sum())
    note = f"{used:,} of {len(ready.encoding.features):,} inputs are used. {model.status_}"
    print_table(Table(f"{ready.target}: {_measure(ready)} on {tested}", columns, tuple(rows), note))
    typer.echo(f"wrote {choices.out}")


def _print_path(path: Any, measure: str) -> None:
    from thresher.experiments import Table

    rows = tuple(
        (int(budget), float(mean), float(error), "chosen" if budget == path.budget_ else "")
        for budget, mean, error in zip(path.budgets_, path.mean_scores_, path.standard_errors_, strict=True)
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
        "inputs": len(features),
        "inputs_used": [features[place] for place in model.get_support(indices=True)],
        "budget": choices.budget if choices.budget is not None else model.budget_,
        "nonzeros": model.nonzeros_,
        "measure": _measure(ready),
        "score": fitted.score,
        "seconds": fitted.seconds,
        "status": model.status_.name,
        "peers": [asdict(peer) for peer in fitted.peers],
        "seed": choices.seed,
        "model": str(choices.out),
    }
    if choices.budget is None:
        document["path"] = {
            "budgets": model.budgets_.tolist(),
            "scores": model.scores_.tolist(),
            "best_budget": model.best_budget_,
        }
    return document
