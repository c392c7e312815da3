"""How many false inputs stability selection lets through at most, in the mean."""

from __future__ import annotations

import math

from thresher.errors import ParameterError


def worst_case_bound(selected: float, inputs: int, threshold: float) -> float:
    """Bound the expected number of false inputs by Shah and Samworth's theorem 1.

    A false input is one that half-samples select no more often than their mean selection would select inputs
    at random (with a probability of at most ``selected / inputs``). The selection needs to be nothing but
    the same rule for every half-sample.

    Parameters
    ----------
    selected : float
        Inputs that a half-sample selects, in the mean.
    inputs : int
        Inputs there are.
    threshold : float
        Share of the half-samples in which an input has to be selected, above one half.

    References
    ----------
    Shah and Samworth, "Variable selection with error control: another look at stability selection", Journal
    of the Royal Statistical Society B, 2013.

    Examples
    --------
    >>> round(worst_case_bound(3.0, 20, 0.8), 3)
    0.75
    """
    share = _share(selected, inputs, threshold)
    return min(float(inputs), share * selected / (2 * threshold - 1))


def unimodal_bound(selected: float, inputs: int, threshold: float, pairs: int) -> float:
    """Bound the same by their theorem 2, where shares of selection have distributions with one peak.

    It is the lower one of the two bounds, and holds where noise is selected rarely and by chance. Beyond
    ``selected / inputs`` of 0.577 it says nothing more than theorem 1.

    Parameters
    ----------
    selected, inputs, threshold
        As in :func:`worst_case_bound`.
    pairs : int
        Pairs of half-samples.

    Examples
    --------
    >>> round(unimodal_bound(3.0, 20, 0.8, 50), 3)
    0.371
    """
    share = _share(selected, inputs, threshold)
    worst = worst_case_bound(selected, inputs, threshold)
    least = min(0.5 + share**2, 0.5 + 1 / (2 * pairs) + 0.75 * share**2)
    if share > 1 / math.sqrt(3) or threshold <= least or threshold < 0.5 + 1 / pairs:
        return worst
    if threshold <= 0.75:
        factor = 1 / (2 * (2 * threshold - 1 - 1 / (2 * pairs)))
    else:
        factor = 4 * (1 - threshold + 1 / (2 * pairs)) / (1 + 1 / pairs)
    return min(worst, factor * share * selected)


def _share(selected: float, inputs: int, threshold: float) -> float:
    if not 0.5 < threshold <= 1:
        raise ParameterError(
            f"threshold={threshold}, but the bound needs a share above 0.5 and of at most 1: try 0.75."
        )
    return selected / inputs if inputs else 0.0
