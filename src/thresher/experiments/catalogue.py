"""The paper's figures as data: for each half of a figure its problem, grid, passes and batches.

Grids, passes and batch sizes are those of section 5 and appendix A; `quick` says what is cut to finish in
minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

from thresher.experiments.fits import ROWS
from thresher.experiments.methods import SHOWN
from thresher.experiments.tasks import BINARY, CIFAR_IMAGE, DIGITS, MNIST_IMAGE, PLANTED, SHAPES

INPUTS = 100
SEEDS = (0, 1, 2)


def sizes(least: int, most: int) -> tuple[int, ...]:
    """Give 1, 2, 5, 10, 20, ... between two of them.

    Examples
    --------
    >>> sizes(2, 100)
    (2, 5, 10, 20, 50, 100)
    """
    all_of_them = [digit * 10**power for power in range(6) for digit in (1, 2, 5)]
    return tuple(size for size in all_of_them if least <= size <= most)


@dataclass(frozen=True)
class Quick:
    """What a quick run takes of a part; None is all of it.

    Attributes
    ----------
    m, s : tuple of int
        Widths and budgets.
    rows, passes : int, optional
    seconds : float
        How long a fit of the default solver may take.
    """

    m: tuple[int, ...]
    s: tuple[int, ...]
    rows: int | None = None
    passes: int | None = None
    seconds: float = 6.0


@dataclass(frozen=True)
class Part:
    """Half of a figure: one problem over a grid of widths and budgets.

    Attributes
    ----------
    name : {"left", "right"}
    title : str
    data : str
        One of the problems of :mod:`thresher.experiments.tasks`.
    m, s : tuple of int
        Widths and budgets.
    passes : int
        Passes over the data of the paper's algorithm and of each training of a baseline.
    quick : Quick
    batch_size : int, optional
        Rows of a minibatch; all by default.
    layers, outputs : int
    auto_passes : int
        Passes of the default solver.
    seconds : float
        How long one of its fits may take.
    """

    name: str
    title: str
    data: str
    m: tuple[int, ...]
    s: tuple[int, ...]
    passes: int
    quick: Quick
    batch_size: int | None = None
    layers: int = 1
    outputs: int = 1
    auto_passes: int = 200
    seconds: float = 50.0

    @property
    def rows(self) -> int:
        """Rows that the paper takes."""
        return ROWS if self.data == PLANTED else SHAPES[self.data][0]

    @property
    def inputs(self) -> int:
        """Inputs of the network."""
        return INPUTS if self.data == PLANTED else SHAPES[self.data][1]

    @property
    def measure(self) -> str:
        """What scores are: "PSNR" in dB, or "accuracy" as a share."""
        return "accuracy" if self.data in (BINARY, DIGITS) else "PSNR"


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: two parts, each a row of heatmaps, one for each method.

    Attributes
    ----------
    name, title : str
    parts : tuple of Part
    claims : tuple of str
        What the paper says about it, by the names of :mod:`thresher.experiments.claims`.
    methods : tuple of str
        What is shown unless something else is asked for.
    """

    name: str
    title: str
    parts: tuple[Part, Part]
    claims: tuple[str, ...]
    methods: tuple[str, ...] = SHOWN


def _planted(name: str, title: str, outputs: int, layers: int) -> Part:
    alone = outputs == 1
    least = (1, 1) if layers == 1 else (2, 10)
    return Part(
        name,
        title,
        PLANTED,
        m=sizes(least[0], 1000),
        s=sizes(least[1], 1000),
        passes=15 if alone else 100,
        batch_size=None if alone else 5_000,
        outputs=outputs,
        layers=layers,
        # Recovery of deep networks begins anew with other students until one finds the network.
        auto_passes=200 if layers == 1 else 1000,
        quick=Quick((2, 10, 100 // layers), (10, 50, 200, 1000), rows=4_000, passes=15),
    )


def _image(name: str, layers: int, data: str) -> Part:
    large = data == CIFAR_IMAGE
    return Part(
        name,
        "one hidden layer" if layers == 1 else "two hidden layers",
        data,
        m=sizes(layers, 200),
        s=sizes(2, 2000),
        passes=100,
        layers=layers,
        auto_passes=1000,
        quick=Quick((2, 10) if large else (2, 5, 20), (20, 200, 1000), passes=20 if large else 40),
    )


FIGURES = (
    Figure(
        "figure-1",
        "Planted networks with one output",
        (
            _planted("left", "one hidden layer", outputs=1, layers=1),
            _planted("right", "two hidden layers", outputs=1, layers=2),
        ),
        ("better than pruning", "times"),
    ),
    Figure(
        "figure-2",
        "Planted networks with ten outputs",
        (
            _planted("left", "one hidden layer", outputs=10, layers=1),
            _planted("right", "two hidden layers", outputs=10, layers=2),
        ),
        ("competitive with pruning", "times"),
    ),
    Figure(
        "figure-3",
        "MNIST digits, accuracy on test images",
        (
            Part(
                "left",
                "0 against 1",
                BINARY,
                m=sizes(1, 1000),
                s=sizes(1, 200),
                passes=15,
                batch_size=1_000,
                auto_passes=15,
                quick=Quick((1, 10, 100), (1, 5, 20, 100), rows=2_000, passes=5),
            ),
            Part(
                "right",
                "ten digits",
                DIGITS,
                m=sizes(10, 1000),
                s=sizes(100, 2000),
                passes=50,
                batch_size=5_000,
                outputs=10,
                auto_passes=50,
                quick=Quick((10, 50), (100, 500, 2000), rows=5_000, passes=10),
            ),
        ),
        ("better than pruning", "times"),
    ),
    Figure(
        "figure-4",
        "An MNIST digit as a function of its coordinates",
        (_image("left", 1, MNIST_IMAGE), _image("right", 2, MNIST_IMAGE)),
        ("independent of width", "better than pruning", "times"),
    ),
    Figure(
        "figure-5",
        "A CIFAR-10 image as a function of its coordinates",
        (_image("left", 1, CIFAR_IMAGE), _image("right", 2, CIFAR_IMAGE)),
        ("better than pruning", "times"),
    ),
)
