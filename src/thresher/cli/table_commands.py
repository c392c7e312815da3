"""`thresher fit` and `predict` with their options: from a table to a model, and to predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thresher.cli.options import Debug, Json, OnDisk, Quiet, Seed


def fit(
    data: Annotated[
        str,
        typer.Argument(
            help="A table: .csv, .tsv, .parquet, .npz or .svmlight; - reads standard input. A folder of "
            "shards or an .npy file stays on disk.",
            metavar="DATA",
        ),
    ],
    target: Annotated[str, typer.Option(help="The column to predict.", metavar="NAME")] = "y",
    budget: Annotated[
        str,
        typer.Option(help="The most nonzeros allowed, or auto to choose by cross-validation.", metavar="N"),
    ] = "100",
    hidden: Annotated[
        str, typer.Option(help="Neurons, or those of each layer, such as 50,20.", metavar="LIST")
    ] = "100",
    out: Annotated[Path, typer.Option(help="The model file to write.", metavar="FILE")] = Path(
        "model.thresher"
    ),
    test: Annotated[
        str | None, typer.Option(help="A table to test on, instead of setting rows aside.", metavar="FILE")
    ] = None,
    test_share: Annotated[
        str, typer.Option(help="Share of the rows to set aside for testing; 0 for none.", metavar="SHARE")
    ] = "0.2",
    task: Annotated[str, typer.Option(help="auto, regression or classification.", metavar="TASK")] = "auto",
    missing: Annotated[
        str,
        typer.Option(
            help="Missing values: error, drop (rows), mean (fill in) or indicator (an input says where).",
            metavar="HOW",
        ),
    ] = "error",
    ignore: Annotated[
        str | None, typer.Option(help="Columns to leave out, between commas.", metavar="LIST")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Columns to take as text, between commas.", metavar="LIST")
    ] = None,
    reading: Annotated[
        list[str] | None,
        typer.Option(
            "--as",
            help="Read a column as date, duration, number, text or ignore; once for each column. Dates also "
            "with parts (date+year, date+week, date+day) and a format (date:%d/%m/%Y), numbers with those "
            "that stand for missing values (number:-999).",
            metavar="NAME=KIND",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Letters of the file, such as latin-1; told by default.", metavar="NAME"),
    ] = None,
    decimal: Annotated[
        str | None, typer.Option(help="What decimals begin with, . or , ; told by default.", metavar="MARK")
    ] = None,
    solver: Annotated[str, typer.Option(help="auto or paper.", metavar="NAME")] = "auto",
    loss: Annotated[
        str,
        typer.Option(help="auto, squared, huber, poisson (numbers) or logistic (classes).", metavar="NAME"),
    ] = "auto",
    class_weight: Annotated[
        str | None,
        typer.Option(help="What rows of a class count: balanced, or such as yes=3,no=1.", metavar="WEIGHTS"),
    ] = None,
    max_iter: Annotated[
        str | None, typer.Option(help="The most passes over the rows; 200 by default.", metavar="N")
    ] = None,
    alpha: Annotated[
        str | None, typer.Option(help="Penalty on large weights, such as 0.3.", metavar="NUMBER")
    ] = None,
    max_inputs: Annotated[
        str | None,
        typer.Option(help="The most columns in use; a column of text counts as one.", metavar="N"),
    ] = None,
    max_fan_in: Annotated[
        str | None, typer.Option(help="The most inputs of any hidden neuron.", metavar="N")
    ] = None,
    feature_cost: Annotated[
        list[str] | None,
        typer.Option(help="What using a column costs; once for each column.", metavar="NAME=COST"),
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(help="The most that all columns in use may cost.", metavar="NUMBER")
    ] = None,
    monotone: Annotated[
        list[str] | None,
        typer.Option(
            help="The prediction, or the odds of the second class, never falls with a column (NAME=+1) or "
            "never rises (NAME=-1); once for each column.",
            metavar="NAME=SIGN",
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare/--no-compare", help="Fit a linear model, a dense network and boosted trees as well."
        ),
    ] = True,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="A file that keeps what was done; the same command goes on from it.", metavar="FILE"
        ),
    ] = None,
    checkpoint_every: Annotated[
        str, typer.Option(help="How often to write it: 30s, 5min, 1h, or a number of steps.", metavar="TIME")
    ] = "5min",
    on_disk: OnDisk = False,
    distributed: Annotated[
        bool, typer.Option("--distributed", help="Fit on all processes that torchrun starts, rows dealt out.")
    ] = False,
    seed: Seed = "0",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a sparse network to a table, and write it as a model file.

    How each column is read is told by what it holds and said before the fit: numbers (with decimal commas,
    currencies and percent signs as well), dates, yes and no, and text, which becomes one input for each of
    its values. Whether the target holds classes or numbers is told likewise, unless --task says so.
    """
    from thresher.cli.outcome import reported

    with reported(
        debug,
        "A model is written once its fit has ended. Run it again with:"
        if checkpoint is None
        else "Go on from the checkpoint with:",
    ):
        from thresher.cli.fit import FitChoices, run_fit
        from thresher.cli.values import (
            LARGEST_SEED,
            names,
            number,
            one_of,
            pairs,
            share,
            whole_number,
            widths,
        )

        choices = FitChoices(
            data=data,
            target=target,
            budget=None if budget == "auto" else whole_number("--budget", budget, least=1),
            hidden=widths("--hidden", hidden),
            out=out,
            test=test,
            test_share=share("--test-share", test_share),
            task=one_of("--task", task, ("auto", "regression", "classification")),
            missing=one_of("--missing", missing, ("error", "drop", "mean", "indicator")),
            ignore=names(ignore) or (),
            text=names(text) or (),
            solver=solver,
            alpha=None if alpha is None else number("--alpha", alpha),
            seed=whole_number("--seed", seed, least=0, most=LARGEST_SEED),
            compare=compare,
            checkpoint=checkpoint,
            checkpoint_every=int(checkpoint_every) if checkpoint_every.isdecimal() else checkpoint_every,
            on_disk=on_disk,
            distributed=distributed,
            encoding=encoding,
            decimal=decimal,
            readings=pairs("--as", reading or []),
            class_weight=class_weight,
            max_iter=None if max_iter is None else whole_number("--max-iter", max_iter, least=1),
            loss=loss,
            max_inputs=None if max_inputs is None else whole_number("--max-inputs", max_inputs, least=1),
            max_fan_in=None if max_fan_in is None else whole_number("--max-fan-in", max_fan_in, least=1),
            max_cost=None if max_cost is None else number("--max-cost", max_cost),
            feature_costs=pairs("--feature-cost", feature_cost or []),
            monotone=pairs("--monotone", monotone or []),
        )
        run_fit(choices, as_json, quiet)


def predict(
    model: Annotated[str, typer.Argument(help="A model file.", metavar="MODEL")],
    data: Annotated[
        str,
        typer.Argument(help="A table with the columns of training; - reads standard input.", metavar="DATA"),
    ],
    out: Annotated[
        str,
        typer.Option(
            help="The table to write, .csv, .tsv or .parquet; - is standard output.", metavar="FILE"
        ),
    ] = "-",
    column: Annotated[str, typer.Option(help="Name of the column to add.", metavar="NAME")] = "prediction",
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column for the probability of each class as well.")
    ] = False,
    interval: Annotated[
        str | None,
        typer.Option(
            help="Add between which numbers, or in which set of classes, targets lie that often, such as 90.",
            metavar="PERCENT",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Letters of the table, such as latin-1; told by default.", metavar="NAME"),
    ] = None,
    on_disk: OnDisk = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Add a column of predictions to a table.

    The model knows the columns it was fitted to and how to encode them. Where the table also holds the
    target, the score is told on standard error.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Nothing was written. Run it again with:"):
        from thresher.cli.predict import run_predict
        from thresher.cli.values import percent

        run_predict(
            model,
            data,
            out,
            column=column,
            probabilities=probabilities,
            coverage=None if interval is None else percent("--interval", interval),
            encoding=encoding,
            on_disk=on_disk,
            as_json=as_json,
            quiet=quiet,
        )
