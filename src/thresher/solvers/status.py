"""Why a solver stopped: a name for programs, and advice for people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """Why a solver stopped.

    Attributes
    ----------
    name : str
        One of the names below, for programs.
    advice : str
        What it means and what to do, for people.
    """

    name: str
    advice: str

    def __str__(self) -> str:
        return f"{self.name}: {self.advice}"


SETTLED = Status("settled", "the support stayed the same across an update of the gates; nothing to do.")
RECOVERED = Status("recovered", "the network explains the targets up to rounding; nothing to do.")
FITTED = Status("fitted", "the loss fell below tol; nothing to do.")
FINISHED = Status("finished", "the solver went through all its phases; raise max_iter for a longer search.")
SPENT = Status("max_iter", "the budget of passes is spent: raise max_iter to go on.")
INTERRUPTED = Status("interrupted", "stopped by the user; the best network so far is kept.")
CALLED_OFF = Status("callback", "the callback asked to stop; the best network so far is kept.")
DIVERGED = Status(
    "diverged",
    "the fixed step is too large for this problem and the weights grew beyond all bounds; the best before "
    "that are kept. Scale y down, or use solver='auto', whose steps adapt.",
)
STALLED = Status("early_stopping", "the validation score stopped improving; nothing to do.")
