"""The paper's tables and figures as data: declared cells, a sweep that runs them, and what they show.

Declaring an experiment loads neither torch nor scikit-learn; measuring a cell does.
"""

from __future__ import annotations

from difflib import get_close_matches

from thresher.errors import ParameterError
from thresher.experiments.ablations import ABLATIONS
from thresher.experiments.certificates import CERTIFICATES
from thresher.experiments.phase_diagram import PHASE_DIAGRAM
from thresher.experiments.record import Cell, CellFile, Outcome
from thresher.experiments.recovery import RECOVERY
from thresher.experiments.sweep import Choices, Experiment, Summary, Sweep, Table
from thresher.experiments.tables import TABLE_1, TABLE_2
from thresher.experiments.theorem import THEOREM

__all__ = [
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
]

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (TABLE_1, TABLE_2, ABLATIONS, RECOVERY, PHASE_DIAGRAM, THEOREM, CERTIFICATES)
}


def experiment_named(name: str) -> Experiment:
    """Give an experiment by its name.

    Examples
    --------
    >>> experiment_named("table-2").varies
    ('k', 'steps')
    """
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    close = get_close_matches(name.lower().replace("_", "-"), EXPERIMENTS, 1, cutoff=0.5)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ParameterError(f"there is no experiment {name!r}.{hint} Use one of {', '.join(EXPERIMENTS)}.")
