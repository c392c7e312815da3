"""Intervals and sets that hold the truth as often as promised (split conformal prediction).

How far the network is off on rows it has not seen tells how far it will be off on rows to come, if these are
drawn alike: the interval of coverage c reaches as far as a share c of those rows were off. What is kept are
numbers in the details of the network, so that a model file is all it takes. Of numbers, a reach between two
ranks is taken where c asks for one; sets of classes take the next rank up, for doubts come in lumps.

References
----------
V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World, Springer, 2005; J. Lei and others,
Distribution-free predictive inference for regression, JASA 113, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from thresher.errors import DataError, ParameterError
from thresher.network.structure import Structure

# The entry of a network's details.
ENTRY = "calibration"
# More scores than this are thinned, always to the side of a wider interval: a step of one in a thousand.
MOST_SCORES = 1000
# Where a mean is zero the spread of its counts is not.
LEAST_MEAN = 1e-9
# What rounding may add to a rank.
ROUNDING = 1e-9


def misses(link: str, truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Give how far predictions are off, in units of their own spread where the link tells one.

    Parameters
    ----------
    link : str
        Under "log" errors grow as the root of the prediction, as those of counts do.
    truth, predicted : array of shape (n,) or (n, targets)
    """
    return np.abs(np.asarray(truth, dtype=np.float64) - predicted) / spread(link, predicted)


def spread(link: str, predicted: np.ndarray) -> np.ndarray | float:
    """Give what one unit of a miss is."""
    return np.sqrt(np.maximum(predicted, LEAST_MEAN)) if link == "log" else 1.0


def doubts(labels: np.ndarray, truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Give one less the probability of the class that was the right one, of shape (n, 1).

    A class that the network does not know had no probability.
    """
    place = np.searchsorted(labels, truth).clip(max=len(labels) - 1)
    known = labels[place] == truth
    return np.where(known, 1.0 - probabilities[np.arange(len(truth)), place], 1.0)[:, None]


def entry(scores: np.ndarray, by: str) -> dict[str, Any]:
    """Make what is kept in the details of a network.

    Parameters
    ----------
    scores : array of shape (n,) or (n, targets)
        Misses or doubts of rows that the network has not seen.
    by : {"held out", "folds"}
        Rows that the fit was not given, or rows that networks of the same kind were not given in turn.

    Examples
    --------
    >>> entry(np.array([0.5, 0.25, 1.0]), "held out")
    {'rows': 3, 'by': 'held out', 'scores': [[0.25, 0.5, 1.0]]}
    """
    rows = len(scores)
    if not rows:
        raise DataError("no rows came to calibrate on, but an interval needs some. Give rows with targets.")
    scores = np.sort(np.asarray(scores, dtype=np.float64).reshape(rows, -1), axis=0)
    if rows > MOST_SCORES:
        ranks = np.ceil(np.arange(1, MOST_SCORES + 1) * (rows + 1) / (MOST_SCORES + 1)).astype(int)
        scores = scores[np.minimum(ranks, rows) - 1]
    return {"rows": rows, "by": by, "scores": scores.T.tolist()}


def reach(network: Structure, coverage: float, classes: bool) -> np.ndarray:  # (targets,)
    """Give how far off a network is at most, in so large a share of rows.

    Parameters
    ----------
    network : Structure
    coverage : float
        That share.
    classes : bool
        Whether it is asked for classes, or for numbers.
    """
    if network.gives_labels:
        raise ParameterError(
            "intervals and sets of classes are for numbers and for one class a row, but this network gives "
            "several labels: use predict_proba."
        )
    if classes != (network.classes is not None):
        kind, other = ("classes", "numbers") if classes else ("numbers", "classes")
        names = ("predict_interval", "predict_set") if classes else ("predict_set", "predict_interval")
        raise ParameterError(f"{names[1]} is for {kind}, but this network predicts {other}: use {names[0]}.")
    if not _is_share(coverage):
        raise ParameterError(
            f"coverage={coverage!r}, but it must be a share between 0 and 1, such as 0.9 where nine targets "
            "in ten are to be held."
        )
    scores, share = _scores(network.details, network.targets), float(coverage)
    count = scores.shape[1]
    place = (count + 1) * share
    if place - ROUNDING > count:
        needed = math.ceil(share / (1 - share) - ROUNDING)
        raise ParameterError(
            f"coverage={share:g} needs {needed:,} calibration rows, but this network has {count:,}. Ask for "
            f"{math.floor(100 * count / (count + 1)) / 100:g} or less, or calibrate it on more rows."
        )
    if classes:
        return scores[:, math.ceil(place - ROUNDING) - 1]
    return between(scores, place)


def between(misses: np.ndarray, place: float) -> np.ndarray:  # (targets, rows) -> (targets,)
    """Give the miss at a place between two ranks, counted from 1; zero has rank 0.

    The miss of rank k holds a share k / (rows + 1) of rows to come, and the next rank up holds up to
    1 / (rows + 1) more than was asked for. Where misses become rarer as they grow, the share that is held is
    concave in the reach, so that what lies between two ranks holds at least the share between theirs.

    Examples
    --------
    >>> between(np.array([[1.0, 2.0, 4.0]]), 2.25)
    array([2.5])
    """
    ranked = np.column_stack([np.zeros(len(misses)), misses])
    rank = math.floor(place + ROUNDING)
    part = max(0.0, place - rank)
    # A place at a rank has no next one to go to.
    return ranked[:, rank] if part < ROUNDING else (1 - part) * ranked[:, rank] + part * ranked[:, rank + 1]


def interval(link: str, predicted: np.ndarray, reach: np.ndarray) -> np.ndarray:  # (n, 2) or (n, 2, targets)
    """Give both ends of the intervals around predictions; those of counts end at zero."""
    away = spread(link, predicted) * (reach if predicted.ndim > 1 else reach[0])
    lower = np.maximum(predicted - away, 0.0) if link == "log" else predicted - away
    return np.stack([lower, predicted + away], axis=1)


def _is_share(value: Any) -> bool:
    return isinstance(value, (float, int, np.floating)) and type(value) is not bool and bool(0 < value < 1)


def _scores(details: Mapping[str, Any], targets: int) -> np.ndarray:
    kept = details.get(ENTRY)
    if kept is None:
        raise ParameterError(
            "this network has no calibration rows, which tell how far off it is. Call calibrate(X, y) of its "
            "estimator with rows that it was not fitted to, or set rows aside on the command line "
            "(--test-share)."
        )
    try:
        scores = np.array(kept["scores"], dtype=np.float64)
    except (TypeError, KeyError, ValueError):
        scores = np.empty(0)
    if scores.ndim != 2 or len(scores) != targets or not scores.size or not np.isfinite(scores).all():
        raise ParameterError(
            "the calibration that this network carries is damaged: it needs a list of numbers for each "
            "target. Calibrate it again."
        )
    return np.sort(scores, axis=1)
