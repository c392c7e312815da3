"""Planted networks that meet the paper's assumption 1, whose rows are standard normal.

1(a): hidden entries in -1, 0 and 1, exactly k nonzeros in a neuron, any output weights. 1(b): real hidden
entries, from s_min to k nonzeros in a neuron, output weights +1 and -1. Both become the same kind of problem
as `planted` gives, with the output's size moved into the hidden weights and its sign kept.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from thresher.data.planted import (
    ROWS,
    WEIGHTS,
    PlantedProblem,
    PlantedSettings,
    _draw_rows,
    _evaluate,
    _stream,
    _whole,
)
from thresher.errors import ParameterError

KINDS = ("a", "b")


def assumed(
    n: int,
    d: int,
    neurons: int,
    largest: int,
    kind: str = "b",
    *,
    smallest: int = 1,
    one_sided: bool = False,
    seed: int = 0,
) -> PlantedProblem:
    """Plant a network of assumption 1 and label random rows with it.

    Parameters
    ----------
    n, d, neurons : int
    largest : int
        k: the nonzeros of every neuron in 1(a), the most of one in 1(b).
    kind : {"a", "b"}
    smallest : int
        s_min of 1(b): the fewest nonzeros of a neuron. 1(a) has no such choice.
    one_sided : bool
        Whether the first nonzero of every neuron is positive, so that a dictionary with one of each pair of
        opposite generators holds its gates.
    seed : int

    Returns
    -------
    PlantedProblem
        No two neurons have the same direction, nor opposite ones.

    Examples
    --------
    >>> problem = assumed(n=50, d=10, neurons=3, largest=2, kind="a")
    >>> problem.nonzeros, problem.y.shape
    (6, (50,))
    """
    if kind not in KINDS:
        raise ParameterError(f"kind={kind!r}, but assumption 1 has parts 'a' and 'b'.")
    n, d, neurons = _whole("n", n, 1), _whole("d", d, 1), _whole("neurons", neurons, 1)
    largest, smallest = _whole("largest", largest, 1), _whole("smallest", smallest, 1)
    if not smallest <= largest <= d:
        raise ParameterError(
            f"smallest={smallest} and largest={largest}, but a neuron of {d} inputs has from smallest to "
            f"largest nonzeros, at most {d}."
        )
    rng = _stream(_whole("seed", seed, 0), WEIGHTS)
    columns = np.zeros((d, neurons))
    signs = np.ones(neurons, dtype=np.float32)
    lines: set[bytes] = set()
    for neuron in range(neurons):
        column, sign, line = _new_line(rng, d, largest, smallest, kind, one_sided, lines)
        columns[:, neuron], signs[neuron] = column, sign
        lines.add(line)
    weights = (scipy.sparse.csr_array(columns.astype(np.float32)),)
    share = float((signs < 0).mean())
    settings = PlantedSettings(n, d, (neurons,), int(weights[0].nnz), 1, share, seed)
    X = _draw_rows(n, d, seed, ROWS)
    y = _evaluate(X, weights, signs).astype(np.float32)
    return PlantedProblem(X, y, weights, signs, settings)


def _new_line(
    rng: np.random.Generator,
    d: int,
    largest: int,
    smallest: int,
    kind: str,
    one_sided: bool,
    lines: set[bytes],
) -> tuple[np.ndarray, float, bytes]:
    """Draw a neuron on a line that no other has; which line is told by its entries up to one factor."""
    for _ in range(1000):
        size = largest if kind == "a" else int(rng.integers(smallest, largest + 1))
        column = np.zeros(d)
        place = np.sort(rng.choice(d, size, replace=False))
        column[place] = rng.choice([-1.0, 1.0], size) if kind == "a" else rng.standard_normal(size)
        first = float(np.sign(column[place[0]]))
        if one_sided:
            column *= first
        # Adding zero makes -0.0 into 0.0, which has other bytes.
        line = (column / column[place[0]] + 0.0).tobytes()
        if line in lines:
            continue
        # 1(a): the output weight is any number. Its size goes into the hidden weights, its sign stays.
        output = float(rng.standard_normal()) if kind == "a" else float(rng.choice([-1.0, 1.0]))
        return column * (abs(output) if kind == "a" else 1.0), float(np.sign(output)), line
    raise ParameterError(
        f"no neuron is left that is on no other's line: {len(lines)} are planted already. Use fewer neurons, "
        f"more inputs or more nonzeros."
    )
