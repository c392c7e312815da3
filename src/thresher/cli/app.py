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
    epilog="Example: thresher reproduce all --quick\n\n"
    "Example: thresher reproduce figure-1 --parts left --methods paper,auto --jobs 2"
)
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            help="figure-1 to figure-5, table-1, table-2, runtimes, ablations, recovery, phase-diagram, "
            "theorem, certificates, or all.",
            metavar="EXPERIMENT",
        ),
    ],
    out: Out = Path("results"),
    seeds: Annotated[
        str | None, typer.Option(help="Seeds, such as 0,1,2; each runs every chosen cell.", metavar="LIST")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few cells, one seed and fewer rows.")] = False,
    methods: Annotated[
        str | None,
        typer.Option(
            help="paper, auto, imp-paper, imp, gmp, rigl, one-shot, dense; some, or all.", metavar="LIST"
        ),
    ] = None,
    solvers: Annotated[str | None, typer.Option(help="The same as --methods.", metavar="LIST")] = None,
    parts: Annotated[
        str | None, typer.Option(help="Figures: left, right, or both as left,right.", metavar="LIST")
    ] = None,
    m: Annotated[str | None, typer.Option("--m", help="Neurons, such as 1,10,100.", metavar="LIST")] = None,
    s: Annotated[
        str | None, typer.Option("--s", help="Nonzero weights, such as 1,10,100.", metavar="LIST")
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k", help="Tables: steps between updates of the gates, such as 1,2,5.", metavar="LIST"
        ),
    ] = None,
    rows: Annotated[str | None, typer.Option(help="Rows of data instead of 50,000.", metavar="N")] = None,
    jobs: Annotated[
        str | None, typer.Option(help="Processes at a time, one for each core by default.", metavar="N")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Run on the Dask cluster of this scheduler instead.", metavar="ADDRESS"),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with MNIST and CIFAR-10, instead of THRESHER_DATA.", metavar="DIR"),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="List the cells, which are done, and what the rest takes; run nothing."
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Reproduce figures and tables of the paper, its runtime examples, or an ablation.

    Every finished cell is kept in DIR/EXPERIMENT/cells.jsonl, and the same command goes on from there.
    `all` runs everything, and writes the page DIR/report.html as well.

    Exit code 1 says that some cells failed; they are run again next time.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Finished cells are kept. Go on with:"):
        from thresher.cli.reproduce import How, run_reproduce
        from thresher.cli.values import names, one_of_two, whole_number, whole_numbers
        from thresher.experiments import Choices

        choices = Choices(
            seeds=whole_numbers("--seeds", seeds, least=0),
            quick=quick,
            rows=None if rows is None else whole_number("--rows", rows, least=1),
            k=whole_numbers("--k", k),
            m=whole_numbers("--m", m),
            s=whole_numbers("--s", s),
            methods=names(one_of_two("--methods", methods, "--solvers", solvers)),
            parts=names(parts),
        )
        processes = None if jobs is None else whole_number("--jobs", jobs, least=1)
        run_reproduce(experiment, choices, out, How(processes, dask, data, dry_run, as_json, quiet, debug))


@app.command(
    epilog="Example: thresher report results\n\nExample: thresher report results/figure-1 --out page.html"
)
def report(
    folder: Annotated[Path, typer.Argument(help="Results of one experiment, or of several.", metavar="DIR")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The page; DIR/report.html by default.", metavar="FILE")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make one HTML page of results: figures, cells, settings; it needs no network."""
    from thresher.cli.outcome import reported

    with reported(debug, "Make the page again with:"):
        from thresher.cli.report import run_report

        run_report(folder, out, as_json, quiet)


Model = Annotated[Path, typer.Argument(help="A model file, by custom ending in .thresher.", metavar="MODEL")]


@app.command(
    epilog="Example: thresher inspect digits.thresher --plot digits.png\n\n"
    "Example: thresher inspect diabetes.thresher --write latex"
)
def inspect(
    model: Model,
    write: Annotated[
        str | None,
        typer.Option(
            help="Print the network itself instead: formula, latex, sympy or python.", metavar="HOW"
        ),
    ] = None,
    digits: Annotated[str, typer.Option(help="Significant digits of a formula, 1 to 17.", metavar="N")] = "4",
    plot: Annotated[
        Path | None, typer.Option(help="Draw the graph to a .png, .svg or .pdf file.", metavar="FILE")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Tell what a network is made of, which inputs it uses and how much each matters."""
    from thresher.cli.outcome import reported

    with reported(debug, "Nothing was changed. Run it again with:"):
        from thresher.cli.inspect import run_inspect
        from thresher.cli.values import whole_number

        precision = whole_number("--digits", digits, least=1)
        run_inspect(model, write, precision, plot, as_json=as_json, quiet=quiet)


@app.command(
    epilog="Example: thresher export digits.thresher --to c --name digits --out digits.c\n\n"
    "Example: thresher export digits.thresher --to json --out -"
)
def export(
    model: Model,
    to: Annotated[str, typer.Option("--to", help="c, onnx, torch or json.", metavar="FORMAT")],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", help="File to write, - for standard output; by default beside MODEL.", metavar="FILE"
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What functions in the file are called after; by default MODEL.", metavar="NAME"),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a network as C source, ONNX, torch source or JSON, for use without Thresher."""
    from thresher.cli.outcome import reported

    with reported(debug, "No file was left half-written. Run it again with:"):
        from thresher.cli.export import run_export

        run_export(model, to, out, name, as_json=as_json, quiet=quiet)


@app.command(
    epilog="Example: thresher certify model.thresher data.csv --target y\n\n"
    "Example: thresher certify model.thresher data.csv --target y --held-out fresh.csv --out certificate"
)
def certify(
    model: Annotated[Path, typer.Argument(help="A saved network.", metavar="MODEL")],
    data: Annotated[Path, typer.Argument(help="A table of rows and targets; - reads it.", metavar="DATA")],
    target: Annotated[str, typer.Option(help="Column of the targets, or several: a,b.", metavar="NAME")],
    held_out: Annotated[
        Path | None, typer.Option(help="A table of fresh rows that were not trained on.", metavar="FILE")
    ] = None,
    dictionary: Annotated[
        str | None,
        typer.Option(
            help="Gates over which uniqueness is asked: own, opposite, one-sided, one-sparse, two-sparse, "
            "sampled.",
            metavar="LIST",
        ),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Relative rounding of the targets, such as 1e-6.", metavar="X")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the certificate and its figure.", metavar="DIR")
    ] = None,
    seed: Annotated[str, typer.Option(help="Seed of sampled gates.", metavar="N")] = "0",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say what is proved about a network on given data, what is not, and over which dictionary of gates.

    Each condition holds, fails or is unknown, with its number. Three levels follow: unique on its support,
    isolated, unique in the dictionary.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Nothing is kept of an interrupted certificate. Run it again with:"):
        from thresher.cli.certify import run_certify
        from thresher.cli.values import names, whole_number

        run_certify(
            model,
            data,
            target,
            held_out=held_out,
            dictionaries=names(dictionary),
            precision=precision,
            seed=whole_number("--seed", seed, least=0),
            out=out,
            as_json=as_json,
            quiet=quiet,
        )
