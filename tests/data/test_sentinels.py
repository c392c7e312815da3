"""Numbers that stand for missing values are pointed out, and can be taken for what they are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from thresher.data.column import Column
from thresher.data.prepared import prepare
from thresher.data.sentinels import sentinels
from thresher.data.survey import Held, learn_encoding, survey
from thresher.data.wishes import Wishes
from thresher.errors import DataError, ParameterError

DRAW = np.random.default_rng(0)
AGES = DRAW.integers(20, 80, 100).astype(float)


@pytest.mark.parametrize("mark", [-999.0, 9999.0, -1e30, -99.0, 99999.0, -200.0])
def test_a_repeated_value_far_from_the_rest_is_one(mark: float) -> None:
    assert sentinels(np.r_[AGES, mark, mark, mark]) == [mark]
    assert sentinels(np.r_[AGES, np.nan, mark, mark, mark, -9999, -9999]) == sorted([mark, -9999])


@pytest.mark.parametrize(
    "values",
    [
        np.r_[AGES, 9999.0],  # once: an outlier, or a mistake
        np.r_[AGES, 90.0, 90.0, 90.0, 90.0],
        np.r_[np.zeros(50), AGES],
        np.r_[np.zeros(50), np.ones(50), 9.0, 9.0, 9.0],
        np.exp(DRAW.normal(size=1000) * 2),
        DRAW.poisson(0.5, 1000) ** 3.0,
        np.round(DRAW.standard_cauchy(1000)),
    ],
)
def test_what_measured_columns_hold_is_none(values: np.ndarray) -> None:
    assert sentinels(values) == []


def test_the_report_names_the_option_and_the_option_works() -> None:
    table = pd.DataFrame({"age": np.r_[AGES, -999, -999], "y": np.arange(102.0)})
    (said,) = survey(Held(table), "y", Wishes()).reports
    assert said.note == "-999 2 times, far from all others: a missing value?"
    assert said.override == "--as age=number:-999"
    with pytest.raises(DataError, match="2 of 102 rows lack a value"):
        prepare(table, "y", readings={"age": "number:-999"})
    ready = prepare(table, "y", readings={"age": "number:-999"}, missing="drop", test_share=0.0)
    assert ready.X.shape == (100, 1) and ready.X.min() >= 20


@pytest.mark.parametrize("kind", [float, str])
def test_marks_are_missing_in_later_tables_too(kind: type) -> None:
    table = pd.DataFrame({"age": pd.Series(np.r_[AGES, -999, -999]).astype(kind), "y": np.arange(102.0)})
    encoding = learn_encoding(table, "y", readings={"age": "number:-999,9999"}, missing="mean")
    (column,) = encoding.columns
    again = Column.from_details(column.to_details())
    later = pd.Series([30, -999, 9999, 999], name="age").astype(kind)
    np.testing.assert_array_equal(again.encoded(later)[:, 0], [30, np.nan, np.nan, 999])


def test_a_target_is_looked_at_as_well() -> None:
    table = pd.DataFrame({"x": np.arange(102.0), "age": np.r_[AGES, -999, -999]})
    assert prepare(table, "age").why.endswith("a missing value? --as age=number:-999")
    ready = prepare(table, "age", readings={"age": "number:-999"}, missing="drop", test_share=0.0)
    assert len(ready.y) == 100


def test_what_are_no_numbers_is_refused() -> None:
    with pytest.raises(ParameterError, match="number:-999,9999"):
        Wishes(readings={"age": "number:none"}).asked()
