"""A network as a graph: inputs, neurons, outputs; width by weight, colour by sign."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from thresher.network.description import measured
from thresher.network.formula import input_names, printable
from thresher.network.layer import live, narrowed
from thresher.network.metadata import spread_of, target_names
from thresher.network.structure import Structure
from thresher.report.style import BLUE, GREY, ORANGE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: between two columns of nodes, for a label, and at most from top to bottom.
COLUMN, LABEL, TALLEST = 3.0, 0.19, 10.0
LONGEST_NAME = 28
# Graphs with no more connections than this bear the weights as numbers.
NUMBERED = 24
# Where not all inputs can be named, so many are.
MOST_NAMES = 32
# Beyond so many connections lines are curves that keep together: points of each, how far it is drawn to the
# middle of what its ends are joined to, and how much farther columns are apart.
MANY, POINTS, PULL, WIDER = 60, 24, 0.45, 1.5


@styled
def graph(network: Structure) -> Figure:
    """Draw the live part of a network.

    Lines are as wide as the square root of the weight's size, within each layer. Where the details tell the
    inputs' standard deviations as ``spread``, weights of inputs count for one of these. Where there are more
    inputs than names could be read, those that matter most are named. Direct connections to an output meet in
    a square beside the neurons of the first layer, the linear part, from which a grey line leads to the
    output.

    Parameters
    ----------
    network : Network
    """
    read, layers, direct = narrowed(network.layers, network.direct)
    masks = live(layers, direct)
    kept = [np.flatnonzero(mask) for mask in masks]
    kept[0] = read[kept[0]]
    weights = [
        layer.weights[before][:, after].tocoo()
        for layer, (before, after) in zip(layers, pairwise(masks), strict=True)
    ]
    weights, links, fed = with_direct(weights, None if direct is None else direct[masks[0]])
    places = places_of(links, [links[0].shape[0], *(matrix.shape[1] for matrix in links)])
    height = float(np.clip(0.36 * max(heights.size for heights in places) + 0.4, 2.4, TALLEST))
    connections = sum(matrix.nnz for matrix in weights)
    column = COLUMN * (WIDER if connections > MANY else 1.0)
    figure, (axes,) = new_figure(column * (len(kept) - 1) + 4.2, height + 1.1)
    axes.set_axis_off()
    signs = [layer.signs_only for layer in layers]
    scaled = spread_of(network.details, network.inputs)
    for number, matrix in enumerate(weights):
        matter = np.abs(matrix.data.astype(float))
        if number == 0 and scaled is not None:
            matter = matter * scaled[kept[0]][matrix.coords[0]]
        _draw_weights(axes, number, matrix, matter, places, connections)
    sizes = [float(np.clip(height * 72 / max(nodes.size, 1) * 0.55, 3.0, 13.0)) for nodes in places]
    biases = [layer.bias[mask] for layer, mask in zip(network.layers, masks[1:], strict=True)]
    _draw_nodes(axes, places, biases, sizes)
    _draw_linear(axes, places, fed, sizes)
    if connections <= NUMBERED:
        counted = [matrix for matrix, free in zip(weights, signs, strict=True) if not free]
        _number_weights(axes, counted, places, height)
        _number_biases(axes, places, biases)
    columns, matters, _ = measured(network)
    matters = matters[np.searchsorted(columns, kept[0])]
    called = input_names(network)
    _name_column(axes, places[0], 0, [called(i) for i in kept[0].tolist()], matters, height)
    outputs = output_names(network)
    _name_column(axes, places[-1], len(places) - 1, outputs, np.ones(len(outputs)), height)
    _heads(axes, network, kept)
    axes.set_xlim(-1.0, len(places) - 0.35)
    axes.set_ylim(-0.02, 1.02)
    _legend(axes, linear=bool(fed.size))
    return figure


def with_direct(
    weights: list[sparse.coo_array],
    direct: sparse.csr_array | None,  # (inputs, outputs)
) -> tuple[list[sparse.coo_array], list[sparse.coo_array], np.ndarray]:
    """Add direct connections to the weights to draw, and to the links that places are found from.

    Returns
    -------
    weights : list of sparse arrays
        As given, the first with a column more for each output that has direct connections: what they add up
        to. A network without hidden layers is linear as it is, and direct weights are added to its own.
    links : list of sparse arrays
        The same, and from each of these columns a way on through all hidden layers to its output.
    fed : int array
        The outputs that have direct connections.
    """
    if direct is None:
        return weights, weights, np.empty(0, dtype=np.int64)
    if len(weights) == 1:
        both = [(weights[0].tocsr() + direct).tocoo()]
        return both, both, np.empty(0, dtype=np.int64)
    fed = np.unique(direct.indices)
    first = sparse.hstack([weights[0], direct[:, fed]], format="coo")
    through = sparse.eye_array(fed.size, format="coo")
    ways = sparse.coo_array(
        (np.ones(fed.size), (np.arange(fed.size), fed)), shape=(fed.size, direct.shape[1])
    )
    middle = [sparse.block_diag([matrix, through], format="coo") for matrix in weights[1:-1]]
    links = [first, *middle, sparse.vstack([weights[-1], ways], format="coo")]
    return [first, *weights[1:]], links, fed


def places_of(weights: Sequence[sparse.coo_array], sizes: Sequence[int]) -> list[np.ndarray]:
    """Give every node a height from 1 (top) to 0, so that few lines cross.

    Outputs keep their order. From there to the inputs and back, each node moves to the mean of those it is
    joined to, and the nodes of a column are then spread evenly.
    """
    places = [_spread(np.arange(size, dtype=float)) for size in sizes]
    links = [abs(matrix).tocsr() for matrix in weights]
    for _ in range(6):
        for column in reversed(range(len(sizes) - 1)):
            places[column] = _spread(_means(links[column], places[column + 1], places[column]))
        for column in range(1, len(sizes) - 1):
            places[column] = _spread(_means(links[column - 1].T.tocsr(), places[column - 1], places[column]))
    if len(sizes) > 1:
        places[0] = _spread(_means(links[0], places[1], places[0]))
    return places


def _means(links: sparse.csr_array, others: np.ndarray, own: np.ndarray) -> np.ndarray:
    pattern = links.copy()
    pattern.data = np.ones_like(pattern.data)
    joined = np.asarray(pattern.sum(axis=1)).ravel()
    return -np.where(joined > 0, pattern @ others / np.maximum(joined, 1), own)


def _spread(order: np.ndarray) -> np.ndarray:
    """Spread nodes evenly from top to bottom, ties in their own order."""
    places = np.empty(order.size)
    places[np.argsort(order, kind="stable")] = 1 - (np.arange(order.size) + 0.5) / max(order.size, 1)
    return places


def _draw_weights(
    axes: Axes,
    number: int,
    matrix: sparse.coo_array,
    sizes: np.ndarray,
    places: Sequence[np.ndarray],
    connections: int,
) -> None:
    """Draw the lines of a layer, wide ones on top; sizes that are all alike give lines of a middle width."""
    from matplotlib.collections import LineCollection

    if matrix.nnz == 0:
        return
    alike = sizes.min() == sizes.max()
    share = np.full(sizes.size, 0.4) if alike else np.sqrt(sizes / sizes.max())
    # Many lines must be thin, or they would cover each other.
    widest = float(np.clip(60 / connections**0.6, 1.4, 5.0))
    order = np.argsort(share)
    many = connections > MANY
    faint = 0.25 + 0.6 * share if many else np.full(sizes.size, np.clip(3 / connections**0.25, 0.5, 0.9))
    lines = LineCollection(
        list((_curves if many else _straight)(number, matrix, places)[order]),
        linewidths=(0.3 + widest * share)[order],
        colors=[BLUE if value > 0 else ORANGE for value in matrix.data[order]],
        alpha=faint[order],
        zorder=1,
    )
    axes.add_collection(lines)


def _straight(number: int, matrix: sparse.coo_array, places: Sequence[np.ndarray]) -> np.ndarray:
    """Give lines from node to node, of shape (lines, 2, 2)."""
    rows, columns = matrix.coords
    starts = np.column_stack([np.full(rows.size, number), places[number][rows]])
    ends = np.column_stack([np.full(rows.size, number + 1), places[number + 1][columns]])
    return np.stack([starts, ends], axis=1)


def _curves(number: int, matrix: sparse.coo_array, places: Sequence[np.ndarray]) -> np.ndarray:
    """Give curves that leave and arrive level, and keep together half-way, of shape (lines, points, 2)."""
    rows, columns = matrix.coords
    # Behind neurons come linear parts.
    one, two = (part[:count] for part, count in zip(places[number : number + 2], matrix.shape, strict=True))
    start, end, links = one[rows], two[columns], abs(matrix).tocsr()
    # What orders nodes gives the mean place of what each is joined to, but for the sign.
    before, after = -_means(links, two, one)[rows], -_means(links.T.tocsr(), one, two)[columns]
    middle = (1 - PULL) * (start + end) / 2 + PULL * (before + after) / 2
    along = np.linspace(0, 1, POINTS)
    near, far = np.clip(2 * along, 0, 1), np.clip(2 * along - 1, 0, 1)
    smooth, level = 3 * near**2 - 2 * near**3, 3 * far**2 - 2 * far**3
    heights = start[:, None] + (middle - start)[:, None] * smooth + (end - middle)[:, None] * level
    return np.stack([np.broadcast_to(number + along, heights.shape), heights], axis=2)


def _number_weights(
    axes: Axes, weights: Sequence[sparse.coo_array], places: Sequence[np.ndarray], height: float
) -> None:
    """Write weights on their lines, each where it is farthest from those already written."""
    written = np.empty((0, 2))
    # A number is about as wide as half an inch and as high as a sixth.
    unit = np.array([COLUMN / 0.5, height / 0.16])
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.9}
    for number, matrix in enumerate(weights):
        for row, column, value in zip(*matrix.coords, matrix.data, strict=True):
            start = np.array([number, places[number][row]])
            end = np.array([number + 1, places[number + 1][column]])
            spots = start + np.linspace(0.2, 0.75, 12)[:, None] * (end - start)
            gaps = np.abs((spots[:, None] - written[None]) * unit).max(axis=2).min(axis=1, initial=3.0)
            x, y = spots[int(gaps.argmax())]
            written = np.vstack([written, [x, y]])
            text = f"{value:.3g}"
            axes.text(x, y, text, fontsize=8, ha="center", va="center", color=GREY, bbox=box, zorder=2)


def _draw_nodes(
    axes: Axes, places: Sequence[np.ndarray], biases: Sequence[np.ndarray], sizes: Sequence[float]
) -> None:
    """Draw inputs in grey, and neurons filled by the sign of their bias."""
    for column, heights in enumerate(places):
        if column == 0:
            fills = ["#BDBDBD"] * heights.size
        else:
            fills = [BLUE if bias > 0 else ORANGE if bias < 0 else "white" for bias in biases[column - 1]]
            heights = heights[: len(fills)]  # behind them come linear parts, and their ways on
        x = np.full(heights.size, column)
        area = sizes[column] ** 2 * (0.5 if column == 0 else 1.0)
        edge = 0.9 if sizes[column] > 5 else 0.4
        axes.scatter(x, heights, s=area, c=fills, edgecolors="#303030", linewidths=edge, zorder=3)


def _draw_linear(axes: Axes, places: Sequence[np.ndarray], fed: np.ndarray, sizes: Sequence[float]) -> None:
    """Draw linear parts as squares in the first hidden column, and the way from each to its output."""
    for part, output in enumerate(fed):
        back = part - fed.size
        way = [*(heights[back] for heights in places[1:-1]), places[-1][output]]
        axes.plot(range(1, len(places)), way, color="#9E9E9E", lw=1.4, zorder=1)
    squares = places[1][len(places[1]) - fed.size :] if fed.size else np.empty(0)
    area = sizes[1] ** 2 * 0.8
    axes.scatter(
        np.ones(fed.size),
        squares,
        s=area,
        marker="s",
        c="white",
        edgecolors="#303030",
        linewidths=0.9,
        zorder=3,
    )


def _number_biases(axes: Axes, places: Sequence[np.ndarray], biases: Sequence[np.ndarray]) -> None:
    for column, (heights, values) in enumerate(zip(places[1:], biases, strict=True), start=1):
        for y, value in zip(heights, values, strict=False):
            if value != 0:
                axes.annotate(
                    f"{value:+.3g}",
                    (column, y),
                    xytext=(0, 8),
                    textcoords="offset points",
                    ha="center",
                    va="bottom",
                    fontsize=8,
                    color=BLUE if value > 0 else ORANGE,
                    zorder=4,
                )


def _name_column(
    axes: Axes, heights: np.ndarray, column: int, names: Sequence[str], matters: np.ndarray, inches: float
) -> None:
    """Write names beside nodes, no more of them than can be read, with lines to where they belong."""
    room = max(1, int(inches / LABEL))
    room = room if heights.size <= room else min(room, MOST_NAMES)
    chosen = np.argsort(-matters, kind="stable")[:room]
    chosen = chosen[np.argsort(-heights[chosen], kind="stable")]
    targets = _apart(heights[chosen], LABEL / inches)
    side = -1 if column == 0 else 1
    for node, y in zip(chosen, targets, strict=True):
        moved = heights.size > room
        x = column + side * (0.22 if moved else 0.09)
        if moved:
            line = [column + side * 0.02, x - side * 0.02], [heights[node], y]
            axes.plot(*line, color="#B0B0B0", lw=0.5, zorder=0)
        align = "right" if side < 0 else "left"
        axes.text(x, y, _cut(names[node]), ha=align, va="center", fontsize=9 if heights.size <= 30 else 8)


def _apart(heights: np.ndarray, gap: float) -> np.ndarray:
    """Move heights, given from top to bottom, as little as it takes for neighbours to be a gap apart."""
    from scipy.optimize import isotonic_regression

    steps = gap * np.arange(heights.size)
    placed = isotonic_regression(heights + steps, increasing=False).x - steps
    # Back between top and bottom, from either end.
    placed = np.minimum(placed, 1 - steps)
    return np.maximum(placed, steps[::-1])


def output_names(network: Structure) -> list[str]:
    if network.classes is not None:
        labels = network.classes[1:] if network.outputs == 1 else network.classes
        return [str(label) for label in labels.tolist()]
    named = target_names(network.details, network.targets)
    if named is not None:
        return named
    return ["y"] if network.outputs == 1 else [f"y{i}" for i in range(network.outputs)]


def _cut(name: str) -> str:
    name = printable(" ".join(name.split()))
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    # A dollar sign would begin mathematics.
    return name.replace("$", r"\$")


def _heads(axes: Axes, network: Structure, kept: Sequence[np.ndarray]) -> None:
    widths = (network.inputs, *network.hidden, network.outputs)
    for column, (nodes, width) in enumerate(zip(kept, widths, strict=True)):
        if column == 0:
            text = f"inputs\n{nodes.size:,} of {width:,} used"
        elif column < len(kept) - 1:
            text = f"neurons\n{nodes.size:,} of {width:,} alive"
        else:
            text = "output" if width == 1 else f"{width:,} outputs"
        axes.text(column, 1.02, text, ha="center", va="bottom", fontsize=10, color="#303030")


def _legend(axes: Axes, linear: bool) -> None:
    from matplotlib.lines import Line2D

    node: dict[str, Any] = {"marker": "o", "ls": "none", "mec": "#303030", "ms": 7}
    handles = [
        Line2D([], [], color=BLUE, lw=3, label="weight > 0"),
        Line2D([], [], color=ORANGE, lw=3, label="weight < 0"),
        Line2D([], [], mfc=BLUE, label="bias > 0", **node),
        Line2D([], [], mfc=ORANGE, label="bias < 0", **node),
    ]
    if linear:
        handles.append(Line2D([], [], mfc="white", label="linear part", **{**node, "marker": "s"}))
    below = (0.5, -0.01)
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=below, ncols=len(handles), fontsize=9)
