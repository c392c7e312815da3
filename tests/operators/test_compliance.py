"""Every operator does what its dense truth does, in either precision, whatever the blocks and chunks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from problems import FORMS, OPERATORS, OperatorCase
from torch import Tensor

from thresher.operators import GatedOperator, Operator, Restricted, UnitColumns
from thresher.operators import design as design_module
from thresher.vector import SparseVector


@dataclass(frozen=True)
class Layout:
    """How an operator is made to cut up its work."""

    block: int | None  # neurons of a gated operator, columns of another; None for all
    fused: bool  # whether the whole gradient may be held
    small_chunks: bool  # whether rows come in chunks of 64
    cached: bool  # whether the gates of a support may be held

    def __str__(self) -> str:
        return f"block {self.block or 'all'}{' fused' if self.fused else ''}"


LAYOUTS = [
    Layout(None, fused=True, small_chunks=False, cached=True),
    Layout(None, fused=False, small_chunks=True, cached=False),
    Layout(3, fused=False, small_chunks=True, cached=True),
    Layout(1, fused=True, small_chunks=True, cached=False),
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
        """Give supports: one weight, the last one, a few, every second, all."""
        size = self.operator.size
        few = np.sort(np.random.default_rng(0).choice(size, min(size, 6), replace=False))
        chosen = [[0], [size - 1], few.tolist(), list(range(0, size, 2)), list(range(size))]
        return [torch.tensor(support) for support in chosen]

    def vectors(self) -> list[SparseVector]:
        """Give sparse vectors on those supports, and the one that the gates follow."""
        followed = getattr(self.operator, "followed", None)
        drawn = [SparseVector(s, self.draw(s.numel(), seed=1), self.operator.size) for s in self.supports()]
        return drawn if followed is None else [*drawn, followed]

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
CASES = [(case, layout) for case in OPERATORS for layout in LAYOUTS] + [(case, LAYOUTS[2]) for case in FORMS]


@cache
def truth_of(case: OperatorCase) -> Tensor:
    return case.truth()


@pytest.fixture(params=CASES, ids=lambda pair: f"{pair[0]}, {pair[1]}")
def pair(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[OperatorCase, Layout]:
    if request.param[1].small_chunks:
        monkeypatch.setattr(design_module, "CHUNK_NUMBERS", 1)
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
