"""The page of a sweep: it holds everything, mixes nothing, and works in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import Page, opened, program

from thresher.errors import DataFileError
from thresher.experiments import EXPERIMENTS, Cell, Choices, Outcome
from thresher.experiments.fullest import fullest
from thresher.experiments.record import CellFile
from thresher.experiments.settings import Settings, write_settings
from thresher.report.page import result_folders, write_page

COMMAND = "thresher reproduce figure-1 --quick --out <results>"
PHONE, DESKTOP = 390, 1280


def outcome(cell: Cell, number: int) -> Outcome:
    result = {
        "score": 10.0 + number,
        "fit_seconds": 0.5 * number,
        "peak_bytes": 2**20 * (number + 1),
        "nonzeros": cell["budget"],
        "status": "max_iter",
        "cut": ["4,000 of 50,000 rows"],
    }
    return Outcome(cell, "print", "done", 1.0, result, None, {"threads": 1, "python": "3.11.7"})


def results(folder: Path) -> Path:
    """Write a small sweep: two methods, two seeds, and one cell that failed."""
    choices = Choices(
        quick=True, parts=("left",), methods=("paper", "auto"), m=(2, 10), s=(20, 100), seeds=(0, 1)
    )
    cells = EXPERIMENTS["figure-1"].chosen(choices)
    place = folder / "figure-1"
    place.mkdir(parents=True)
    file = CellFile(place / "cells.jsonl")
    for number, cell in enumerate(cells[:-1]):
        file.append(outcome(cell, number))
    file.append(Outcome(cells[-1], "print", "failed", 1.0, {}, "DataError: <b>no</b> luck"))
    write_settings(place, Settings(COMMAND, {"quick": True}, 2))
    return folder


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = results(tmp_path_factory.mktemp("page") / "results")
    return write_page(folder, folder / "report.html")


class Inventory(HTMLParser):
    """Count what a page holds, and note what it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]


def test_the_page_needs_nothing_else(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    inventory = Inventory(text)
    assert all(address.startswith(("data:image/svg+xml;base64,", "#")) for address in inventory.addresses)
    assert "link" not in inventory.tags
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", text)
    assert inventory.tags.count("img") == 2


def test_the_page_tells_how_it_was_made(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert "thresher reproduce figure-1 --quick --out &lt;results&gt;" in text
    for word in ("15 cells are done", "1 failed", "quick = True", "cores", "torch", "Cut"):
        assert word in text
    assert "<b>no</b>" not in text


def test_the_same_results_give_the_same_page(page_file: Path, tmp_path: Path) -> None:
    again = write_page(page_file.parent, tmp_path / "again.html")
    assert again.read_bytes() == page_file.read_bytes()


def test_stored_results_have_a_page(tmp_path: Path) -> None:
    stored = Path(__file__).parents[2] / "results"
    names = [folder.name for folder in result_folders(stored)]
    assert names == [name for name in EXPERIMENTS if name in names]
    assert {"table-1", "recovery"} <= set(names)
    text = write_page(stored / "recovery", tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"[1-9]\d* cells are done", text)
    assert "The command was not recorded" in text or "thresher reproduce recovery" in text


def test_a_quick_run_and_a_full_one_are_not_mixed() -> None:
    def cell(rows: int, seed: int = 0) -> Cell:
        configuration: dict[str, Any] = {
            "part": "left",
            "method": "paper",
            "n": rows,
            "hidden": 1,
            "budget": 1,
        }
        return Cell("figure-1", configuration, seed)

    quick, full = outcome(cell(4_000), 0), outcome(cell(50_000), 1)
    again = outcome(cell(50_000), 2)
    assert fullest([quick]) == ([quick], 0)
    assert fullest([full, quick, again]) == ([again], 1)
    # Where rows are what varies, few of them are no quick run.
    assert fullest([quick, again], ("hidden", "n")) == ([quick, again], 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "holds no results"),
        ({"notes.txt": "mine"}, "holds no results"),
        ({"cells.jsonl": "mine\n"}, "line 1 of"),
        ({"cells.jsonl": ""}, "holds nothing yet"),
        ({"cells.jsonl": "foreign"}, "holds nothing yet"),
    ],
)
def test_a_folder_without_results_is_said(tmp_path: Path, content: dict[str, str], message: str) -> None:
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataFileError, match=message):
        write_page(tmp_path, tmp_path / "report.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(content)


def test_a_sweep_without_cells_does_not_spoil_the_page_of_others(tmp_path: Path) -> None:
    folder = results(tmp_path)
    (folder / "table-1").mkdir()
    (folder / "table-1" / "cells.jsonl").touch()
    assert [place.name for place in result_folders(folder)] == ["figure-1"]


def test_results_of_an_unknown_experiment_are_said(tmp_path: Path) -> None:
    CellFile(tmp_path / "cells.jsonl").append(Outcome(Cell("figure-9", {}, 0), "print", "done", 1.0))
    with pytest.raises(DataFileError, match=r"holds figure-9, where results of one of figure-1"):
        write_page(tmp_path, tmp_path / "report.html")


@pytest.mark.parametrize("result", [{}, {"psnr": "high"}, {"psnr": None}, {"psnr": 161.0, "floor": []}])
def test_results_that_cannot_be_summed_up_are_said(result: dict[str, Any], tmp_path: Path) -> None:
    configuration = {"n": 8000, "d": 100, "hidden": 10, "budget": 500, "k": 2, "steps": 100}
    file = CellFile(tmp_path / "cells.jsonl")
    file.append(Outcome(Cell("table-1", configuration, 0), "print", "done", 1.0, result))
    with pytest.raises(DataFileError, match=r"cells\.jsonl holds results that cannot be summed up"):
        write_page(tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"does not exist"):
        write_page(tmp_path / "none", tmp_path / "report.html")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Start a browser, or skip the test and say what is missing."""
    if program() is None:
        pytest.skip("needs a browser: install chromium (Debian: apt-get install chromium)")
    pytest.importorskip("websocket", reason="needs the package websocket-client")
    with opened(tmp_path_factory.mktemp("browser") / "profile") as started:
        yield started


def test_a_browser_loads_the_page_without_errors_or_network(page: Page, page_file: Path) -> None:
    page.requests.clear()
    page.open(page_file, DESKTOP)
    assert page.problems == []
    loaded = [address for address in page.requests if not address.startswith("data:")]
    assert loaded == [page_file.resolve().as_uri()]
    assert page.ask("[...document.images].every((image) => image.complete && image.naturalWidth > 300)")


def test_a_cell_shows_its_numbers_on_hover(page: Page, page_file: Path) -> None:
    page.open(page_file, DESKTOP)
    assert page.ask("document.getElementById('tip').hidden") is True
    page.point_at(".panel td button")
    page.wait_for("document.getElementById('tip').hidden === false")
    told = page.ask("document.getElementById('tip').textContent").splitlines()
    # The first panel is the paper's algorithm, and its first row the largest width.
    assert told[0] == "paper (IHT): m = 10, s = 20"
    assert told[1] == "PSNR (dB): 18.00, standard deviation 4.00"
    assert "seeds: 0, 1" in told
    page.point_at("h1")
    page.wait_for("document.getElementById('tip').hidden === true")


def test_a_cell_opens_its_details(page: Page, page_file: Path) -> None:
    page.open(page_file, DESKTOP)
    page.click(".panel td button")
    page.wait_for("document.getElementById('details').open")
    rows = page.ask("[...document.querySelectorAll('#details tr')].map((row) => row.innerText)")
    text = "\n".join(rows)
    for word in ("seed 0", "seed 1", "max_iter", "batch_size", "threads", "4,000 of 50,000 rows"):
        assert word in text
    page.click("#close")
    page.wait_for("!document.getElementById('details').open")
    page.click("tr:has(td.failed) button.open")
    page.wait_for("document.getElementById('details').open")
    assert "DataError: <b>no</b> luck" in page.ask("document.getElementById('details').innerText")


def test_another_quantity_can_be_shown(page: Page, page_file: Path) -> None:
    page.open(page_file, DESKTOP)
    before = page.ask("document.querySelector('.panel td button').textContent")
    page.ask(
        "(() => { const select = document.querySelector('.explore select'); select.value = '2';"
        "select.dispatchEvent(new Event('change')); })()"
    )
    after = page.ask("document.querySelector('.panel td button').textContent")
    assert (before, after) == ("18", "9.0")


def test_the_table_is_sorted_both_ways(page: Page, page_file: Path) -> None:
    page.open(page_file, DESKTOP)
    column = "table.cells thead th:nth-child(4)"
    values = (
        "[...document.querySelectorAll('table.cells tbody tr')].map((row) => row.children[3].dataset.value)"
    )
    assert page.ask(f"document.querySelector('{column}').innerText.trim().startsWith('fit_seconds')")
    for direction in ("ascending", "descending"):
        page.click(f"{column} button")
        assert page.ask(f"document.querySelector('{column}').getAttribute('aria-sort')") == direction
        shown = page.ask(values)
        # The cell that failed has no number, and stays last.
        assert shown[-1] == ""
        numbers = [float(value) for value in shown[:-1]]
        assert numbers == sorted(numbers, reverse=direction == "descending")
        assert len(set(numbers)) == 15


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_page_fits_its_window(page: Page, page_file: Path, width: int) -> None:
    page.open(page_file, width)
    assert page.ask("document.documentElement.scrollWidth") <= width
    small = page.ask(
        "[...document.querySelectorAll('p, td, th, li, summary, button')].filter((each) => each.offsetParent"
        " && parseFloat(getComputedStyle(each).fontSize) < 11.5).map((each) => each.outerHTML)"
    )
    assert small == []
    assert page.problems == []


def test_colours_of_cells_can_be_read(page: Page, page_file: Path) -> None:
    page.open(page_file, DESKTOP)
    contrasts = page.ask(
        "(() => { const light = (text) => { const linear = text.match(/\\d+/g).map((part) => { const value ="
        " part / 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; });"
        " return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05; };"
        " return [...document.querySelectorAll('.panel td button')].map((button) => { const style ="
        " getComputedStyle(button); const pair = [light(style.color), light(style.backgroundColor)];"
        " return Math.max(...pair) / Math.min(...pair); }); })()"
    )
    assert len(contrasts) == 8
    assert min(contrasts) > 4.5


def test_data_cannot_end_its_script(page_file: Path) -> None:
    text = page_file.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    cells = json.loads(found.group(1))["figure-1"]["cells"]
    assert [cell["error"] for cell in cells if cell["error"]] == ["DataError: <b>no</b> luck"]
    # Cells come sorted by what varies, whatever the order in which they were finished.
    places = [(cell["method"], cell["m"], cell["s"], cell["seed"]) for cell in cells]
    assert places == sorted(places)
