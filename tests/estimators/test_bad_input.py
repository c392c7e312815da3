"""Bad input: each a clear error from `fit`, never from the constructor, never a network with NaN weights."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from problems import memory_map, normal
from sklearn.exceptions import DataConversionWarning

from thresher import SparseMLPClassifier, SparseMLPRegressor
from thresher.errors import BudgetError, DataError, MemoryLimitError, ParameterError

ESTIMATORS = [SparseMLPRegressor, SparseMLPClassifier]
SOLVERS = ["auto", "paper"]
X = normal(60, 4)
Y = X[:, 0] - np.maximum(X[:, 1], 0)
SMALL: dict[str, Any] = {"budget": 6, "hidden": 4, "max_iter": 10, "random_state": 0}
# Enough to tell one network from another, where it is not the solver that is put to the test.
SHORT = 5
# Enough for every way of the default solver, where numbers are extreme.
LONG = 20

both = pytest.mark.parametrize("Estimator", ESTIMATORS)
any_solver = pytest.mark.parametrize("solver", SOLVERS)


def targets(Estimator: Any, y: np.ndarray = Y) -> np.ndarray:
    """Give targets, or their signs for a classifier."""
    return (y > 0).astype(np.int64) if Estimator is SparseMLPClassifier else y


def fit(Estimator: Any, X: Any, y: Any = None, **parameters: Any) -> Any:
    """Fit a small network."""
    return Estimator(**{**SMALL, **parameters}).fit(X, targets(Estimator) if y is None else y)


def with_entry(array: np.ndarray, value: float) -> np.ndarray:
    """Put one value into a copy of an array."""
    changed = np.array(array, dtype=np.float64)
    changed.flat[3] = value
    return changed


def assert_sound(model: Any, budget: int = SMALL["budget"]) -> None:
    """Assert that a model is within its budget and has no number that is not finite."""
    assert model.nonzeros_ <= budget
    assert all(np.isfinite(array).all() for array in (*model.coefs_, *model.intercepts_))


@both
@any_solver
@pytest.mark.parametrize(
    ("value", "named"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")], ids=str
)
def test_inputs_that_are_not_finite_are_refused(
    Estimator: Any, solver: str, value: float, named: str
) -> None:
    with pytest.raises(ValueError, match=f"X contains {named}"):
        fit(Estimator, with_entry(X, value), solver=solver)
    with pytest.raises(ValueError, match=f"X contains {named}"):
        fit(Estimator, scipy.sparse.csr_array(with_entry(X, value)), solver=solver)


@pytest.mark.parametrize(
    ("value", "named"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")], ids=str
)
def test_targets_that_are_not_finite_are_refused(value: float, named: str) -> None:
    with pytest.raises(ValueError, match=f"y contains {named}"):
        fit(SparseMLPRegressor, X, with_entry(Y, value))


@both
def test_predicting_refuses_what_fitting_refuses(Estimator: Any) -> None:
    model = fit(Estimator, X)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(with_entry(X, np.nan))
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(X[:, :3])


@both
@any_solver
@pytest.mark.parametrize("value", [1e39, -1e39, 1e300], ids=str)
def test_inputs_that_overflow_float32_are_refused(Estimator: Any, solver: str, value: float) -> None:
    for data in (with_entry(X, value), scipy.sparse.csr_array(with_entry(X, value)), X * value):
        with pytest.raises(DataError, match=r"X holds .*e\+.*overflow.*Scale X"):
            fit(Estimator, data, solver=solver)


@any_solver
@pytest.mark.parametrize("value", [1e39, -1e39, 1e300], ids=str)
def test_targets_that_overflow_float32_are_refused(solver: str, value: float) -> None:
    with pytest.raises(DataError, match=r"y holds .*e\+.*overflow.*Scale y"):
        fit(SparseMLPRegressor, X, with_entry(Y, value), solver=solver)


@both
def test_unscaled_inputs_whose_squares_overflow_float32_are_refused(Estimator: Any) -> None:
    with pytest.raises(DataError, match=r"X holds 1e\+20.*overflow"):
        fit(Estimator, with_entry(X, 1e20), solver="paper", dtype="float32")
    with pytest.raises(DataError, match=r"X holds 1e\+20.*overflow"):
        fit(Estimator, with_entry(X, 1e20), scale=False, dtype="float32")


@both
@pytest.mark.parametrize("dtype", ["auto", "float32"])
@pytest.mark.parametrize("value", [1e29, 1e20, 1e-20, 1e-39, 1e-300, 5e-324], ids=str)
def test_extreme_inputs_that_fit_into_float32_give_sound_networks(
    Estimator: Any, dtype: str, value: float
) -> None:
    assert_sound(fit(Estimator, with_entry(X, value), dtype=dtype, max_iter=LONG))
    assert_sound(fit(Estimator, X * value, dtype=dtype, max_iter=LONG))


@pytest.mark.parametrize("value", [1e29, 1e-20, 1e-39, 1e-300, 5e-324], ids=str)
def test_extreme_targets_give_sound_networks(value: float) -> None:
    assert_sound(fit(SparseMLPRegressor, X, with_entry(Y, value), max_iter=LONG))
    assert_sound(fit(SparseMLPRegressor, X, Y * value, max_iter=LONG))


@pytest.mark.parametrize("factor", [1e20, 1e-20], ids=str)
def test_the_units_of_data_do_not_matter(factor: float) -> None:
    plain = fit(SparseMLPRegressor, X).predict(X)
    # A whole power of two would give the same bits; any other factor rounds.
    assert fit(SparseMLPRegressor, X * factor).predict(X * factor) == pytest.approx(plain, abs=1e-5)
    scaled = fit(SparseMLPRegressor, X, Y * factor).predict(X)
    assert scaled / factor == pytest.approx(plain, abs=1e-5)


@both
@pytest.mark.parametrize("value", [1e39, 1e-300], ids=str)
def test_sample_weights_that_float32_cannot_hold_are_refused(Estimator: Any, value: float) -> None:
    with pytest.raises(DataError, match="largest weight of a sample"):
        Estimator(**SMALL).fit(X, targets(Estimator), np.full(len(X), value))


@both
@pytest.mark.parametrize(
    ("weight", "named"),
    [
        (-np.ones(60), "Negative"),
        (np.zeros(60), "non-zero"),
        (np.full(60, np.nan), "NaN"),
        (np.ones(59), "sample_weight.shape"),
        (np.ones((60, 2)), "1D"),
    ],
    ids=["negative", "zero", "NaN", "short", "two columns"],
)
def test_impossible_sample_weights_are_refused(Estimator: Any, weight: np.ndarray, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Estimator(**SMALL).fit(X, targets(Estimator), weight)


@both
@pytest.mark.parametrize(
    ("data", "y", "named"),
    [
        (np.zeros((0, 4)), np.zeros(0), "0 sample"),
        (np.zeros((60, 0)), None, "0 feature"),
        (X[:, 0], None, "1D array"),
        (X[:, :, None], None, "dim 3"),
        (np.float64(3.0), None, "scalar array"),
        (X, Y[:-1], "inconsistent numbers of samples"),
        (X, "none", "y to be passed"),
        (X + 1j, None, "Complex data"),
    ],
    ids=["rows", "features", "1D", "3D", "scalar", "lengths", "no y", "complex"],
)
def test_data_that_cannot_be_fitted_is_refused(Estimator: Any, data: Any, y: Any, named: str) -> None:
    y = targets(Estimator) if y is None else None if isinstance(y, str) else targets(Estimator, y)
    with pytest.raises(ValueError, match=named):
        Estimator(**SMALL).fit(data, y)


DAYS = np.datetime64("2020-02-28") + np.arange(60)
WHOLE = np.round(X[:, 0]).astype(int)
NOT_NUMBERS: dict[str, tuple[np.ndarray, str]] = {
    "text": (np.array(["low", "high"] * 30), r"text \('low'\).*OneHotEncoder"),
    "numeric text": (WHOLE.astype(str), r"text \('-?\d'\).*astype\(float\)"),
    "variable text": (WHOLE.astype(np.dtypes.StringDType()), r"text \('-?\d'\)"),
    "bytes": (WHOLE.astype("S"), r"bytes \(b'-?\d'\).*astype\(float\)"),
    "days": (DAYS, r"dates \(2020-02-28.*days since"),
    "nanoseconds": (DAYS.astype("M8[ns]"), r"dates \(2020-02-28"),
    "durations": (DAYS - DAYS[0], r"durations \(0 .*seconds"),
    "one text": (np.array([*X[:59, 0], "1.5"], dtype=object), r"text \('1.5'\)"),
    "date objects": (DAYS.astype(object), r"dates \(2020-02-28\)"),
    "duration objects": ((DAYS - DAYS[0]).astype(object), r"durations \(0"),
}


def objects(*columns: np.ndarray) -> np.ndarray:
    """Put columns into an array of objects, each entry as it is."""
    array = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        for row, entry in enumerate(column):
            array[row, place] = entry
    return array


TABLES: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "array": (lambda column: np.column_stack([column, column]), "column 0 of X"),
    "objects": (lambda column: objects(X[:, 0], column), "column 1 of X"),
    "list": (lambda column: objects(X[:, 0], column).tolist(), "column 1 of X"),
    "frame": (lambda column: pd.DataFrame({"width": X[:, 0], "made on": column}), "column 'made on' of X"),
}


@both
@pytest.mark.parametrize("kind", NOT_NUMBERS)
@pytest.mark.parametrize("form", TABLES)
def test_inputs_that_are_not_numbers_are_refused_naming_the_column(
    Estimator: Any, kind: str, form: str
) -> None:
    (column, named), (table, where) = NOT_NUMBERS[kind], TABLES[form]
    with pytest.raises(DataError, match=f"^{where} holds {named}"):
        fit(Estimator, table(column))


@both
@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(WHOLE.astype(str)),
        pd.array(WHOLE.astype(str), dtype="string"),
        pd.Series(DAYS).dt.tz_localize("UTC"),
        pd.Series(DAYS).dt.time,
    ],
    ids=["categories of text", "pandas text", "dates of a time zone", "times"],
)
def test_columns_of_a_frame_that_are_not_numbers_are_refused(Estimator: Any, column: Any) -> None:
    with pytest.raises(DataError, match=r"^column 'kind' of X holds (text|dates)"):
        fit(Estimator, pd.DataFrame({"width": X[:, 0], "kind": column}))


@both
@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(WHOLE),
        pd.array(WHOLE, dtype="Int64"),
        WHOLE.astype(object),
        np.array([Decimal(int(number)) for number in WHOLE]),
        WHOLE > 0,
    ],
    ids=["categories", "nullable", "objects", "decimals", "booleans"],
)
def test_columns_of_numbers_are_numbers_in_any_type(Estimator: Any, column: Any) -> None:
    frame = pd.DataFrame({"width": X[:, 0], "count": column})
    plain = frame.astype({"count": np.float64})
    one, other = (fit(Estimator, each, max_iter=SHORT).network_ for each in (frame, plain))
    assert one.equals(other)


@both
def test_predicting_refuses_what_is_not_a_number(Estimator: Any) -> None:
    model = fit(Estimator, pd.DataFrame({"width": X[:, 0], "made on": X[:, 1]}))
    for column, named in NOT_NUMBERS.values():
        with pytest.raises(DataError, match=f"^column 'made on' of X holds {named}"):
            model.predict(pd.DataFrame({"width": X[:, 0], "made on": column}))


def test_targets_that_are_not_numbers_are_refused_by_the_regressor() -> None:
    for column, named in NOT_NUMBERS.values():
        for form in (column, list(column), pd.Series(column)):
            with pytest.raises(DataError, match=f"^y holds {named}"):
                fit(SparseMLPRegressor, X, form)
    with pytest.raises(DataError, match=r"^column 1 of y holds dates"):
        fit(SparseMLPRegressor, X, objects(Y, DAYS))


@any_solver
def test_several_targets_work(solver: str) -> None:
    model = fit(SparseMLPRegressor, X, np.column_stack([Y, -Y]), solver=solver)
    assert_sound(model)
    assert model.predict(X).shape == (60, 2)


def test_a_column_of_targets_is_one_target() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        column = fit(SparseMLPRegressor, X, Y[:, None])
    assert column.network_.equals(fit(SparseMLPRegressor, X).network_)


def test_targets_of_three_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="dim 3"):
        fit(SparseMLPRegressor, X, np.zeros((60, 2, 2)))


@any_solver
def test_several_targets_that_cannot_be_computed_with_are_refused(solver: str) -> None:
    with pytest.raises(ValueError, match="y contains NaN"):
        fit(SparseMLPRegressor, X, np.column_stack([Y, with_entry(Y, np.nan)]), solver=solver)
    with pytest.raises(DataError, match=r"y holds 1e\+39.*Scale y"):
        fit(SparseMLPRegressor, X, np.column_stack([Y, with_entry(Y, 1e39)]), solver=solver)


def test_one_class_is_refused() -> None:
    with pytest.raises(DataError, match="one class only, 'a', but"):
        fit(SparseMLPClassifier, X, np.full(60, "a"))


@any_solver
def test_three_classes_work(solver: str) -> None:
    model = fit(SparseMLPClassifier, X, np.digitize(Y, [-0.5, 0.5]), solver=solver)
    assert_sound(model)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X).shape == (60, 3)


def test_a_squared_error_is_refused_for_more_than_two_classes() -> None:
    with pytest.raises(ParameterError, match=r"loss='squared'.*3 classes.*loss='auto'"):
        fit(SparseMLPClassifier, X, np.arange(60) % 3, loss="squared")


def test_several_columns_of_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="1d array"):
        fit(SparseMLPClassifier, X, np.column_stack([np.arange(60) % 3, Y < 0]))


def test_continuous_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="continuous"):
        fit(SparseMLPClassifier, X, Y)


@pytest.mark.parametrize("class_weight", [{5: 1.0}, "blanced"], ids=str)
def test_impossible_class_weights_are_refused(class_weight: Any) -> None:
    with pytest.raises(ValueError, match="class_weight"):
        fit(SparseMLPClassifier, X, class_weight=class_weight)


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"], [3, 7, 9]], ids=str)
@pytest.mark.parametrize("by", ["rows", "class", "both"])
def test_weights_that_drop_a_class_are_refused_naming_it(names: list[Any], by: str) -> None:
    y = np.array(names)[np.arange(60) % len(names)]
    weight = np.where((y == names[1]) & (np.arange(60) < (30 if by == "both" else 60)), 0.0, 1.0)
    class_weight = {names[0]: 2.0, names[1]: 0.0}
    model = SparseMLPClassifier(**SMALL, class_weight=None if by == "rows" else class_weight)
    with pytest.raises(DataError, match=f"leave class {names[1]!r} without any weight"):
        model.fit(X, y, None if by == "class" else weight)


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "c"]], ids=str)
def test_one_row_of_weight_is_enough_for_a_class(names: list[str]) -> None:
    y = np.array(names)[np.arange(60) % len(names)]
    weight = np.where(y == "b", 0.0, 1.0)
    weight[1] = 1.0
    assert_sound(SparseMLPClassifier(**SMALL).fit(X, y, weight))


@pytest.mark.filterwarnings("ignore:no input reaches an output")
def test_targets_of_many_classes_take_rows_times_classes_only() -> None:
    classes = 30_000
    model = SparseMLPClassifier(20, 2, random_state=0)
    tracemalloc.start()
    model.partial_fit(X, np.arange(60) % 20 * 1_000, classes=np.arange(classes))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * 8 * 60 * classes < 8 * classes**2 / 40
    assert_sound(model, budget=20)


def test_many_classes_take_codes_rather_than_a_matrix() -> None:
    assert_sound(fit(SparseMLPClassifier, X, np.arange(60) % 30))


@both
@pytest.mark.parametrize("budget", [0, -3, 2.5, 3.0, np.float64(3), np.nan, True, "10", None, [5]], ids=repr)
def test_impossible_budgets_are_refused_by_fit(Estimator: Any, budget: Any) -> None:
    model = Estimator(**{**SMALL, "budget": budget})
    with pytest.raises(BudgetError, match=r"budget=.*at least one weight\. Use a whole number of 1 or more"):
        model.fit(X, targets(Estimator))


@both
@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("hidden", 0, "whole number"),
        ("hidden", -1, "whole number"),
        ("hidden", 2.5, "whole number"),
        ("hidden", True, "whole number"),
        ("hidden", "10", "whole number"),
        ("hidden", None, "whole number"),
        ("hidden", (), "whole number"),
        ("hidden", (3, 0), "one for each hidden layer"),
        ("hidden", (3, 2.5), "one for each hidden layer"),
        ("hidden", ((3,), 4), "one for each hidden layer"),
        ("solver", "papr", "Did you mean 'paper'"),
        ("solver", "newton", "'auto', 'paper' or a solver object"),
        ("solver", None, "solver object"),
        ("bias", "yes", "True, False or None"),
        ("scale", 3, "True, False or None"),
        ("alpha", -1, "0 or more"),
        ("alpha", np.nan, "0 or more"),
        ("alpha", "1", "0 or more"),
        ("batch_size", 0, "whole number of rows"),
        ("batch_size", 2.5, "whole number of rows"),
        ("max_iter", 0, "1 or more"),
        ("max_iter", 1.5, "1 or more"),
        ("tol", -1, "0 or more"),
        ("tol", np.inf, "0 or more"),
        ("validation_fraction", 0, "between 0 and 1"),
        ("validation_fraction", 1.5, "between 0 and 1"),
        ("n_iter_no_change", 0, "1 or more"),
        ("update_gates_every", 0, "1 or more"),
        ("memory_limit", 0, "number of bytes"),
        ("memory_limit", "much", "64MB"),
        ("device", "cuda", "'cpu'"),
        ("dtype", "float16", "'float32'"),
        ("random_state", -1, "whole number of 0 or more"),
        ("random_state", "a", "whole number of 0 or more"),
        ("callback", 3, "function"),
    ],
)
def test_impossible_parameters_are_refused_by_fit(
    Estimator: Any, name: str, value: Any, allowed: str
) -> None:
    model = Estimator(**{**SMALL, name: value})
    with pytest.raises(ParameterError) as caught:
        model.fit(X, targets(Estimator))
    assert f"{name}={value!r}" in str(caught.value)
    assert allowed in str(caught.value)


def test_an_impossible_loss_is_refused() -> None:
    with pytest.raises(ParameterError, match="loss='hinge'"):
        fit(SparseMLPClassifier, X, loss="hinge")


@both
@any_solver
@pytest.mark.parametrize(
    ("hidden", "budget", "least"),
    [(10**12, 6, 48 * 10**12), (10**30, 6, 48 * 10**30), (10**10, 10**12, 10**12)],
)
def test_sizes_that_cannot_fit_are_refused_naming_the_bytes(
    Estimator: Any, solver: str, hidden: int, budget: int, least: int
) -> None:
    with pytest.raises(MemoryLimitError) as caught:
        fit(Estimator, X, hidden=hidden, budget=budget, solver=solver)
    words = str(caught.value).split()
    assert int(words[words.index("bytes,") - 1].replace(",", "")) >= least
    assert f"hidden={hidden:,}" in str(caught.value)


@both
def test_layers_that_cannot_fit_are_refused(Estimator: Any) -> None:
    with pytest.raises(MemoryLimitError, match=r"at least 48,\d+,\d+,\d+,\d+ bytes"):
        fit(Estimator, X, hidden=(3, 10**12))


@both
@any_solver
def test_a_memory_limit_below_the_smallest_block_is_refused(Estimator: Any, solver: str) -> None:
    with pytest.raises(
        MemoryLimitError, match=r"memory_limit=1 bytes.*needs [\d,]+ bytes.*Raise memory_limit"
    ):
        fit(Estimator, X, memory_limit=1, solver=solver)


@both
def test_a_budget_beyond_the_network_is_all_of_it(Estimator: Any) -> None:
    model = fit(Estimator, X, budget=10**30)
    # Each neuron has four weights and a bias; there are four direct connections and an output bias.
    assert_sound(model, budget=SMALL["hidden"] * 5 + 5)
    assert "covers all 25 weights" in model.status_.advice


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "Fortran order": np.asfortranarray,
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "big endian": lambda X: X.astype(">f8"),
    "long double": lambda X: X.astype(np.longdouble),
    "list": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "memory map": memory_map,
    "csr array": scipy.sparse.csr_array,
    "csr matrix": scipy.sparse.csr_matrix,
    "csc array": scipy.sparse.csc_array,
    "coo matrix": scipy.sparse.coo_matrix,
}


# Thirds of the entries are zeros, so that the sparse forms are sparse.
GAPPY = X * (np.abs(X) > 0.4)


@cache
def fitted_plainly(Estimator: Any, solver: str, sparse: bool) -> Any:
    """Fit the data in its plainest form.

    Sparse data is not centred, so that its default network is another than that of dense data.
    """
    return fit(
        Estimator, (scipy.sparse.csr_array if sparse else np.array)(GAPPY), solver=solver, max_iter=SHORT
    )


@both
@any_solver
@pytest.mark.parametrize("form", FORMS)
def test_the_same_data_in_another_form_gives_the_same_network(Estimator: Any, solver: str, form: str) -> None:
    formed = FORMS[form](GAPPY)
    plain = fitted_plainly(Estimator, solver, scipy.sparse.issparse(formed))
    other = fit(Estimator, formed, solver=solver, max_iter=SHORT)
    assert np.allclose(plain.coefs_[0], other.coefs_[0], rtol=1e-9, atol=1e-12)
    assert np.array_equal(plain.coefs_[0] != 0, other.coefs_[0] != 0)
    assert np.allclose(plain.predict(GAPPY), other.predict(formed), rtol=1e-9, atol=1e-12)


@both
@any_solver
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64, np.uint16, np.uint8, np.bool_])
def test_other_numbers_give_the_network_of_their_values(Estimator: Any, solver: str, dtype: Any) -> None:
    whole = np.abs(np.round(3 * X)) if np.issubdtype(dtype, np.unsignedinteger) else np.round(3 * X)
    narrow = (X if np.issubdtype(dtype, np.floating) else whole).astype(dtype)
    model = fit(Estimator, narrow, solver=solver, max_iter=SHORT)
    wide = fit(Estimator, narrow.astype(np.float64), solver=solver, max_iter=SHORT)
    assert_sound(model)
    assert np.allclose(model.predict(narrow), wide.predict(narrow.astype(np.float64)), atol=1e-5)


@both
@any_solver
@pytest.mark.parametrize(
    "data",
    [
        np.column_stack([X, np.full(60, 5.0)]),
        np.column_stack([np.zeros(60), X]),
        np.zeros_like(X),
        np.ones_like(X),
        X[:, :1],
        np.repeat(X[:, :1], 3, axis=1),
    ],
    ids=["constant column", "zero column", "zeros", "ones", "one feature", "equal columns"],
)
def test_degenerate_inputs_work(Estimator: Any, solver: str, data: np.ndarray) -> None:
    model = fit(Estimator, data, solver=solver)
    assert_sound(model)
    assert model.predict(data).shape == (60,)


@any_solver
@pytest.mark.parametrize("constant", [0.0, 3.0, -3.0, 1e-100])
def test_constant_targets_work(solver: str, constant: float) -> None:
    model = fit(SparseMLPRegressor, X, np.full(60, constant), solver=solver)
    assert_sound(model)
    if solver == "auto":
        assert model.predict(X) == pytest.approx(np.full(60, constant), rel=1e-6)
        assert model.nonzeros_ <= 1


@any_solver
def test_one_row_works(solver: str) -> None:
    model = fit(SparseMLPRegressor, X[:1], [2.5], solver=solver)
    assert_sound(model)
    if solver == "auto":
        assert model.predict(X[:1]) == pytest.approx([2.5])


@any_solver
def test_one_row_of_each_class_works(solver: str) -> None:
    model = fit(SparseMLPClassifier, X[:2], ["no", "yes"], solver=solver)
    assert_sound(model)
    if solver == "auto":
        assert model.predict(X[:2]).tolist() == ["no", "yes"]


@both
def test_rows_too_few_for_early_stopping_are_refused(Estimator: Any) -> None:
    y = [0, 1] if Estimator is SparseMLPClassifier else [0.5]
    with pytest.raises(DataError, match=r"rows to set aside.*early_stopping=False"):
        fit(Estimator, X[: len(y)], y, early_stopping=True, validation_fraction=0.9)


@both
@any_solver
def test_a_failed_fit_leaves_the_caller_and_the_estimator_alone(Estimator: Any, solver: str) -> None:
    model = fit(Estimator, X, solver=solver)
    before, parameters = model.network_, model.get_params()
    with pytest.raises(DataError):
        model.fit(with_entry(X, 1e39), targets(Estimator))
    assert model.network_ is before
    assert model.get_params() == parameters
