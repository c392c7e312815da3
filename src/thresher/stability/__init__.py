"""How sure the structure of a network is: what other rows would choose, intervals, networks as good."""

from thresher.stability.bounds import unimodal_bound, worst_case_bound
from thresher.stability.intervals import Interval, bootstrap_intervals
from thresher.stability.pool import Pool, pool
from thresher.stability.stability import InputStability, KinkStability, Stability, stability

__all__ = [
    "InputStability",
    "Interval",
    "KinkStability",
    "Pool",
    "Stability",
    "bootstrap_intervals",
    "pool",
    "stability",
    "unimodal_bound",
    "worst_case_bound",
]
