"""The default solver: ways that give candidates, and a judge that chooses."""

from thresher.solvers.auto.auto import Auto
from thresher.solvers.auto.tuning import Tuning

__all__ = ["Auto", "Tuning"]
