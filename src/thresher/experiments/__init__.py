"""The paper's tables and figures as data: declared cells, a sweep that runs them, and what they show.

Declaring an experiment loads neither torch nor scikit-learn; measuring a cell does.
"""

from __future__ import annotations

from difflib import get_close_matches

from thresher.errors import ParameterError
from thresher.experiments.ablations import ABLATIONS
from thresher.experiments.catalogue import FIGURES
from thresher.experiments.certificates import CERTIFICATES
from thresher.experiments.experiment import Choices, Experiment, Summary, Table
from thresher.experiments.grids import experiment_of
from thresher.experiments.phase_diagram import PHASE_DIAGRAM
from thresher.experiments.record import Cell, CellFile, Outcome
from thresher.experiments.recovery import RECOVERY
from thresher.experiments.runtimes import RUNTIMES
from thresher.experiments.sketch_draws import SKETCH_DRAWS
from thresher.experiments.sweep import Sweep
from thresher.experiments.tables import TABLE_1, TABLE_2
from thresher.experiments.theorem import THEOREM
from thresher.experiments.watched import WATCHED

__all__ = [
    "ALL",
    "EXPERIMENTS",
    "Cell",
    "CellFile",
    "Choices",
    "Experiment",
    "Outcome",
    "Summary",
    "Sweep",
    "Table",
    "experiment_named",
    "experiments_named",
]

ALL = "all"
EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        *(experiment_of(figure) for figure in FIGURES),
        TABLE_1,
        TABLE_2,
        RUNTIMES,
        ABLATIONS,
        RECOVERY,
        PHASE_DIAGRAM,
        THEOREM,
        CERTIFICATES,
        SKETCH_DRAWS,
        WATCHED,
    )
}
# What the theory says when it is run, what one draw leaves out, what goes further; "all" is the paper's.
BESIDE = (PHASE_DIAGRAM.name, THEOREM.name, CERTIFICATES.name, SKETCH_DRAWS.name, WATCHED.name)


def experiment_named(name: str) -> Experiment:
    """Give an experiment by its name.

    Examples
    --------
    >>> experiment_named("table-2").varies
    ('k', 'steps')
    """
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    names = [*EXPERIMENTS, ALL]
    close = get_close_matches(name.lower().replace("_", "-"), names, 1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ParameterError(f"there is no experiment {name!r}.{hint} Use one of {', '.join(names)}.")


def experiments_named(name: str) -> list[Experiment]:
    """Give an experiment by its name, or every one of the paper for "all".

    Examples
    --------
    >>> [experiment.name for experiment in experiments_named("table-1")]
    ['table-1']
    """
    return (
        [EXPERIMENTS[one] for one in EXPERIMENTS if one not in BESIDE]
        if name == ALL
        else [experiment_named(name)]
    )
