"""Every operator does what its dense truth does, in either precision, whatever the blocks and chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from problems import (
    FEATURES,
    FORMS,
    GATED,
    NEURONS,
    OPERATORS,
    ROWS,
    OperatorCase,
    network_weights,
    normal,
    seen,
    spread,
    standard,
)
from torch import Tensor

from thresher.errors import MemoryLimitError, ParameterError
from thresher.linear.gaussian import GaussianOperator
from thresher.linear.matrix import MatrixOperator, UnitColumns
from thresher.linear.operator import Operator, Restricted
from thresher.linear.vector import SparseVector
from thresher.objective import data as data_module
from thresher.objective.data import Data
from thresher.objective.gated import GatedOperator
from thresher.objective.gates import DenseRandom, SparseGenerators, sparse_random


@dataclass(frozen=True)
class Layout:
    """How an operator is made to cut up its work."""

    block: int | None  # neurons of a gated operator, columns of another; None for all
    fused: bool  # whether the whole gradient may be held
    small_chunks: bool  # whether rows come in chunks of 64
    cached: bool  # whether the gates of a support may be held
    copied: bool  # whether inputs may be held, once they are converted

    def __str__(self) -> str:
        return f"block {self.block or 'all'}{' fused' if self.fused else ''}"


LAYOUTS = [
    Layout(None, fused=True, small_chunks=False, cached=True, copied=True),
    Layout(3, fused=False, small_chunks=True, cached=True, copied=False),
    Layout(1, fused=True, small_chunks=True, cached=False, copied=True),
]
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}


@dataclass(frozen=True, eq=False)
class Subject:
    """An operator under test and the matrix it should be."""

    operator: Operator
    truth: Tensor  # (rows, size), float64
    layout: Layout

    @property
    def dtype(self) -> torch.dtype:
        return self.operator.dtype

    def same(self, actual: Tensor, expected: Tensor) -> None:
        """Compare to within the rounding of sums over all rows, and insist on the precision."""
        assert actual.dtype == self.dtype
        assert_close(actual, expected, TOLERANCE[self.dtype])

    def supports(self) -> list[Tensor]:
        """Give supports: the last weight, a few, all."""
        size = self.operator.size
        few = np.sort(np.random.default_rng(0).choice(size, min(size, 6), replace=False))
        return [torch.tensor([size - 1]), torch.from_numpy(few), torch.arange(size)]

    def vectors(self) -> list[SparseVector]:
        """Give sparse vectors on those supports, and that of the gates where they follow weights."""
        drawn = [SparseVector(s, self.draw(s.numel(), seed=1), self.operator.size) for s in self.supports()]
        generators = getattr(self.operator, "generators", None)
        return [*drawn, generators.entries] if isinstance(generators, SparseGenerators) else drawn

    def draw(self, numbers: int, seed: int) -> Tensor:
        return torch.from_numpy(np.random.default_rng(seed).standard_normal(numbers)).to(self.dtype)


def assert_close(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    scale = float(expected.abs().max()) if expected.numel() else 0.0
    torch.testing.assert_close(actual.double(), expected, rtol=0, atol=tolerance * max(1.0, scale))


def whole(blocks: Any, size: int) -> Tensor:
    """Put blocks together, insisting that every position comes exactly once."""
    pieces = sorted(((start, block) for start, block in blocks), key=lambda piece: piece[0])
    edges = [start for start, _ in pieces] + [size]
    assert edges[0] == 0
    assert all(start + block.numel() == edges[i + 1] for i, (start, block) in enumerate(pieces))
    return torch.cat([block for _, block in pieces])


# The form of the data matters where chunks are read, whatever is done with them: one layout is enough for it.
CASES = [(case, layout) for case in OPERATORS for layout in LAYOUTS] + [(case, LAYOUTS[1]) for case in FORMS]


@cache
def truth_of(case: OperatorCase) -> Tensor:
    return case.truth()


@pytest.fixture(params=CASES, ids=lambda pair: f"{pair[0]}, {pair[1]}")
def pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[OperatorCase, Layout]:
    if request.param[1].small_chunks:
        monkeypatch.setattr(data_module, "CHUNK_NUMBERS", 1)
    return request.param


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def subject(request: pytest.FixtureRequest, pair: tuple[OperatorCase, Layout]) -> Subject:
    case, layout = pair
    operator = case.make(request.param)
    inner: Any = operator.operator if isinstance(operator, UnitColumns) else operator
    inner.block = layout.block or inner.size
    if isinstance(inner, GatedOperator):
        inner.fits_whole = layout.fused
        inner.memory_limit = inner.memory_limit if layout.cached else 0
        inner.data.memory_limit = inner.data.memory_limit if layout.copied else 0
    return Subject(operator, truth_of(case), layout)


def test_shape_and_matrix(subject: Subject) -> None:
    assert (subject.operator.rows, subject.operator.size) == subject.truth.shape
    subject.same(subject.operator.as_matrix(), subject.truth)


def test_forward(subject: Subject) -> None:
    for w in subject.vectors():
        subject.same(subject.operator.forward(w), subject.truth @ w.to_dense().double())


def test_forward_takes_weights_of_another_precision(subject: Subject) -> None:
    other = torch.float64 if subject.dtype == torch.float32 else torch.float32
    for w in (w.to(other) for w in subject.vectors()):
        output, expected = subject.operator.forward(w), subject.truth @ w.to_dense().double()
        assert output.dtype == subject.dtype
        assert_close(output, expected, TOLERANCE[torch.float32])


def test_adjoint_blocks_cover_everything_once(subject: Subject) -> None:
    residual = subject.draw(subject.operator.rows, seed=2)
    blocks = list(subject.operator.adjoint(residual))
    subject.same(whole(blocks, subject.operator.size), subject.truth.T @ residual.double())
    if subject.layout.block == 1:
        smallest = getattr(getattr(subject.operator, "operator", subject.operator), "features", 1)
        assert {block.numel() for _, block in blocks} == {smallest}


def test_forward_and_adjoint_are_adjoint(subject: Subject) -> None:
    v = subject.draw(subject.operator.rows, seed=3)
    back = whole(subject.operator.adjoint(v), subject.operator.size).double()
    for u in subject.vectors():
        left = float(subject.operator.forward(u).double() @ v.double())
        right = float(u.to_dense().double() @ back)
        scale = float(subject.truth.norm() * u.values.double().norm() * v.double().norm())
        assert abs(left - right) <= TOLERANCE[subject.dtype] * scale


def test_sweep_is_forward_then_adjoint(subject: Subject) -> None:
    y = subject.draw(subject.operator.rows, seed=4)
    empty = SparseVector.zeros(subject.operator.size, subject.dtype)
    for w in (empty, *subject.vectors()):
        rows: list[int] = []

        def slope(output: Tensor, start: int, stop: int, rows: list[int] = rows) -> Tensor:
            assert output.shape == (stop - start,)
            rows.extend(range(start, stop))
            return 3 * output - y[start:stop]

        output, blocks = subject.operator.sweep(w, slope)
        expected = subject.truth @ w.to_dense().double()
        subject.same(output, expected)
        gradient = whole(blocks, subject.operator.size)
        subject.same(gradient, subject.truth.T @ (3 * expected - y.double()))
        assert sorted(rows) == list(range(subject.operator.rows))


def test_column_norms(subject: Subject) -> None:
    norms = whole(subject.operator.column_norms(), subject.operator.size)
    subject.same(norms, subject.truth.norm(dim=0))


def test_restricted_forward_and_adjoint(subject: Subject) -> None:
    residual = subject.draw(subject.operator.rows, seed=5)
    for support in subject.supports():
        part, columns = subject.operator.on_support(support), subject.truth[:, support]
        values = subject.draw(support.numel(), seed=6)
        assert (part.rows, part.size) == columns.shape
        subject.same(part.forward(values), columns @ values.double())
        subject.same(part.adjoint(residual), columns.T @ residual.double())


def test_row_chunks_cover_every_row_once(subject: Subject) -> None:
    for support in subject.supports():
        chunks = list(subject.operator.on_support(support).row_chunks())
        edges = [(start, stop) for start, stop, _ in chunks]
        assert edges[0][0] == 0 and edges[-1][1] == subject.operator.rows
        assert all(before[1] == after[0] for before, after in pairwise(edges))
        assert all(part.shape == (stop - start, support.numel()) for start, stop, part in chunks)
        subject.same(torch.cat([part for _, _, part in chunks]), subject.truth[:, support])


def test_gram(subject: Subject) -> None:
    weight = subject.draw(subject.operator.rows, seed=7).abs()
    for support in subject.supports():
        part, columns = subject.operator.on_support(support), subject.truth[:, support]
        for given, expected in ((None, columns), (weight, weight.double()[:, None] * columns)):
            gram = part.gram(given)
            assert gram.dtype == torch.float64
            assert_close(gram, columns.T @ expected, TOLERANCE[subject.dtype])


def test_normal_either_way(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    weight = subject.draw(subject.operator.rows, seed=8).abs()
    for support in subject.supports():
        part, columns = subject.operator.on_support(support), subject.truth[:, support]
        values = subject.draw(support.numel(), seed=9)
        grams = count_calls(part, "gram", monkeypatch)
        for given in (None, weight):
            image = columns @ values.double()
            expected = columns.T @ (image if given is None else given.double() * image)
            subject.same(part.normal(0, given)(values), expected)
            assert not grams, "few products are cheaper than a Gram matrix"
            subject.same(part.normal(10**9, given)(values), expected)
            assert grams.pop()


def count_calls(part: Restricted, name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often a method is called from now on."""
    calls: list[int] = []
    method: Callable[..., Any] = getattr(type(part), name)

    def counted(*args: Any) -> Any:
        calls.append(1)
        return method(part, *args)

    monkeypatch.setattr(part, name, counted)
    return calls


def test_nothing_gives_nothing(subject: Subject) -> None:
    rows, zeros = subject.operator.rows, torch.zeros(subject.operator.rows, dtype=torch.float64)
    subject.same(subject.operator.forward(SparseVector.zeros(subject.operator.size, subject.dtype)), zeros)
    part = subject.operator.on_support(torch.zeros(0, dtype=torch.int64))
    nothing = torch.zeros(0, dtype=subject.dtype)
    subject.same(part.forward(nothing), zeros)
    assert part.adjoint(subject.draw(rows, seed=10)).shape == (0,)
    assert part.gram().shape == (0, 0)
    assert part.normal(0)(nothing).shape == part.normal(10**9)(nothing).shape == (0,)
    assert sum(chunk.shape[0] for _, _, chunk in part.row_chunks()) == rows


@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("fused", [False, True], ids=["two passes", "one pass"])
def test_gates_that_follow_the_weights_make_a_relu_network(scaled: bool, bias: bool, fused: bool) -> None:
    X = spread(normal(ROWS, FEATURES))
    columns = standard(X) if scaled else None
    inputs, features = seen(X, columns, bias), FEATURES + bias
    w, signs = network_weights(features, bias)
    data = Data(X, columns=columns, dtype=torch.float64)
    operator = GatedOperator(data, DenseRandom(features, NEURONS), bias=bias).following(w, signs)
    operator.fits_whole = fused

    weights = w.to_dense().view(NEURONS, features)
    neurons = [sign * torch.relu(inputs @ own) for sign, own in zip(signs, weights, strict=True)]
    output, _ = operator.sweep(w, lambda out, start, stop: out)
    for given in (output, operator.forward(w), operator.on_support(w.indices).forward(w.values)):
        assert_close(given, torch.stack(neurons).sum(0), 1e-12)


def plain(**options: Any) -> GatedOperator:
    """Give an operator with random gates."""
    return GatedOperator(
        Data(normal(ROWS, FEATURES), dtype=torch.float64), DenseRandom(FEATURES, NEURONS), **options
    )


def test_signs_are_those_of_the_columns() -> None:
    signs = network_weights(FEATURES)[1]
    own, every = plain(signs=signs), signs.repeat_interleave(FEATURES)
    assert_close(own.as_matrix(), plain().as_matrix() * every, 1e-12)
    w = network_weights(FEATURES)[0]
    assert torch.equal(own.following(w).signs, own.signs), "its own signs, unless others are given"
    assert torch.equal(own.following(w, -signs).signs, -own.signs)


def test_a_way_back_makes_no_difference_to_the_output() -> None:
    w, signs = network_weights(FEATURES)
    alone = plain().following(w, signs)
    with_way_back = plain().following(w, signs, sparse_random(FEATURES, NEURONS, 2))
    assert_close(with_way_back.sweep(w, lambda out, a, b: out)[0], alone.forward(w), 1e-12)
    residual = torch.ones(ROWS, dtype=torch.float64)
    dead = [1, NEURONS - 1]
    assert not whole(alone.adjoint(residual), alone.size).view(NEURONS, -1)[dead].any()
    assert whole(with_way_back.adjoint(residual), alone.size).view(NEURONS, -1)[dead].any(dim=1).all()


@pytest.mark.parametrize("rows", [np.array([5, 3, 140]), np.arange(9)], ids=["three", "nine"])
def test_other_rows_have_the_gates_of_the_same_generators(rows: np.ndarray) -> None:
    case = next(case for case in OPERATORS if case.name == "gated following with bias and scale")
    operator, matrix = case.make(torch.float64), case.truth()
    w, _ = network_weights(FEATURES + 1, bias=True)
    some = operator.take(rows)
    assert_close(some.as_matrix(), matrix[rows], 1e-12)
    assert_close(some.sweep(w, lambda out, a, b: out)[0], operator.forward(w)[rows], 1e-12)


def test_a_matrix_has_rows_to_take() -> None:
    case, rows = next(case for case in OPERATORS if case.name == "matrix"), np.array([7, 7, 0])
    assert_close(case.make(torch.float64).take(rows).as_matrix(), case.truth()[rows], 0)


class Own(Operator):
    """A user's operator: every number twice."""

    rows, size, dtype = 6, 3, torch.float64

    def forward(self, w: SparseVector) -> Tensor:
        return w.to_dense().repeat(2)

    def adjoint(self, residual: Tensor) -> Iterator[tuple[int, Tensor]]:
        yield 0, residual[:3] + residual[3:]

    def on_support(self, support: Tensor) -> Restricted:
        return MatrixOperator(self.as_matrix()).on_support(support)

    def column_norms(self) -> Iterator[tuple[int, Tensor]]:
        yield 0, torch.full((3,), 2.0**0.5, dtype=torch.float64)


def test_what_an_operator_cannot_do_is_said_in_one_sentence() -> None:
    with pytest.raises(ParameterError, match=r"^Own has no method `take` .* some of its rows, .*\.$"):
        Own().take(np.arange(2))
    with pytest.raises(ParameterError, match=r"^Own has no gates .* follow the weights: .*\.$"):
        Own().following(SparseVector.zeros(3))


def test_generators_of_other_features_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"5 features.* 5 columns and a bias\. .* 6 features"):
        plain(bias=True)


@pytest.mark.parametrize("case", [*GATED, *FORMS], ids=str)
def test_the_data_is_left_as_it_was(case: OperatorCase) -> None:
    operator = case.make(torch.float64)
    assert isinstance(operator, GatedOperator)
    X = operator.data.X
    values = X.data if scipy.sparse.issparse(X) else X
    before = np.array(values, copy=True)
    w = SparseVector.from_dense(torch.ones(operator.size, dtype=torch.float64))
    residual = torch.ones(operator.rows, dtype=torch.float64)
    part = operator.on_support(w.indices)
    part.forward(w.values)
    part.adjoint(residual)
    gradient = operator.sweep(w, lambda out, a, b: out)[1]
    for blocks in (gradient, operator.adjoint(residual), operator.column_norms(), part.row_chunks()):
        for *_, block in blocks:
            block.fill_(7)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("rows", [1, 70])
def test_blocks_stay_within_the_memory_limit_and_change_nothing(rows: int) -> None:
    features, neurons = 9000, 12
    data = Data(normal(rows, features), dtype=torch.float64)
    generators = sparse_random(features, neurons, 40)
    residual = torch.from_numpy(normal(rows))
    support = torch.arange(0, features * neurons, 997)
    w = SparseVector(support, torch.ones(support.numel(), dtype=torch.float64), features * neurons)
    gradients, outputs, sizes = [], [], []
    for limit in (2**17, 2**19, 2**21, 2**23):
        operator = GatedOperator(data, generators, memory_limit=limit)
        blocks = list(operator.adjoint(residual))
        assert all(8 * block.numel() <= limit for _, block in blocks)
        sizes.append(len(blocks))
        gradients.append(whole(blocks, operator.size))
        outputs.append(operator.sweep(w, lambda out, a, b: out)[0])
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == neurons and sizes[-1] == 1
    for gradient, output in zip(gradients, outputs, strict=True):
        assert_close(gradient, gradients[0], 1e-12)
        assert_close(output, outputs[0], 1e-12)


def test_a_memory_limit_that_holds_no_neuron_is_refused() -> None:
    with pytest.raises(
        MemoryLimitError, match=r"memory_limit=1,000 bytes.*5 inputs needs [\d,]+ bytes.*Raise"
    ):
        GatedOperator(Data(normal(ROWS, FEATURES)), DenseRandom(FEATURES, 2), memory_limit=1000)


def test_a_gaussian_matrix_is_one_and_its_seed_decides_it() -> None:
    rows, size = 100, 400
    matrix = GaussianOperator(rows, size, seed=2, dtype=torch.float64).as_matrix() * rows**0.5
    assert abs(float(matrix.mean())) < 0.02
    assert abs(float(matrix.std()) - 1) < 0.02
    coherence = (matrix.T @ matrix / rows - torch.eye(size)).abs().max()
    assert float(coherence) < 0.6, "no column may come twice"
    block = GaussianOperator(rows, size, seed=2, block=3, dtype=torch.float64)
    assert torch.equal(block.as_matrix() * rows**0.5, matrix)
    assert not torch.equal(GaussianOperator(rows, size, seed=3, dtype=torch.float64).as_matrix(), matrix)


def test_unit_columns_have_a_way_back_to_the_other_units() -> None:
    operator = next(case for case in OPERATORS if case.name == "matrix").make(torch.float64)
    w = SparseVector(torch.tensor([0, 4, 7]), torch.tensor([1.0, 2.0, -3.0]).double(), operator.size)
    unit = UnitColumns(operator)
    assert_close(operator.forward(unit.unscale(w)), unit.forward(w), 1e-12)
