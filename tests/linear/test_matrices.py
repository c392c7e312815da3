"""Matrices of NumPy, SciPy and torch, and linear operators, are taken as they come; others are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from thresher import iht
from thresher.errors import DataError, ParameterError
from thresher.linear.gaussian import GaussianOperator
from thresher.linear.matrices import as_operator
from thresher.solvers.auto import Auto
from thresher.solvers.iht import IHT
from thresher.solvers.loop import Needs

DRAW = np.random.default_rng(0)
MATRIX = DRAW.normal(size=(40, 120)) / 40**0.5
TRUTH = np.zeros(120)
TRUTH[[3, 50, 99]] = [1.0, -2.0, 1.5]
FORMS = {
    "array": MATRIX,
    "float32": MATRIX.astype(np.float32),
    "list": MATRIX.tolist(),
    "matrix": np.asmatrix(MATRIX),
    "tensor": torch.from_numpy(MATRIX),
    "csr": scipy.sparse.csr_array(MATRIX),
    "csc matrix": scipy.sparse.csc_matrix(MATRIX),
    "linear operator": aslinearoperator(MATRIX),
    "without a type": LinearOperator((40, 120), lambda w: MATRIX @ w.ravel(), lambda r: MATRIX.T @ r.ravel()),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_sparse_vector_is_recovered_whatever_the_matrix_comes_as(form: Any) -> None:
    records: list[dict[str, Any]] = []
    found = iht(form, MATRIX @ TRUTH, budget=3, callback=records.append)
    assert found.w.indices.tolist() == [3, 50, 99]
    np.testing.assert_allclose(found.w.values.numpy(), TRUTH[[3, 50, 99]], atol=1e-4)
    assert [record["step"] for record in records] == list(range(1, len(found.history) + 1))


def test_whole_numbers_are_numbers_and_an_operator_is_itself() -> None:
    assert as_operator(np.eye(3, dtype=int)).dtype == torch.float64
    operator = GaussianOperator(5, 7, seed=0)
    assert as_operator(operator) is operator


def test_a_callback_of_one_record_stops_the_run() -> None:
    found = iht(MATRIX, MATRIX @ DRAW.normal(size=120), budget=3, callback=lambda record: record["step"] == 2)
    assert (len(found.history), found.status.name) == (2, "callback")


@pytest.mark.parametrize(
    "came", ["text", 3, np.zeros(3), np.zeros((2, 2, 2)), np.array([["a"]]), np.array([[{}]]), None]
)
def test_what_is_no_matrix_is_refused(came: Any) -> None:
    with pytest.raises(ParameterError, match="must be a matrix"):
        iht(came, [0.0], budget=1)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, aslinearoperator])
def test_complex_numbers_are_refused(form: Any) -> None:
    with pytest.raises(DataError, match="is complex"):
        iht(form(np.eye(2) * 1j), [0.0, 0.0], budget=1)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_numbers_that_are_not_finite_are_refused(form: Any) -> None:
    with pytest.raises(DataError, match="NaN or infinity"):
        iht(form(np.array([[np.nan]])), [0.0], budget=1)


def test_an_operator_without_a_transpose_is_refused() -> None:
    with pytest.raises(ParameterError, match="has no rmatvec"):
        iht(LinearOperator((2, 2), lambda w: w, dtype=float), [1.0, 0.0], budget=1)


class Half(IHT):
    """A solver whose step is no function."""

    step = 3  # type: ignore[assignment]


class Strange(IHT):
    """A solver that needs what there is not."""

    needs = Needs(options=frozenset({"luck"}))  # type: ignore[assignment]


@pytest.mark.parametrize(
    "solver, message",
    [
        ("auto", "it lacks needs, init, step, stop and rescue"),
        (IHT, "it is a class"),
        (Half(), "it lacks step"),
        (Strange(), "needs.options names 'luck'"),
        (Auto(), "needs a relu objective"),
    ],
)
def test_what_is_no_solver_of_operators_is_refused(solver: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        iht(MATRIX, MATRIX @ TRUTH, budget=3, solver=solver)


def test_what_is_no_callback_is_refused() -> None:
    with pytest.raises(ParameterError, match="callback=3"):
        iht(MATRIX, MATRIX @ TRUTH, budget=3, callback=3)  # type: ignore[arg-type]
