"""The commands and their options. What a command needs is loaded when it runs, so that help is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thresher._version import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Help drawn in panels takes twice as long to appear: it loads a Markdown parser and a highlighter.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[Path, typer.Option("--out", help="Folder for what is written.", metavar="DIR")]
Json = Annotated[
    bool, typer.Option("--json", help="Write one JSON document to standard output, and nothing else there.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and print no tables.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when something goes wrong.")]


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


@app.command(epilog="Example: thresher demo --out thresher-demo --seed 1")
def demo(
    out: Out = Path("thresher-demo"),
    seed: Annotated[str, typer.Option(help="Seed of everything random.", metavar="N")] = "0",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Plant a sparse network, recover it, and fit two small datasets at a few budgets.

    Takes less than a minute, needs no data, and writes its figures to a folder.

    Exit code 1 says that the planted network was not found.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Nothing is kept of an interrupted demonstration. Run it again with:"):
        from thresher.cli.demo import run_demo
        from thresher.cli.values import whole_number

        run_demo(out, whole_number("--seed", seed, least=0), as_json, quiet)


@app.command(
    epilog="Example: thresher fit houses.csv --target price --budget 50\n\n"
    "Example: thresher fit flowers.csv --target species --budget auto --out flowers.thresher"
)
def fit(
    data: Annotated[
        str,
        typer.Argument(
            help="A table: .csv, .tsv, .parquet, .npz or .svmlight; - reads standard input.", metavar="DATA"
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
        str, typer.Option(help="Missing values: error, drop (rows) or mean (fill in).", metavar="HOW")
    ] = "error",
    ignore: Annotated[
        str | None, typer.Option(help="Columns to leave out, between commas.", metavar="LIST")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Columns to take as text, between commas.", metavar="LIST")
    ] = None,
    solver: Annotated[str, typer.Option(help="auto or paper.", metavar="NAME")] = "auto",
    alpha: Annotated[
        str | None, typer.Option(help="Penalty on large weights, such as 0.3.", metavar="NUMBER")
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Fit a dense network and a linear model as well.")
    ] = True,
    seed: Annotated[str, typer.Option(help="Seed of everything random.", metavar="N")] = "0",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit a sparse network to a table, and write it as a model file.

    Text columns become one input for each of their values. Whether the target holds classes or numbers is
    told by what it holds, unless --task says so.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "A model is written once its fit has ended. Run it again with:"):
        from thresher.cli.fit import FitChoices, run_fit
        from thresher.cli.values import names, number, one_of, share, whole_number, widths

        choices = FitChoices(
            data=data,
            target=target,
            budget=None if budget == "auto" else whole_number("--budget", budget, least=1),
            hidden=widths("--hidden", hidden),
            out=out,
            test=test,
            test_share=share("--test-share", test_share),
            task=one_of("--task", task, ("auto", "regression", "classification")),
            missing=one_of("--missing", missing, ("error", "drop", "mean")),
            ignore=names(ignore) or (),
            text=names(text) or (),
            solver=solver,
            alpha=None if alpha is None else number("--alpha", alpha),
            seed=whole_number("--seed", seed, least=0),
            compare=compare,
        )
        run_fit(choices, as_json, quiet)


@app.command(
    epilog="Example: thresher predict model.thresher new.csv --out predicted.csv\n\n"
    "Example: thresher predict model.thresher - < new.csv > predicted.csv"
)
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

        run_predict(
            model, data, out, column=column, probabilities=probabilities, as_json=as_json, quiet=quiet
        )


@app.command(
    epilog="Example: thresher reproduce table-1 --out results --seeds 0,1,2\n\n"
    "Example: thresher reproduce recovery --quick --solvers auto --m 1,10,100"
)
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(help="table-1, table-2, ablations or recovery.", metavar="EXPERIMENT"),
    ],
    out: Out = Path("results"),
    seeds: Annotated[
        str | None, typer.Option(help="Seeds, such as 0,1,2; each runs every chosen cell.", metavar="LIST")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few cells, one seed and fewer rows.")] = False,
    rows: Annotated[str | None, typer.Option(help="Rows of data instead of 50,000.", metavar="N")] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k", help="Tables: steps between updates of the gates, such as 1,2,5.", metavar="LIST"
        ),
    ] = None,
    m: Annotated[
        str | None, typer.Option("--m", help="Recovery: neurons, such as 1,10,100.", metavar="LIST")
    ] = None,
    s: Annotated[
        str | None, typer.Option("--s", help="Recovery: nonzero weights, such as 1,10,100.", metavar="LIST")
    ] = None,
    solvers: Annotated[
        str | None, typer.Option(help="Recovery: paper, auto, or both as paper,auto.", metavar="LIST")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the cells and which are done; run nothing.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Reproduce a table or figure of the paper, or an ablation.

    Every finished cell is kept in DIR/EXPERIMENT/cells.jsonl, and the same command goes on from there.

    Exit code 1 says that some cells failed; they are run again next time.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Finished cells are kept. Go on with:"):
        from thresher.cli.reproduce import run_reproduce
        from thresher.cli.values import names, whole_number, whole_numbers
        from thresher.experiments import Choices

        choices = Choices(
            seeds=whole_numbers("--seeds", seeds, least=0),
            quick=quick,
            rows=None if rows is None else whole_number("--rows", rows, least=1),
            k=whole_numbers("--k", k),
            m=whole_numbers("--m", m),
            s=whole_numbers("--s", s),
            solvers=names(solvers),
        )
        run_reproduce(experiment, choices, out, dry_run=dry_run, as_json=as_json, quiet=quiet, debug=debug)
