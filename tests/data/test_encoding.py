"""From columns to inputs: readable names, missing values as told, and errors that name row and column."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from thresher.data.columns import as_numbers, is_text
from thresher.data.encoding import Encoding
from thresher.data.prepared import prepare
from thresher.data.survey import learn_encoding
from thresher.data.targets import read_target
from thresher.errors import DataError, ParameterError

TABLE = pd.DataFrame(
    {
        "size": [1.0, 2.0, None, 4.0],
        "colour": ["red", "blue", "red", None],
        "new": [True, False, True, True],
        "y": [0, 1, 1, 0],
    }
)


def test_text_becomes_one_input_for_each_value() -> None:
    encoding = learn_encoding(TABLE, "y")
    assert encoding.features == ("size", "colour=blue", "colour=red", "new")
    X = encoding.matrix(TABLE)
    assert X[:2].tolist() == [[1, 0, 1, 1], [2, 1, 0, 0]]
    assert np.isnan(X[2]).tolist() == [True, False, False, False]
    assert np.isnan(X[3]).tolist() == [False, True, True, False]


def test_means_fill_what_is_missing_and_are_those_of_training() -> None:
    encoding = learn_encoding(TABLE, "y", missing="mean").with_means(
        learn_encoding(TABLE, "y").matrix(TABLE.iloc[:3])
    )
    X = encoding.filled(encoding.matrix(TABLE))
    assert X[2, 0] == 1.5
    assert X[3, 1:3] == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize("missing", ["error", "drop", "mean"])
def test_an_encoding_survives_json(missing: str) -> None:
    encoding = learn_encoding(TABLE, "y", missing=missing)
    encoding = encoding.with_means(encoding.matrix(TABLE))
    plain = json.loads(json.dumps(encoding.to_details(), allow_nan=False))
    again = Encoding.from_details(plain, encoding.features)
    assert again == encoding
    assert np.array_equal(again.matrix(TABLE), encoding.matrix(TABLE), equal_nan=True)


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"columns": 3, "missing": "error", "means": None},
        {"columns": [{"nome": "a"}], "missing": "error", "means": None},
        {"columns": [{"name": "b"}], "missing": "error", "means": None},
        {"columns": [{"name": "a"}], "missing": "mean", "means": [1.0, 2.0]},
        {"columns": [{"name": "a"}], "missing": "never", "means": None},
        {"columns": [{"name": "a"}], "missing": "mean", "means": ["x"]},
    ],
)
def test_notes_that_make_no_sense_are_refused(details: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="fit it again"):
        Encoding.from_details(details, ("a",))


def sparse_table(columns: list[int], rows: int = 5) -> pd.DataFrame:
    X = scipy.sparse.random_array(
        (rows, len(columns)), density=0.5, rng=np.random.default_rng(0), format="csr"
    )
    frame = pd.DataFrame.sparse.from_spmatrix(X, columns=[f"x{column}" for column in columns])
    frame["y"] = 1.0
    return frame


def test_a_sparse_table_stays_sparse_and_finds_its_columns_by_name() -> None:
    encoding = learn_encoding(sparse_table([1, 2, 3]), "y")
    assert encoding.sparse
    other = sparse_table([3, 1, 9])
    X = encoding.matrix(other)
    assert scipy.sparse.issparse(X)
    assert X.indices.dtype == np.int32
    expected = np.column_stack([other["x1"], np.zeros(5), other["x3"]])
    assert X.toarray() == pytest.approx(expected)
    details = json.loads(json.dumps(encoding.to_details()))
    assert details["columns"] is None
    assert Encoding.from_details(details, encoding.features) == encoding
    with pytest.raises(DataError, match="another data set"):
        encoding.matrix(TABLE)


def test_a_sparse_table_may_lack_values() -> None:
    frame = sparse_table([1, 2])
    frame["x1"] = pd.arrays.SparseArray([1.0, np.nan, 0.0, 3.0, 0.0], fill_value=0.0)
    encoding = learn_encoding(frame, "y", missing="mean")
    X = encoding.matrix(frame)
    filled = encoding.with_means(X).filled(X)
    assert filled.toarray()[:, 0] == pytest.approx([1, 1, 0, 3, 0])


def test_row_numbers_without_a_name_are_no_input() -> None:
    frame = pd.DataFrame({"Unnamed: 0": [0, 1], "a": [3, 4], "y": [0, 1]})
    assert learn_encoding(frame, "y").features == ("a",)


def test_columns_can_be_ignored_and_taken_as_text() -> None:
    frame = pd.DataFrame({"zip": [8001, 8002, 8001], "id": ["p", "q", "r"], "a": [1, 2, 3], "y": [1, 2, 3]})
    encoding = learn_encoding(frame, "y", ignore=("id",), text=("zip",))
    assert encoding.features == ("zip=8001", "zip=8002", "a")
    floats = frame.assign(zip=[8001.0, None, 8002.0])
    assert encoding.matrix(floats)[[0, 2], :2].tolist() == [[1, 0], [0, 1]]


MIXED = {
    "numbers with a text": ([1, 2, "x", 4], "row 3 holds 'x', row 1 holds"),
    "text with a number": (["p", "q", "3", "r"], "row 3 holds '3', row 1 holds 'p'"),
    "an object": ([1, 2, {}, 4], "holds dict in row 3"),
}


@pytest.mark.parametrize("case", MIXED)
def test_mixed_columns_are_named_by_row_and_column(case: str) -> None:
    values, message = MIXED[case]
    frame = pd.DataFrame({"size": pd.Series(values, dtype=object), "y": [0, 1, 0, 1]})
    with pytest.raises(DataError, match=message) as caught:
        learn_encoding(frame, "y")
    assert "column 'size'" in str(caught.value)
    assert "--ignore size" in str(caught.value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.Series([1.0, np.inf, 2.0]), "holds inf in row 2"),
        (pd.Series([1j, 2j, 3j]), "complex"),
        (
            pd.Series([f"name {i}" for i in range(50)]),
            "left out: 'a' .identifier: 50 different texts in 50 rows",
        ),
    ],
)
def test_columns_that_are_neither_are_refused(column: pd.Series, message: str) -> None:
    with pytest.raises(DataError, match=message):
        learn_encoding(pd.DataFrame({"a": column, "y": 1.0}), "y")


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pd.Series(["1", "2", None]), False),
        (pd.Series(["a", None]), True),
        (pd.Series([None, None]), False),
        (pd.Series(["a", "b"], dtype="category"), True),
        (pd.Series([1, 2], dtype="category"), False),
        (pd.Series([1, None], dtype="Int64"), False),
        (pd.Series([True, None], dtype="boolean"), False),
        (pd.Series([True, None], dtype=object), False),
    ],
)
def test_text_and_numbers_are_told_apart(column: pd.Series, text: bool) -> None:
    assert is_text(column) == text
    if not text:
        assert as_numbers(column).dtype == np.float64


def test_another_table_is_told_from_the_right_one() -> None:
    encoding = learn_encoding(TABLE, "y")
    with pytest.raises(DataError, match="lacks 1: colour") as caught:
        encoding.matrix(TABLE.rename(columns={"colour": "Color"}))
    assert "Did you mean 'Color'?" in str(caught.value)
    # Of many names that are missing none is a slip, however alike one looks.
    with pytest.raises(DataError, match="another data set") as caught:
        encoding.matrix(pd.DataFrame({"Color": [1], "sizes": [2]}))
    assert "Did you mean" not in str(caught.value)
    with pytest.raises(DataError, match="nothing that the model knows, such as 'wood'"):
        encoding.matrix(TABLE.assign(colour="wood"))
    with pytest.raises(DataError, match="column 'size' holds text"):
        encoding.matrix(TABLE.assign(size="large"))


def test_unknown_text_is_none_of_the_values_and_counted() -> None:
    encoding = learn_encoding(TABLE, "y")
    other = TABLE.assign(colour=["red", "green", "blue", "green"])
    assert encoding.matrix(other)[1, 1:3].tolist() == [0, 0]
    assert encoding.unknown_texts(other) == {"colour": 2}


@pytest.mark.parametrize(
    ("values", "task", "kind"),
    [
        (["a", "b"], "classification", "U"),
        ([True, False], "classification", "b"),
        ([1, 2, 1], "classification", "i"),
        ([-1.0, 1.0], "classification", "i"),
        (list(range(11)), "regression", "f"),
        ([0.5, 1.0], "regression", "f"),
        ([1.0, None, 0.0], "classification", "i"),
    ],
)
def test_the_task_is_told_by_the_target(values: list[Any], task: str, kind: str) -> None:
    told = read_target(pd.Series(values, name="y"))
    assert (told.task, told.values.dtype.kind) == (task, kind)
    assert told.present.tolist() == [value is not None for value in values]


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        ([None, None], "auto", "has no value in any of 2 rows"),
        (["a", "b"], "regression", "use --task classification"),
        ([0.5, 1.0], "classification", "holds 0.5 in row 1"),
        (["a", "1", "b"], "auto", "mixes numbers and text"),
    ],
)
def test_targets_that_do_not_fit_are_refused(values: list[Any], task: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_target(pd.Series(values, name="y", dtype=object), task)


def test_missing_values_are_treated_as_told() -> None:
    with pytest.raises(DataError, match="row 3 after the header, column 'size'"):
        prepare(TABLE, "y", test_share=0)
    dropped = prepare(TABLE, "y", missing="drop", test_share=0)
    assert (len(dropped.y), dropped.dropped) == (2, 2)
    filled = prepare(TABLE, "y", missing="mean", test_share=0)
    assert (len(filled.y), filled.dropped) == (4, 0)
    assert not np.isnan(filled.X).any()
    lacking = TABLE.assign(y=[0, None, 1, 1])
    with pytest.raises(DataError, match="is missing in 1 of 4 rows, the first row 2"):
        prepare(lacking, "y")
    assert prepare(lacking, "y", missing="mean", test_share=0).dropped == 1


def test_empty_columns_are_left_out_and_rows_may_all_be_incomplete() -> None:
    frame = TABLE.assign(size=None)
    ready = prepare(frame, "y", missing="mean", test_share=0)
    assert ready.encoding.features == ("colour=blue", "colour=red", "new")
    assert ready.columns[0].note == "no value in any row"
    with pytest.raises(DataError, match="leaves none of 4"):
        prepare(frame.assign(size=[None, None, 1, 2], new=[1, 2, None, None]), "y", missing="drop")


def test_rows_are_set_aside_of_every_class_alike() -> None:
    frame = pd.DataFrame({"a": np.arange(50.0), "y": ["p"] * 40 + ["q"] * 10})
    one, two = (prepare(frame, "y", seed=seed) for seed in (0, 0))
    assert (one.y_test == "q").sum() == 2
    assert np.array_equal(one.X, two.X)
    assert sorted([*one.X.ravel(), *one.X_test.ravel()]) == frame["a"].tolist()


def test_a_table_to_test_on_is_encoded_alike() -> None:
    ready = prepare(TABLE, "y", missing="mean", test=TABLE.iloc[:2])
    assert np.array_equal(ready.X_test, ready.X[:2])
    with pytest.raises(DataError, match="give both of one kind"):
        prepare(TABLE, "y", missing="mean", test=TABLE.assign(y=["a", "b", "a", "b"]))
    with pytest.raises(ParameterError, match="needs the target 'y'"):
        prepare(TABLE, "y", missing="mean", test=TABLE.drop(columns="y"))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"target": "Y"}, "--target 'Y', but the table has no such column. Did you mean 'y'?"),
        ({"target": "y", "ignore": ("colr",)}, "--ignore 'colr'.*Did you mean 'colour'"),
        ({"target": "y", "text": ("what",)}, "Its columns are size, colour, new, y"),
        ({"target": "y", "task": "guess"}, "--task 'guess'"),
        ({"target": "y", "missing": "guess"}, "missing='guess'"),
    ],
)
def test_wrong_choices_are_explained(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message.replace("?", r"\?")):
        prepare(TABLE, **{"missing": "mean", **choices})


def test_a_split_needs_rows() -> None:
    with pytest.raises(DataError, match="cannot be split"):
        prepare(TABLE.iloc[:2], "y", test_share=0.1)
    with pytest.raises(DataError, match="no column but the target"):
        prepare(TABLE[["y"]], "y")


def test_details_hold_what_a_model_must_know() -> None:
    details = prepare(TABLE, "y", missing="mean", test_share=0).details()
    assert json.loads(json.dumps(details, allow_nan=False)) == details
    assert (details["target"], details["task"]) == ("y", "classification")
    assert details["spread"][3] == pytest.approx(np.std([1, 0, 1, 1]), rel=1e-5)
