"""The page of a model tells what it can with and without rows, and a browser of any width shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from browser import Page, opened, program
from networks import NETWORKS, ODD_NAMES, fused, rows_for
from sklearn.model_selection import train_test_split
from typer.testing import CliRunner, Result

from thresher.cli.app import app
from thresher.data.aside import as_fitted, record
from thresher.network import Network
from thresher.network.conformal import entry
from thresher.report.model_graph import graph_data
from thresher.report.model_page import Told, write_model_page
from thresher.report.model_scores import intervals_of, scores_of

PHONE, DESKTOP = 360, 1200


def invoke(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="thresher")


def page_of(network: Network, folder: Path, rows: bool, **told: object) -> str:
    model = folder / "my model.thresher"
    network.save(model)
    given = {}
    if rows:
        X = rows_for(network).astype(float)
        given = {"data": "rows.csv", "X": X, "y": network.predict(X), "certified": False}
    return write_model_page(network, Told(model, **given, **told), folder / "page.html").read_text()


@pytest.mark.parametrize(
    "name", [name for name in NETWORKS if name not in ("log", "linear", "softmax, deep, floats")]
)
def test_every_network_has_a_graph(name: str) -> None:
    network = NETWORKS[name]
    found = graph_data(network)
    json.dumps(found, allow_nan=False)
    counts = [len(nodes) for nodes in found["columns"]]
    assert counts[0] == len(network.inputs_used())
    assert counts[-1] == network.outputs
    for layer, start, end, weight, share in found["links"]:
        assert start < counts[layer]
        assert end < counts[layer + 1]
        assert weight is None or 0 < share <= 1
    assert all(np.isfinite(node["bias"]) for nodes in found["columns"] for node in nodes)


@pytest.mark.parametrize(
    "name", ["fused", "direct, softmax", "logistic, deep", "zero", "log, direct, many outputs"]
)
def test_pages_with_rows_and_without(tmp_path: Path, name: str) -> None:
    network = NETWORKS[name]
    bare = page_of(network, tmp_path, rows=False)
    assert "No rows were given, so there are no scores" in bare
    assert "thresher report &#39;my model.thresher&#39; TABLE.csv" in bare
    assert "Not asked for" in bare
    full = page_of(network, tmp_path, rows=True)
    assert "measured on 40 rows of rows.csv" in full
    assert "best constant" in full
    for text in (bare, full):
        assert len(re.findall(r"<section", text)) == len(re.findall(r"</section>", text)) == 7
        assert "{{" not in text
        assert "None" not in text.replace("NoneType", "")


def test_the_page_certifies_on_the_rows_of_the_fit_with_the_others_held_out(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((100, 2))
    made = Network.fused(np.eye(2), None, [1, -1])
    y = made.predict(X)
    kept, others, y_kept, y_others = train_test_split(X, y, test_size=20, random_state=3)
    calibration = entry(np.abs(made.predict(others) - y_others)[:, None], "held out")
    details = {"rows": record(kept, y_kept, 0.2, 3), "calibration": calibration}
    network = replace(made, details=details)
    network.save(tmp_path / "m.thresher")
    split = as_fitted(X, y, "regression", network.details["rows"])
    told = Told(tmp_path / "m.thresher", "d.csv", X, y, fitted=(split.X, split.y), aside=split.aside)
    text = write_model_page(network, told, tmp_path / "page.html").read_text()
    assert "All 20 held-out rows agree to rounding" in text
    # Intervals hold nine of ten of the rows that calibrated them, whatever the network is worth.
    assert "90% of targets are within" in text
    assert "On these rows it is" not in text
    assert "a share of 0.2 set aside with seed 3" in text


def test_a_page_of_many_nonzeros_has_effects_in_place_of_a_formula(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).standard_normal((15, 20))
    text = page_of(Network.fused(weights, None, np.ones(20, dtype=int)), tmp_path, rows=True)
    assert "Not written out: 300 nonzeros are too many to read (at most 200)." in text
    assert text.count('<img src="data:image/svg') == 15


def test_scores_are_those_of_the_predictions() -> None:
    from sklearn.metrics import balanced_accuracy_score, log_loss, r2_score

    rng = np.random.default_rng(0)
    regression, classes = NETWORKS["direct"], NETWORKS["softmax"]
    X = rows_for(regression).astype(float)
    y = regression.predict(X) + rng.normal(size=len(X))
    told = scores_of(regression, X, y)
    rows = {name: value for name, value, _ in told["rows"]}
    assert rows["R2"] == pytest.approx(r2_score(y, regression.predict(X)))
    assert next(constant for _, _, constant in told["rows"]) == pytest.approx(0.0)
    assert "interval of R2" in told["interval"]
    X = rows_for(classes).astype(float)
    labels = rng.choice(classes.classes, len(X))
    found = scores_of(classes, X, labels)
    rows = {name: value for name, value, _ in found["rows"]}
    assert rows["balanced accuracy"] == pytest.approx(balanced_accuracy_score(labels, classes.predict(X)))
    assert rows["log loss"] == pytest.approx(log_loss(labels, classes.predict_proba(X)))
    assert np.sum(found["confusion"]["counts"]) == len(X)


@pytest.mark.parametrize("name", ["direct", "softmax", "log, direct"])
def test_intervals_are_those_of_the_calibration(name: str) -> None:
    network = NETWORKS[name]
    assert "calibrat" in str(intervals_of(network)["why"])
    rng = np.random.default_rng(0)
    X = rows_for(network, 100).astype(float)
    y = network.predict(X) if network.classes is not None else network.predict(X) + rng.normal(size=100)
    scores = rng.random((100, 1)) if network.classes is None else rng.random(100)
    kept = replace(network, details={"calibration": entry(scores, "held out")})
    assert "90%" in str(intervals_of(kept)["found"])
    assert "On these rows" in str(intervals_of(kept, X, y)["found"])


def test_nothing_in_names_can_end_the_page(tmp_path: Path) -> None:
    # A file cannot hold half of a character.
    odd = [name.replace("\ud800", "") for name in ODD_NAMES[:8]]
    names = ["</script><b>", "<img src=x onerror=alert(1)>", *odd]
    text = page_of(fused(features=names, details={"target": "</pre>"}), tmp_path, rows=True)
    assert "<b>" not in text
    assert "<img src=x" not in text
    assert text.count("</script>") == 2


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of a small model with all there is, and of one with 500 nonzeros."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.uniform(280, 320, 60), rng.uniform(980, 1040, 60)])
    cost = 9 + 0.5 * np.maximum(table[:, 0] - 300.2, 0) - 0.1 * table[:, 1] + rng.normal(size=60) * 0.2
    lines = ["temperature [K],pressure (hPa),cost"]
    lines += [f"{a:.3f},{b:.3f},{c:.4f}" for (a, b), c in zip(table, cost, strict=True)]
    (folder / "small.csv").write_text("\n".join(lines) + "\n")
    network = Network.fused(
        [[0.5], [0.0]],
        [-150.1],
        [1],
        direct=[0.0, -0.1],
        output_bias=9.0,
        features=["temperature [K]", "pressure (hPa)"],
        details={"target": "cost"},
    )
    network.save(folder / "small.thresher")
    weights = (rng.random((80, 60)) < 0.09) * rng.normal(size=(80, 60))
    names = [f"a sensor with a long name {i}" for i in range(80)]
    large = Network.fused(weights, rng.normal(size=60), rng.choice([-1, 1], 60), features=names)
    assert large.nonzeros > 450
    large.save(folder / "large.thresher")
    asked = ("--stability", "--pairs", 1)
    result = invoke("report", folder / "small.thresher", folder / "small.csv", *asked)
    assert (result.exit_code, result.stdout) == (0, f"wrote {folder / 'small.html'}\n")
    assert invoke("report", folder / "large.thresher", "--quiet").exit_code == 0
    return {name: folder / f"{name}.html" for name in ("small", "large")}


def test_a_page_has_all_that_was_asked_for(pages: dict[str, Path]) -> None:
    text = pages["small"].read_text()
    assert "(temperature above 300.2 K)" in text
    assert "if-then tables" in text
    assert "intervals of weights and thresholds" in text
    assert "inputs are stable" in text
    assert "What is proved" in text
    large = pages["large"].read_text()
    assert "too many to read" in large
    assert "give X" in large


def test_bad_input_is_explained(pages: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pages["small"].parent)
    for args, message in (
        (("small.thresher", "--stability"), "give the table after the model"),
        ((".", "small.csv"), "is no model file"),
        (("small.csv",), "not a model file"),
        (("none.thresher",), "does not exist"),
        (("small.thresher", "small.csv", "--target", "price"), "has no column 'price'"),
    ):
        result = invoke("report", *args)
        assert result.exit_code == 2
        assert message in result.stderr, result.stderr
        assert "Traceback" not in result.stderr


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Start a browser, or skip the test and say what is missing."""
    if program() is None:
        pytest.skip("needs a browser: install chromium (Debian: apt-get install chromium)")
    pytest.importorskip("websocket", reason="needs the package websocket-client")
    with opened(tmp_path_factory.mktemp("browser") / "profile") as started:
        yield started


@pytest.mark.parametrize("name", ["small", "large"])
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_a_page_fits_its_window_and_loads_nothing(
    browser: Page, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.requests.clear()
    browser.open(pages[name], width)
    browser.wait_for("document.querySelector('#graph svg') !== null")
    assert browser.problems == []
    loaded = [address for address in browser.requests if not address.startswith("data:")]
    assert loaded == [pages[name].resolve().as_uri()]
    assert browser.ask("document.documentElement.scrollWidth") <= width
    small = browser.ask(
        "[...document.querySelectorAll('p, td, th, li, summary, button, text')].filter((each) =>"
        " each.getClientRects().length && parseFloat(getComputedStyle(each).fontSize) < 11.5)"
        ".map((each) => each.outerHTML)"
    )
    assert small == []
    # Labels do not leave the graph, and do not cover each other.
    boxes = browser.ask(
        "[...document.querySelectorAll('#graph text')].map((each) => each.getBoundingClientRect())"
        ".map((box) => [box.left, box.right, box.top, box.bottom])"
    )
    assert min(box[0] for box in boxes) >= 0
    assert max(box[1] for box in boxes) <= width
    first = sorted(box for box in boxes if box[1] < width / 2)
    by_height = sorted(first, key=lambda box: box[2])
    assert all(two[2] >= one[3] - 4 for one, two in pairwise(by_height))


def test_a_node_shows_its_connections(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["large"], DESKTOP)
    browser.wait_for("document.querySelector('#graph svg') !== null")
    assert browser.ask("document.getElementById('tip').hidden") is True
    browser.point_at("#graph .node[data-column='0'][data-node='7'] circle")
    browser.wait_for("document.getElementById('tip').hidden === false")
    told = browser.ask("document.getElementById('tip').textContent").splitlines()
    label = browser.ask("GRAPH.columns[0][7].label")
    assert told[0] == label
    assert all(line.startswith(("to ", "and ")) for line in told[1:])
    lit = browser.ask("document.querySelectorAll('#graph path.on').length")
    assert lit == browser.ask("JOINED[0][7].length") > 0
    browser.point_at("h1")
    browser.wait_for("document.getElementById('tip').hidden === true")


def test_inputs_are_put_in_order(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["large"], DESKTOP)
    browser.wait_for("document.querySelector('#graph svg') !== null")
    shown = (
        "[...document.querySelectorAll(\"#graph .node[data-column='0']\")].map((each) =>"
        " [each.getBoundingClientRect().top, each.getAttribute('aria-label')])"
    )

    def order(by: str) -> list[str]:
        browser.ask(
            f"(() => {{ const select = document.getElementById('order'); select.value = '{by}';"
            "select.dispatchEvent(new Event('change')); })()"
        )
        return [label for _, label in sorted(browser.ask(shown))]

    names = order("name")
    assert names == sorted(names)
    assert len({tuple(order(by)) for by in ("crossings", "matter", "name")}) == 3
    lines = browser.ask("document.querySelectorAll('#graph path').length")
    browser.click("#strong")
    fewer = browser.ask("document.querySelectorAll('#graph path').length")
    assert 0.4 * lines < fewer < 0.7 * lines


def test_tables_are_sorted_both_ways(browser: Page, pages: dict[str, Path]) -> None:
    browser.open(pages["large"], DESKTOP)
    browser.ask("document.querySelector('#graph-section details').open = true")
    column = "#links thead th:nth-child(3)"
    rows = "[...document.querySelectorAll('#links tbody tr')]"
    values = f"{rows}.map((row) => Number(row.children[2].dataset.value))"
    for direction in ("ascending", "descending"):
        browser.click(f"{column} button")
        assert browser.ask(f"document.querySelector('{column}').getAttribute('aria-sort')") == direction
        shown = browser.ask(values)
        assert shown == sorted(shown, reverse=direction == "descending")
