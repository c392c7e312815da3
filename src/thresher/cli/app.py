"""The program and its commands. What a command needs is loaded when it runs, so that help is quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from thresher._version import __version__
from thresher.cli.device_commands import device
from thresher.cli.network_commands import certify, export, inspect, stability
from thresher.cli.result_commands import demo, report, reproduce
from thresher.cli.table_commands import fit, predict

# Every command with the examples that end its help, in the order in which help lists them.
EXAMPLES: dict[Callable[..., None], tuple[str, ...]] = {
    demo: ("demo --out thresher-demo --seed 1",),
    fit: (
        "fit houses.csv --target price --budget 50",
        "fit flowers.csv --target species --budget auto --out flowers.thresher",
    ),
    predict: (
        "predict model.thresher new.csv --out predicted.csv",
        "predict model.thresher - < new.csv > predicted.csv",
    ),
    reproduce: (
        "reproduce all --quick",
        "reproduce figure-1 --parts left --methods paper,auto --jobs 2",
    ),
    report: ("report model.thresher data.csv", "report results/figure-1 --out page.html"),
    inspect: (
        "inspect digits.thresher --plot digits.png",
        "inspect houses.thresher houses.csv --write words",
    ),
    stability: (
        "stability model.thresher data.csv",
        "stability model.thresher data.csv --pool 10 --out sure",
    ),
    export: (
        "export digits.thresher --to c --name digits --out digits.c",
        "export digits.thresher --to json --out -",
    ),
    device: (
        "device digits.thresher --target atmega328p --rows test.npy --calibrate train.npy --weights int4",
        "device patients.thresher --target ice40 --rows patients.csv --bits 6 --inputs uint8",
    ),
    certify: (
        "certify model.thresher data.csv",
        "certify model.thresher data.csv --target y --held-out fresh.csv --out certificate",
    ),
}

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Help drawn in panels takes twice as long to appear: it loads a Markdown parser and a highlighter.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thresher {__version__}")
        raise typer.Exit()


@app.callback(epilog="Example: thresher demo")
def thresher(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Train ReLU networks that hold at most a given number of nonzero weights."""


for command, examples in EXAMPLES.items():
    app.command(epilog="\n\n".join(f"Example: thresher {example}" for example in examples))(command)
