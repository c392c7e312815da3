"""`thresher demo`: show what the library does in less than a minute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from thresher._version import __version__
from thresher.cli.outcome import SOME_FAILED
from thresher.cli.screen import Progress, print_json, print_table
from thresher.cli.writable import check_folder

if TYPE_CHECKING:
    from thresher.experiments import Table
    from thresher.experiments.demo import Planted, Score, Weights

VERDICTS = {
    "exact": "The same network: every weight is found, the largest error is {error:.1e}.",
    "equivalent": "Another network that fits as well ({psnr:.0f} dB), with other weights.",
    "missed": "Not found: {psnr:.0f} dB, where {floor:.0f} dB are possible.",
}


def run_demo(out: Path, seed: int, as_json: bool, quiet: bool) -> None:
    """Run the demonstration, write its figures, and print what it shows.

    Parameters
    ----------
    out : path
        Where figures go.
    seed : int
    as_json, quiet : bool
        As on the command line.
    """
    from thresher.experiments.demo import MODELS, fit_diabetes, fit_digits, recover_planted
    from thresher.report.demo import planted_and_recovered, scores_against_nonzeros
    from thresher.report.figures import save

    began = time.perf_counter()
    check_folder(out)
    with Progress("demo", total=1 + MODELS + 2, shown=not quiet) as progress:
        progress.working_on("planting and recovering a network")
        planted = recover_planted(seed)
        progress.advance("planted network")
        progress.working_on("diabetes")
        diabetes = fit_diabetes(seed, lambda: progress.advance("diabetes"))
        progress.working_on("digits")
        digits = fit_digits(seed, lambda: progress.advance("digits"))
        progress.working_on("drawing")
        files = save(planted_and_recovered(planted.weights), out, "planted")
        progress.advance("figures")
        files += save(scores_against_nonzeros(diabetes, digits), out, "scores")
        progress.advance("figures")
    seconds = time.perf_counter() - began
    if as_json:
        print_json(_document(planted, diabetes, digits, files, seed, seconds))
    elif not quiet:
        _print(planted, diabetes, digits, files, seconds)
    if planted.verdict == "missed":
        raise typer.Exit(SOME_FAILED)


def _verdict(planted: Planted) -> str:
    error = planted.weights.largest_error
    return VERDICTS[planted.verdict].format(error=error, psnr=planted.psnr, floor=planted.floor)


def _print(
    planted: Planted,
    diabetes: Sequence[Score],
    digits: Sequence[Score],
    files: Sequence[Path],
    seconds: float,
) -> None:
    print_table(_weights_table(planted.weights))
    typer.echo(
        f"{_verdict(planted)} {planted.nonzeros} weights, {planted.psnr:.1f} dB, {planted.seconds:.1f} s.\n"
    )
    for title, measure, scores in _sections(diabetes, digits):
        _print_scores(title, measure, scores)
    typer.echo(f"Done in {seconds:.0f} s. Figures:")
    for path in files:
        typer.echo(f"  {path}")


def _weights_table(weights: Weights) -> Table:
    """Put every planted weight beside the recovered one; a neuron's number and sign stand at its first."""
    from thresher.experiments import Table

    rows: list[tuple[str, ...]] = []
    last = None
    for neuron, sign, feature, truth, guess in weights.rows():
        name = "bias" if feature == len(weights.planted) - 1 else f"x{feature}"
        head = ("", "") if neuron == last else (str(neuron + 1), "+" if sign > 0 else "-")
        rows.append((*head, name, _weight(truth), _weight(guess)))
        last = neuron
    columns = ("neuron", "sign", "input", "planted", "recovered")
    return Table("Planted and recovered weights", columns, tuple(rows))


def _sections(
    diabetes: Sequence[Score], digits: Sequence[Score]
) -> tuple[tuple[str, str, Sequence[Score]], ...]:
    return (
        ("Diabetes: R2 on held-out rows", "R2", diabetes),
        ("Digits: accuracy on held-out rows", "accuracy", digits),
    )


def _print_scores(title: str, measure: str, scores: Sequence[Score]) -> None:
    from thresher.experiments import Table

    rows = tuple((score.model, score.nonzeros, score.score, score.seconds) for score in scores)
    print_table(Table(title, ("model", "nonzeros", measure, "seconds"), rows))


def _weight(value: float) -> str:
    return f"{value:9.6f}" if value else "-"


def _document(
    planted: Planted,
    diabetes: Sequence[Score],
    digits: Sequence[Score],
    files: Sequence[Path],
    seed: int,
    seconds: float,
) -> dict[str, Any]:
    names = ("neuron", "sign", "input", "planted", "recovered")
    return {
        "version": __version__,
        "seed": seed,
        "planted": {
            "verdict": planted.verdict,
            "psnr": planted.psnr,
            "floor": planted.floor,
            "nonzeros": planted.nonzeros,
            "largest_error": planted.weights.largest_error,
            "seconds": planted.seconds,
            "weights": [dict(zip(names, row, strict=True)) for row in planted.weights.rows()],
        },
        "diabetes": [asdict(score) for score in diabetes],
        "digits": [asdict(score) for score in digits],
        "files": [str(path) for path in files],
        "seconds": round(seconds, 3),
    }
