"""A table is looked over: each column is read as what it holds, and all problems come in one message."""

from __future__ import annotations

import json
import shlex
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from thresher.data.column import Column
from thresher.data.columns import option
from thresher.data.encoding import Encoding
from thresher.data.prepared import prepare
from thresher.data.survey import Held, learn_encoding, survey
from thresher.data.tables import open_table
from thresher.data.wishes import Wishes
from thresher.errors import DataError, ParameterError, ThresherError

ROWS = 60


def seen(cells: list[Any], **wishes: Any) -> Any:
    """Look over a table of this column, x, and a target."""
    frame = pd.DataFrame({"x": pd.Series(cells), "z": np.arange(len(cells)) * 0.5, "y": range(len(cells))})
    return survey(Held(frame), "y", Wishes(**wishes))


def column(cells: list[Any], **wishes: Any) -> np.ndarray:
    """Give the inputs that a column becomes."""
    found = seen(cells, **wishes)
    assert found.problems == ()
    return found.encoding.matrix(found.frame)[:, :-1]


READ = {
    "numbers": ([1.5, 2.0], "number", [1.5, 2.0]),
    "numbers as text": (["1.5", " 2 "], "number", [1.5, 2.0]),
    "a mark for missing": (["1", "?", "3"], "number", [1.0, np.nan, 3.0]),
    "decimal commas": (["1,5", "2,25"], "number", [1.5, 2.25]),
    "thousands": (["1,234.5", "999"], "number", [1234.5, 999.0]),
    "currency": (["EUR 1.234,50", "EUR 2"], "number", [1234.5, 2.0]),
    "percent": (["12%", "3.5 %"], "number", [12.0, 3.5]),
    "yes and no": (["yes", "No", "Y"], "yes or no", [1.0, 0.0, 1.0]),
    "ja and nein": (["ja", "nein"], "yes or no", [1.0, 0.0]),
    "days": (["2024-01-01", "2024-02-01"], "date", [0.0, 31.0]),
    "days first": (["13/05/2024", "14/05/2024"], "date", [0.0, 1.0]),
    "months first": (["05/13/2024", "05/14/2024"], "date", [0.0, 1.0]),
    "times": (["06:30", "18:00"], "date", [6.5, 18.0]),
    "points in time": ([pd.Timestamp("2024-01-01"), pd.NaT], "date", [0.0, np.nan]),
    "clocks and UTC": (["2024-01-01 06:00:00 UTC", "2024-01-02 18:00:00 UTC"], "date", [0.25, 1.75]),
    "letters' dates": (
        ["Mon, 01 Jan 2024 23:00:00 -0100", "Tue, 02 Jan 2024 12:00:00 +0000"],
        "date",
        [0.0, 0.5],
    ),
    "a unit of measurement": (["12 km", "3.5 km"], "number", [12.0, 3.5]),
    "a minus at the end": (["12.5-", "3.5"], "number", [-12.5, 3.5]),
    "dates as objects": ([date(2024, 1, 1), None, date(2024, 1, 9)], "date", [0.0, np.nan, 8.0]),
    "decimals as objects": ([Decimal("1.50"), Decimal(2), None], "number", [1.5, 2.0, np.nan]),
    "booleans": ([True, False], "number", [1.0, 0.0]),
}


@pytest.mark.parametrize("case", READ)
def test_columns_are_read_as_what_they_hold(case: str) -> None:
    cells, read_as, values = READ[case]
    found = seen(cells)
    assert found.reports[0].read_as == read_as
    assert found.reports[0].missing == np.isnan(values).sum()
    assert np.array_equal(found.encoding.matrix(found.frame)[:, 0], values, equal_nan=True)


@pytest.mark.parametrize("case", READ)
def test_what_was_learned_survives_json_and_reads_again(case: str) -> None:
    found = seen(READ[case][0])
    plain = json.loads(json.dumps(found.encoding.to_details(), allow_nan=False))
    again = Encoding.from_details(plain, found.encoding.features)
    assert again == found.encoding
    assert np.array_equal(again.matrix(found.frame), found.encoding.matrix(found.frame), equal_nan=True)


LEFT_OUT = {
    "nothing": ([None] * 9, "no value in any row"),
    "marks of nothing": (["-", "n.a.", None] * 3, "no value in any row"),
    "one text": (["same"] * 9, "one value only"),
    "identifiers": ([f"A{i}" for i in range(ROWS)], f"identifier: {ROWS} different texts"),
    "free text": ([f"a word or {i}" for i in range(ROWS)], f"free text: {ROWS} different texts"),
    "codes, some of digits": ([*map(str, range(20)), *(f"A/{i}" for i in range(40))], "identifier"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_tells_nothing_is_left_out_and_said(case: str) -> None:
    cells, note = LEFT_OUT[case]
    found = seen(cells)
    assert found.encoding.features == ("z",)
    assert found.reports[0].read_as == "left out"
    assert note in found.reports[0].note


@pytest.mark.parametrize("name", ["id", "ID", "Customer ID", "patient_id", "rowId", "row number"])
def test_numbers_of_rows_are_left_out_by_name(name: str) -> None:
    frame = pd.DataFrame({name: range(7, 7 + ROWS), "a": np.arange(ROWS) % 5, "y": range(ROWS)})
    assert learn_encoding(frame, "y").features == ("a",)
    assert learn_encoding(frame, "y", readings={name: "number"}).features == (name, "a")
    # Another name, or a number that comes twice, and it may mean something.
    assert learn_encoding(frame.rename(columns={name: "humid"}), "y").features == ("humid", "a")
    assert learn_encoding(frame.assign(**{name: np.arange(ROWS) // 2}), "y").features == (name, "a")


def test_text_with_few_values_stays_text() -> None:
    found = seen(["unknown", "yes", "no", "?"])
    assert found.encoding.features[:-1] == ("x=?", "x=no", "x=unknown", "x=yes")


PROBLEMS = {
    "numbers with a text": (
        ["1,5", "2,5", "3,5", "4,5", "many"],
        "mixes numbers and text: row 5 holds 'many'",
    ),
    "dates with a text": (["2024-01-01"] * 9 + ["soon"], "mixes dates and text: row 10 holds 'soon'"),
    "dates of two kinds": (
        ["2024-01-01", "02/01/2024", "2024-01-03", "04/01/2024"],
        "not written alike: '2024-01-01' in row 1, '02/01/2024' in row 2",
    ),
    "days or months": (["01/02/2024", "03/04/2024"], "--as x=date:%d/%m/%Y or --as x=date:%m/%d/%Y"),
    "thousands or decimals": (["1,234", "2,345"], "Say --decimal . or --decimal ,"),
    "two currencies": (["5 EUR", "5 USD"], "mixes units: EUR, USD"),
    "percent or not": (["5%", "0.5"], "holds numbers with % and without"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_what_may_mean_two_things_is_refused_with_what_to_say(case: str) -> None:
    cells, message = PROBLEMS[case]
    if case == "thousands or decimals":
        # Beside numbers with fractions, the mark is clear.
        frame = pd.DataFrame({"x": cells, "y": range(len(cells))})
        with pytest.raises(DataError, match=message):
            learn_encoding(frame, "y")
        return
    found = seen(cells)
    assert message in found.problems[0]


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (["2024-01-01T10:00+02:00", "2024-01-02T10:00+01:00"], "days since 2024-01-01, in UTC"),
        (["2024-01-01T10:00", "2024-01-02T10:00"], "days since 2024-01-01"),
        (pd.date_range("2024-01-02", periods=2, tz="Asia/Tokyo"), "days since 2024-01-01, in UTC"),
        (["5 kg", "7 kg"], "kg"),
        (["12", "(7)"], "'(7)' is below zero"),
        (["12", "7-"], "'7-' is below zero"),
    ],
)
def test_what_may_surprise_is_said(cells: Any, note: str) -> None:
    assert seen(cells).reports[0].note == note


def test_what_is_asked_for_is_done() -> None:
    assert column(["01/02/2024", "03/04/2024"], readings={"x": "date:%m/%d/%Y"})[:, 0].tolist() == [0, 62]
    parts = column(["2024-01-01", "2024-01-07"], readings={"x": "date+week+year"})
    assert parts.tolist() == [[0, 1, 1], [6, 7, 7]]
    assert column(["1,234", "2,345"], decimal=",").ravel().tolist() == [1.234, 2.345]
    assert np.isnan(column(["1", "many", "3"], readings={"x": "number"})).ravel().tolist() == [
        False,
        True,
        False,
    ]
    assert column(["5%", "0.5"], readings={"x": "number"}).ravel().tolist() == [5, 0.5]
    assert seen(["5", " 6"], readings={"x": "number"}).encoding.as_written == ()
    assert column(["yes", "no"], text=("x",)).tolist() == [[0, 1], [1, 0]]
    assert seen(["a", "b"], readings={"x": "ignore"}).encoding.features == ("z",)


@pytest.mark.parametrize("reading", ["dat", "number+week", "date+month", "date:dmy", "text:%d", ""])
def test_readings_that_do_not_exist_are_refused(reading: str) -> None:
    with pytest.raises(
        ParameterError, match="a column is read as one of date, duration, number, text, ignore"
    ):
        seen([1, 2], readings={"x": reading})


def test_all_problems_come_in_one_message() -> None:
    frame = pd.DataFrame(
        {"a": [1, 2, "x"], "day": ["1/2/24", "1/2/24", "3/4/24"], "b": [1, None, 2], "y": [1, 2, None]}
    )
    with pytest.raises(DataError) as caught:
        prepare(frame, "y")
    told = str(caught.value).splitlines()
    assert told[0] == "4 things about this table have to be settled:"
    for line, words in zip(
        told[1:], ("'a' mixes", "'day' holds", "target 'y' is missing", "column 'b'"), strict=True
    ):
        assert line.startswith("  - ")
        assert words in line


@pytest.mark.parametrize("name", ["total price", "a;b", "it's", "$(rm)", "a,b", "-x", "q=r"])
def test_suggestions_can_be_pasted_into_a_shell(name: str) -> None:
    for how in ("ignore", "text", "date:%d/%m/%Y"):
        words = shlex.split(option(how, name))
        value = words[-1].removeprefix("--as=").removeprefix("--ignore=").removeprefix("--text=")
        assert value in (name, f"{name}={how}")
        assert len(words) <= 2


def test_a_clean_table_is_read_as_pandas_reads_it(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(draw.normal(size=(50, 4)) * 10.0 ** draw.integers(-9, 9, size=(50, 4)))
    frame = frame.add_prefix("c").assign(
        n=draw.integers(-5, 5, 50), flag=draw.random(50) < 0.5, zero=0, y=draw.random(50)
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    ready = prepare(open_table(tmp_path / "t.csv"), "y", test_share=0)
    plain = pd.read_csv(tmp_path / "t.csv")
    assert ready.encoding.features == tuple(plain.columns[:-1])
    assert ready.encoding.as_written == ()
    assert np.array_equal(ready.X, plain.drop(columns="y").to_numpy(np.float64))
    assert np.array_equal(ready.y, plain["y"].to_numpy())


def write(path: Path, text: str) -> Any:
    path.write_text(text)
    return open_table(path)


def test_a_decimal_comma_anywhere_makes_points_thousands(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "a;b;c;y\n1,5;1.234;2.5;1\n2,5;12.500;3.5;2\n3,5;999;4.5;3\n")
    ready = prepare(table, "y", test_share=0)
    assert ready.X.tolist() == [[1.5, 1234, 2.5], [2.5, 12500, 3.5], [3.5, 999, 4.5]]
    # Without one, a point is what it is in most files.
    table = write(tmp_path / "u.csv", "a;b;y\n1;1.234;1\n2;12.500;2\n3;999;3\n")
    assert prepare(table, "y", test_share=0).X[:, 1].tolist() == [1.234, 12.5, 999]


def test_a_decimal_comma_is_remembered_for_whole_numbers_as_well(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "a;b;y\n1,5;1;1\n2,5;2;2\n3,5;3;3\n")
    encoding = prepare(table, "y", test_share=0).encoding
    other = write(tmp_path / "u.csv", "a;b\n1;1.234\n2;3,5\n")
    assert encoding.matrix(other.frame(as_written=encoding.as_written)).tolist() == [[1, 1234], [2, 3.5]]


def test_what_comes_as_numbers_is_not_read_as_text() -> None:
    for cells, numbers in ((["1.234,5", "2,25"], [1.234, 2.25]), (["yes", "no"], [True, False])):
        encoding = seen(cells).encoding
        other = pd.DataFrame({"x": numbers, "z": 0.0})
        assert encoding.matrix(other)[:, 0].tolist() == numbers


def test_where_commas_part_cells_they_set_thousands_apart(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", 'a,y\n"1,234",1\n"2,345",2\n999,3\n')
    assert prepare(table, "y", test_share=0).X.ravel().tolist() == [1234, 2345, 999]
    table = write(tmp_path / "u.csv", "a;y\n1,234;1\n2,345;2\n999;3\n")
    with pytest.raises(DataError, match="Say --decimal"):
        prepare(table, "y", test_share=0)


def test_names_that_come_twice_are_kept_apart_unless_one_is_the_target(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "a,a,y\n1,2,1\n3,4,2\n5,7,3\n")
    ready = prepare(table, "y", test_share=0)
    assert ready.encoding.features == ("a", "a (2)")
    assert ready.columns[1].note == "another column called 'a'"
    with pytest.raises(DataError, match="several columns are called 'a', and that is the target"):
        prepare(table, "a")


@pytest.mark.parametrize(
    ("cells", "task", "values"),
    [
        (['"EUR 123,456.00"', '"EUR 7.50"'], "regression", [123456.0, 7.5]),
        (["12.5%", "7%"], "regression", [12.5, 7.0]),
        (["007", "008"], "classification", ["007", "008"]),
        (["9007199254740993", "9007199254740992"], "classification", [2**53 + 1, 2**53]),
        (["1e19", "1"], "classification", ["1e19", "1"]),
        (["18446744073709551615", "1"], "classification", ["18446744073709551615", "1"]),
        (["yes", "no"], "classification", ["yes", "no"]),
    ],
)
def test_targets_are_numbers_where_they_look_it_and_labels_come_back(
    cells: list[str], task: str, values: list[Any], tmp_path: Path
) -> None:
    table = write(
        tmp_path / "t.csv", "a,y\n" + "".join(f"{place},{cell}\n" for place, cell in enumerate(cells * 2))
    )
    ready = prepare(table, "y", test_share=0)
    assert ready.task == task
    assert ready.y.tolist() == values * 2


def test_a_target_of_dates_has_to_be_asked_for(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "a,y\n1,2024-01-01\n2,2024-01-05\n3,2024-02-01\n4,2024-02-01\n")
    with pytest.raises(DataError, match="holds dates: say --as y=date for days since"):
        prepare(table, "y")
    assert prepare(table, "y", readings={"y": "date"}, task="regression", test_share=0).y.tolist() == [
        0,
        4,
        31,
        31,
    ]
    assert prepare(table, "y", text=("y",), test_share=0).y[0] == "2024-01-01"


def test_labels_may_mix_numbers_and_text_where_classes_are_asked_for(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "a,y\n1,1\n2,2\n3,x\n")
    with pytest.raises(DataError, match="the target 'y' mixes numbers and text"):
        prepare(table, "y")
    assert prepare(table, "y", task="classification", test_share=0).y.tolist() == ["1", "2", "x"]


def test_cells_that_are_no_cells_are_refused() -> None:
    assert "holds dict in row 2" in seen(["x", {}, "y"]).problems[0]


def test_codes_keep_their_zeros_where_they_are_text(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "code,y\n01,1.5\n1,2.5\n01,3.5\n")
    ready = prepare(table, "y", text=("code",), test_share=0)
    assert ready.encoding.features == ("code=01", "code=1")
    assert ready.X.tolist() == [[1, 0], [0, 1], [1, 0]]


def test_an_indicator_says_where_a_value_is_missing() -> None:
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": ["p", "q", None], "c": [1, 2, 3], "y": [1, 2, 3]})
    ready = prepare(frame, "y", missing="indicator", test_share=0)
    assert ready.encoding.features == ("a", "a is missing", "b=p", "b=q", "b is missing", "c")
    assert ready.X.tolist() == [[1, 0, 1, 0, 0, 1], [2, 1, 0, 1, 0, 2], [3, 0, 0.5, 0.5, 1, 3]]
    details = json.loads(json.dumps(ready.details()["table"]))
    again = Encoding.from_details(details, ready.encoding.features)
    other = pd.DataFrame({"a": [None], "b": ["q"], "c": [5]})
    assert again.filled(again.matrix(other)).tolist() == [[2, 1, 0, 1, 0, 5]]


def test_models_from_before_cells_were_remembered_still_read() -> None:
    details = {
        "columns": [{"name": "a"}, {"name": "b", "values": ["1", "x"]}],
        "missing": "error",
        "means": None,
    }
    encoding = Encoding.from_details(details, ("a", "b=1", "b=x"))
    assert encoding.as_written == ()
    assert encoding.matrix(pd.DataFrame({"a": [0.5], "b": [1.0]})).tolist() == [[0.5, 1, 0]]


@pytest.mark.parametrize(
    "part",
    [
        {"as": "colour"},
        {"as": "number", "decimal": ";", "lenient": False},
        {"as": "number"},
        {"as": "date", "form": None, "origin": "yesterday", "parts": ["days"]},
        {"as": "date", "form": None, "origin": "2024-01-01", "parts": ["month"]},
        {"as": "text"},
        {"as": "yes-no", "yes": "yes", "no": "no", "values": ["yes"]},
    ],
)
def test_notes_on_cells_that_make_no_sense_are_refused(part: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="fit it again"):
        Encoding.from_details({"columns": [{"name": "a", **part}], "missing": "error", "means": None}, ("a",))


PIECES = (
    *(
        "1",
        "2.5",
        "1,5",
        '"1,234"',
        '"EUR 5,00"',
        "12%",
        "(5)",
        "$3",
        "1e19",
        "1e400",
        "inf",
        "0x1f",
        "1_000",
        "\u0663",
    ),
    *(
        "yes",
        "no",
        "Ja",
        "True",
        "2024-01-05",
        "13/05/2024",
        "1/2/24",
        "10:30",
        "May 5, 2024",
        "0000-01-01",
        "9999-12-31",
    ),
    *(
        "",
        "?",
        "-",
        "NA",
        "  ",
        "red",
        "a b c d",
        "007",
        "\x1b[1m",
        "\u20ac",
        '"x\ny"',
        '"',
        "\u200b1",
        "9007199254740993",
    ),
)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_a_table_holds_it_is_read_alike_twice_or_refused_in_words(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    mark, columns, rows = draw.choice([",", ";", "\t", "|"]), draw.integers(2, 5), draw.integers(2, 30)
    held = [draw.choice(PIECES, draw.integers(1, 5)) for _ in range(columns)]
    lines = [mark.join(draw.choice(["a", "b", "id", "x y", "", "gr\u00f6\u00dfe"], columns))]
    lines += [mark.join(draw.choice(cells) for cells in held) for _ in range(rows)]
    content = bytearray("\n".join(lines).encode(draw.choice(["utf-8", "utf-16", "utf-8-sig"])))
    for _ in range(draw.integers(0, 4)):
        content[draw.integers(len(content))] = draw.integers(256)
    (tmp_path / "t.csv").write_bytes(content)
    table = open_table(tmp_path / "t.csv")
    try:
        names = table.frame().columns
        reading = (
            {names[0]: str(draw.choice(["date", "number", "text", "date+week"]))} if seed % 3 == 0 else {}
        )
        ready = prepare(table, names[-1], missing="indicator", readings=reading, test_share=0)
    except ThresherError:
        return
    assert np.isfinite(ready.X).all()
    plain = json.loads(json.dumps(ready.details()["table"], allow_nan=False))
    again = Encoding.from_details(plain, ready.encoding.features)
    assert again == ready.encoding
    frame = table.frame(as_written=again.as_written)
    assert len(list(table.rows())) == len(frame) + 1
    if ready.dropped == 0:
        assert np.array_equal(again.filled(again.matrix(frame)), ready.X)


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (["71 \u00b5g/L", "8 \u00b5g/L", "9.5 \u00b5g/L"], "\u00b5g/L"),
        (["71k", "8k", "9.5k"], "k"),
        (["3 rooms", "8 rooms", "12 rooms"], "rooms"),
        (["7 \u00b1 2", "8 \u00b1 2", "11.5 \u00b1 2"], ""),
    ],
)
def test_what_stands_behind_every_number_is_no_part_of_it(cells: list[str], note: str) -> None:
    (said,) = [each for each in seen(cells).reports if each.column == "x"]
    if not note:
        assert said.read_as == "text"
        return
    assert (said.read_as, said.note) == ("number", note)
    encoding = seen(cells).encoding
    later = pd.DataFrame({"x": ["4 " + note, None, "5" + note], "z": [1, 2, 3]})
    again = Column.from_details(encoding.columns[0].to_details())
    np.testing.assert_array_equal(again.encoded(later["x"])[:, 0], [4, np.nan, 5])
    with pytest.raises(DataError, match="'6 feet'"):
        again.encoded(pd.Series(["6 feet"], name="x"))


def test_a_last_row_of_totals_is_refused() -> None:
    draw = np.random.default_rng(0)
    table = pd.DataFrame(
        {"a": draw.integers(1, 9, 20), "b": draw.normal(5, 1, 20).round(2), "y": draw.normal(size=20)}
    )
    whole = pd.concat([table, table.sum().to_frame().T.round(9)], ignore_index=True)
    with pytest.raises(
        DataError, match="row 21, the last one, holds the sums of all rows above it in a, b, y"
    ):
        learn_encoding(whole, "y")
    # One column may add up by chance, as zeros do.
    learn_encoding(table.assign(a=[1] * 19 + [19], b=0.0), "y")


def test_a_title_above_the_header_is_told() -> None:
    table = pd.DataFrame([["age", "weight"], [1, 2]], columns=["Survey of people", "Unnamed: 1"])
    with pytest.raises(ParameterError, match="where a title stands above"):
        learn_encoding(table, "age")
