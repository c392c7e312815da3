"""The problems that tests share: operators with their dense truths, planted problems, solvers.

A new operator joins the compliance suite by adding an :class:`OperatorCase`, a new solver the properties that
all of them have by a line in `SOLVERS`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.linalg import aslinearoperator
from torch import Tensor

from thresher.data.planted import planted
from thresher.linear.budget import Schedule
from thresher.linear.gaussian import GaussianOperator
from thresher.linear.matrices import as_operator
from thresher.linear.matrix import MatrixOperator, UnitColumns
from thresher.linear.operator import Operator
from thresher.linear.vector import SparseVector
from thresher.objective.columns import Columns, standard_columns
from thresher.objective.data import Data
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import (
    DenseRandom,
    Generators,
    SparseGenerators,
    follow,
    one_sparse,
    sparse_random,
    two_sparse,
)
from thresher.objective.linear import Linear
from thresher.solvers.iht import IHT, paper_iht
from thresher.solvers.loop import Iterate, Record
from thresher.solvers.refine import Armijo, ConjugateGradients

# More than two of the smallest chunks of rows, so that chunks meet and the last one is short.
ROWS = 150
FEATURES = 5
NEURONS = 7


@dataclass(frozen=True)
class OperatorCase:
    """An operator, and the matrix that it stands for."""

    name: str
    make: Callable[[torch.dtype], Operator]
    truth: Callable[[], Tensor]  # (rows, size), float64

    def __str__(self) -> str:
        return self.name


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Draw standard normal numbers, of float32 precision so that both precisions see the same data."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(np.float64)


def dense_generators(generators: Generators) -> Tensor:  # (features, neurons), float64
    """Write generators out, one neuron at a time."""
    whole = torch.zeros(generators.features, generators.neurons, dtype=torch.float64)
    for neuron in range(generators.neurons):
        used, values = generators.columns(neuron, neuron + 1, torch.float64)
        whole[slice(None) if used is None else used, neuron] = values[:, 0]
    return whole


def given_generators(matrix: Any) -> SparseGenerators:
    """Make generators from a matrix of shape (features, neurons)."""
    dense = torch.as_tensor(matrix)
    return SparseGenerators(SparseVector.from_dense(dense.T.reshape(-1)), *dense.shape)


def gated_truth(inputs: Tensor, generators: Tensor) -> Tensor:
    """Build ``[D_1 X | ... | D_m X]`` as equation 2 of the paper has it."""
    return torch.cat([torch.diag((inputs @ h > 0).double()) @ inputs for h in generators.T], dim=1)


def seen(X: Any, columns: Columns | None = None, bias: bool = False) -> Tensor:
    """Build ``[(X - origin) / scale | 1]`` in float64."""
    dense = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
    dense = dense.astype(np.float64)
    if columns is not None:
        dense = (dense - columns.origin) / columns.scale
    return torch.from_numpy(np.hstack([dense, np.ones((len(dense), 1))]) if bias else dense.copy())


def spread(columns: np.ndarray) -> np.ndarray:
    """Give the columns scales from 1/100 to 100, and one of them no scale at all: zeros."""
    wide = columns * np.logspace(-2, 2, columns.shape[1])
    wide[:, 2] = 0
    return wide


def standard(X: Any) -> Columns:
    """Choose scales for the columns, and origins where the data is dense."""
    return standard_columns(X, None, centred=not scipy.sparse.issparse(X))


def gated(
    name: str,
    generators: Callable[[int], Generators],  # from the number of features
    X: Any = None,
    scaled: bool = False,
    bias: bool = False,
) -> OperatorCase:
    """Make the case of a gated operator."""
    data = normal(ROWS, FEATURES) if X is None else X
    columns = standard(data) if scaled else None
    made = generators(data.shape[1] + bias)

    return OperatorCase(
        f"gated {name}",
        lambda dtype: GatedOperator(Data(data, columns=columns, dtype=dtype), made, bias=bias),
        lambda: gated_truth(seen(data, columns, bias), dense_generators(made)),
    )


def following(name: str, fallback: bool = False, bias: bool = False, scaled: bool = False) -> OperatorCase:
    """Make the case of gates that follow weights, of neurons of both signs and some without weights."""
    data = spread(normal(ROWS, FEATURES)) if scaled else normal(ROWS, FEATURES)
    columns = standard(data) if scaled else None
    features = FEATURES + bias
    weights, signs = network_weights(features, bias)
    spare = sparse_random(features, NEURONS, 2, seed=3) if fallback else None

    def make(dtype: torch.dtype) -> Operator:
        rows = Data(data, columns=columns, dtype=dtype)
        start = GatedOperator(rows, DenseRandom(features, NEURONS), bias=bias)
        return start.following(weights.to(dtype), signs, spare)

    def truth() -> Tensor:
        own = gated_truth(seen(data, columns, bias), dense_generators(follow(weights, features, spare)))
        return own * signs.repeat_interleave(features)

    return OperatorCase(f"gated following {name}", make, truth)


def network_weights(features: int, bias: bool = False) -> tuple[SparseVector, Tensor]:
    """Draw the weights of neurons of both signs; the second and the last neuron have none.

    The third neuron has nothing but a bias, where there is one.
    """
    rng = np.random.default_rng(7)
    dense = normal(NEURONS, features, seed=8) * (rng.random((NEURONS, features)) < 0.6)
    dense[[1, -1]] = 0
    if bias:
        dense[2, :-1], dense[2, -1] = 0, 1.5
    return SparseVector.from_dense(torch.from_numpy(dense).reshape(-1)), torch.tensor(
        [1, -1, -1, 1, -1, 1, 1]
    )


def unit(case: OperatorCase) -> OperatorCase:
    """Make the case of the same operator with unit columns."""

    def truth() -> Tensor:
        matrix = case.truth()
        norms = matrix.norm(dim=0)
        return matrix / torch.where(norms > 0, norms, 1)

    return OperatorCase(f"unit columns of {case.name}", lambda dtype: UnitColumns(case.make(dtype)), truth)


def memory_map(X: np.ndarray) -> np.memmap:
    """Write X to a file that is gone when the map is, and map it read-only."""
    with tempfile.TemporaryFile() as file:
        file.write(X.tobytes())
        file.flush()
        return np.memmap(file, X.dtype, "r", shape=X.shape)


def some_zero_columns() -> np.ndarray:
    matrix = normal(33, 21, seed=1)
    matrix[:, [4, 20]] = 0
    return matrix


def gaussian_truth(rows: int, size: int, seed: int) -> Tensor:
    columns = [
        np.random.Generator(np.random.Philox(key=[seed, j])).standard_normal(rows) for j in range(size)
    ]
    return torch.from_numpy(np.stack(columns, axis=1) / np.sqrt(rows))


def _inputs() -> dict[str, Any]:
    """List the same data, or nearly, in every form that is accepted."""
    X = normal(ROWS, FEATURES, seed=5)
    whole = np.random.default_rng(6).integers(-3, 4, (ROWS, FEATURES))
    sparse = scipy.sparse.csr_array(X * (np.abs(X) > 0.8))
    frozen = X.copy()
    frozen.flags.writeable = False
    return {
        "float16": X.astype(np.float16),
        "float32": X.astype(np.float32),
        "int8": whole.astype(np.int8),
        "int64": whole,
        "uint16": np.abs(whole).astype(np.uint16),
        "bool": whole > 0,
        "big endian": X.astype(">f8"),
        "long double": X.astype(np.longdouble),
        "Fortran": np.asfortranarray(X),
        "strided": np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "reversed": X[::-1, ::-1],
        "read-only": frozen,
        "memory map": memory_map(X),
        "float32 memory map": memory_map(X.astype(np.float32)),
        "csr": sparse,
        "csc": scipy.sparse.csc_array(sparse),
        "coo": scipy.sparse.coo_array(sparse),
        "csr matrix": scipy.sparse.csr_matrix(sparse),
        "integer csr": scipy.sparse.csr_array(whole * (whole > 1)),
    }


INPUTS = _inputs()
FEW_ROWS = normal(20, 4, seed=2)


def dense_random(features: int) -> Generators:
    return DenseRandom(features, NEURONS, seed=1)


def few_entries(features: int) -> Generators:
    return sparse_random(features, NEURONS, 2, seed=1)


GATED = [
    gated("dense random", dense_random),
    gated("sparse random", few_entries),
    gated("1-sparse", one_sparse),
    gated("2-sparse", lambda features: two_sparse(FEW_ROWS, [(0, 2)]), X=FEW_ROWS),
    gated("by an empty generator", lambda features: given_generators(np.zeros((features, 2)))),
    gated("with bias", dense_random, bias=True),
    gated("1-sparse with bias", one_sparse, bias=True),
    gated("with scale", dense_random, X=spread(normal(ROWS, FEATURES)), scaled=True),
    gated("with bias and scale", few_entries, X=spread(normal(ROWS, FEATURES)), scaled=True, bias=True),
    gated("of one feature", lambda features: given_generators([[1.0, -2.0]]), X=normal(ROWS, 1)),
    gated("of one row", dense_random, X=normal(1, FEATURES)),
    following("plain"),
    following("with fallback", fallback=True),
    following("with bias and scale", bias=True, scaled=True),
    following("with bias, scale and fallback", fallback=True, bias=True, scaled=True),
]

FORMS = [
    *(gated(f"on {name}", few_entries, X=X) for name, X in INPUTS.items()),
    gated("on csr with bias and scale", dense_random, X=INPUTS["csr"], scaled=True, bias=True),
    gated("on float16 with bias and scale", dense_random, X=INPUTS["float16"], scaled=True, bias=True),
]


def sparse_truth() -> Tensor:
    """Give a matrix most of whose entries are zero."""
    dense = some_zero_columns()
    return torch.from_numpy(np.where(np.abs(dense) > 1.0, dense, 0.0))


def host(truth: Tensor, dtype: torch.dtype) -> np.ndarray:
    """Give a matrix as NumPy has it."""
    return truth.to(dtype).numpy()


PLAIN = [
    *(
        OperatorCase(
            name, lambda dtype, form=form: as_operator(form(host(sparse_truth(), dtype))), sparse_truth
        )
        for name, form in (("sparse array", scipy.sparse.csr_array), ("linear operator", aslinearoperator))
    ),
    OperatorCase(
        "matrix",
        lambda dtype: MatrixOperator(torch.from_numpy(some_zero_columns()).to(dtype)),
        lambda: torch.from_numpy(some_zero_columns()),
    ),
    OperatorCase(
        "gaussian",
        lambda dtype: GaussianOperator(31, 23, seed=4, dtype=dtype),
        lambda: gaussian_truth(31, 23, seed=4),
    ),
]

_BY_NAME = {case.name: case for case in (*GATED, *PLAIN)}

OPERATORS = [
    *PLAIN,
    *GATED,
    *(
        unit(_BY_NAME[name])
        for name in (
            "matrix",
            "gaussian",
            "gated 1-sparse with bias",
            "gated with bias and scale",
            "gated following with bias and scale",
        )
    ),
]


@dataclass(frozen=True, eq=False)
class Problem:
    """A sparse vector to be found again from what an operator makes of it."""

    name: str
    operator: Operator
    y: Tensor
    budget: int
    w: SparseVector

    def __str__(self) -> str:
        return self.name


def sensing(name: str, operator: Operator, budget: int, seed: int) -> Problem:
    """Plant a sparse vector, with no entry so small that it could be overlooked."""
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.choice(operator.size, budget, replace=False))
    values = rng.choice([-1.0, 1.0], budget) * rng.uniform(1, 2, budget)
    w = SparseVector(torch.from_numpy(indices), torch.from_numpy(values).to(operator.dtype), operator.size)
    return Problem(name, operator, operator.forward(w), budget, w)


def one_sparse_network(name: str, rows: int, features: int, budget: int, seed: int) -> Problem:
    """Plant neurons with one weight each, of both signs, among the gates of all 1-sparse generators."""
    rng = np.random.default_rng(seed)
    data = Data(rng.standard_normal((rows, features)), dtype=torch.float64)
    operator = GatedOperator(data, one_sparse(features))
    feature = np.sort(rng.choice(features, budget, replace=False))
    neuron = 2 * feature + rng.integers(0, 2, budget)
    values = rng.choice([-1.0, 1.0], budget) * rng.uniform(1, 2, budget)
    w = SparseVector(torch.from_numpy(neuron * features + feature), torch.from_numpy(values), operator.size)
    return Problem(name, operator, operator.forward(w), budget, w)


@cache
def recoverable() -> dict[str, Problem]:
    """Give problems with fixed gates, or none, that every good solver solves."""
    matrix = torch.from_numpy(normal(90, 240, seed=3) / np.sqrt(90))
    problems = [
        sensing("compressed sensing", GaussianOperator(80, 300, seed=1, dtype=torch.float64), 6, seed=1),
        sensing("a matrix of one's own", MatrixOperator(matrix, block=50), 7, seed=2),
        one_sparse_network("1-sparse neurons", rows=400, features=10, budget=4, seed=3),
    ]
    return {problem.name: problem for problem in problems}


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """Data labelled by a planted network, and the random gates that a solver starts from."""

    X: np.ndarray
    y: np.ndarray
    hidden: int
    budget: int
    seed: int
    signs: Tensor

    def operator(self, signs: Tensor | None = None) -> GatedOperator:
        """Give the operator with dense random gates, in float64."""
        generators = DenseRandom(self.X.shape[1], self.hidden, self.seed)
        return GatedOperator(Data(self.X, dtype=torch.float64), generators, signs=signs)

    def objective(self, signs: Tensor | None = None) -> Linear:
        """Give half the mean squared error under that operator."""
        return Linear(self.operator(signs), torch.from_numpy(self.y))


def network_problem(
    rows: int = 300,
    features: int = 8,
    hidden: int = 4,
    budget: int = 12,
    negative: float = 0.0,
    noise: float = 0.0,
    seed: int = 0,
) -> NetworkProblem:
    """Plant a network whose labels are exact in float64, but for the noise."""
    problem = planted(rows, features, hidden, budget, negative=negative, seed=seed)
    assert problem.signs is not None
    X = problem.X.astype(np.float64)
    y = problem.evaluate(X) + noise * normal(rows, seed=seed + 1000)
    return NetworkProblem(X, y, hidden, budget, seed, torch.from_numpy(problem.signs))


def breathing(budget: int, inflation: float) -> Schedule:
    """Allow an inflated budget for two steps, the exact one for two more, and so on."""
    return lambda step: round(budget * inflation) if step % 4 < 2 else budget


def falling(first: int, last: int) -> Schedule:
    """Halve the budget at every step, down to the last."""
    return lambda step: max(last, first >> step)


EXACT = ConjugateGradients(iterations=50, tolerance=1e-14)
"""Least squares on the support."""


def following_solvers(budget: int) -> dict[str, IHT]:
    """Give solvers whose gates follow the weights."""
    return {
        "paper": paper_iht(),
        "paper, k = 3": paper_iht(update_gates_every=3),
        "paper, minibatches": paper_iht(batch_size=70, seed=1),
        "conjugate gradients, breathing": IHT(
            update_gates_every=1, schedule=breathing(budget, 1.5), settle=None
        ),
        "least squares, falling": IHT(
            update_gates_every=2, refinement=EXACT, schedule=falling(8 * budget, budget)
        ),
    }


SOLVERS: dict[str, IHT] = {
    "conjugate gradients": IHT(),
    "least squares": IHT(refinement=EXACT),
    "Armijo": IHT(refinement=Armijo()),
    "no refinement": IHT(refinement=None),
    "paper on fixed gates": replace(paper_iht(), update_gates_every=None),
}


class Watch:
    """A callback that remembers what each step handed out, and may stop the run after some steps."""

    def __init__(self, steps: int | None = None) -> None:
        self.steps = steps
        self.records: list[Record] = []
        self.iterates: list[Iterate] = []

    def __call__(self, record: Record, iterate: Iterate) -> bool:
        """Remember a step."""
        self.records.append(record)
        self.iterates.append(iterate)
        return self.steps is not None and len(self.records) >= self.steps

    @property
    def supports(self) -> list[list[int]]:
        """The support after each step."""
        return [iterate.w.indices.tolist() for iterate in self.iterates]
