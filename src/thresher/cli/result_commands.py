"""`thresher demo`, `reproduce` and `report` with their options: what the library does, measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thresher.cli.options import Debug, Json, Out, Quiet, Seed


def demo(
    out: Out = Path("thresher-demo"),
    seed: Seed = "0",
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
        from thresher.cli.values import LARGEST_SEED, whole_number

        run_demo(out, whole_number("--seed", seed, least=0, most=LARGEST_SEED), as_json, quiet)


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            help="figure-1 to figure-5, table-1, table-2, runtimes, ablations, recovery, phase-diagram, "
            "theorem, certificates, sketch-draws, watched, or all.",
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


def report(
    place: Annotated[
        Path,
        typer.Argument(
            help="A model file; or results of one experiment, or of several.", metavar="MODEL|DIR"
        ),
    ],
    data: Annotated[
        Path | None, typer.Argument(help="A table to measure a model on.", metavar="DATA")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Column of the target; what the model predicts.", metavar="NAME")
    ] = None,
    stability: Annotated[
        bool, typer.Option("--stability", help="Fit to halves of the rows of DATA, and say what recurs.")
    ] = False,
    pairs: Annotated[str, typer.Option(help="Pairs of half-samples, two fits each.", metavar="N")] = "25",
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page; beside MODEL, or DIR/report.html by default.", metavar="FILE"),
    ] = None,
    seed: Annotated[str, typer.Option(help="Seed of half-samples.", metavar="N")] = "0",
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make one HTML page of a model or of results, which needs no network.

    Of a model: scores, formula, graph, what each input does, what is sure and proved. Of results: figures,
    cells, settings.
    """
    from thresher.cli.outcome import reported

    with reported(debug, "Make the page again with:"):
        from thresher.cli.report import ModelChoices, run_report
        from thresher.cli.values import whole_number

        choices = ModelChoices(
            data,
            target,
            stability,
            whole_number("--pairs", pairs, least=1),
            whole_number("--seed", seed, least=0),
        )
        run_report(place, choices, out, as_json, quiet)
