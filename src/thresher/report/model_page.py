"""One HTML page of a model that needs nothing else: scores, formula, graph, effects, what is sure."""

from __future__ import annotations

import hashlib
import json
import shlex
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher._version import __version__
from thresher.atomic import write_whole
from thresher.errors import ParameterError, ThresherError, writing
from thresher.explain import effects, explain, permutation_importance, rules
from thresher.explain.effects import Effect
from thresher.explain.naming import named_inputs
from thresher.explain.parts import kept_rows
from thresher.explain.shapley import shares_read
from thresher.network import Network
from thresher.network.description import summary
from thresher.network.formula import MOST_NONZEROS
from thresher.report.effects import plot_effects
from thresher.report.graph import output_names
from thresher.report.model_graph import graph_data
from thresher.report.model_scores import intervals_of, scores_of
from thresher.report.page import TEMPLATES, inline, readable

if TYPE_CHECKING:
    from thresher.stability import Pool, Stability

# Effects that are drawn, rows whose Shapley values are shared out, rows and nonzeros up to which a network is
# certified: a page is to be made in seconds.
DRAWN, SHARED_ROWS, CERTIFIED_ROWS, CERTIFIED_NONZEROS = 24, 200, 20_000, 200
# Details that are for programs.
LONG = ("table", "calibration", "spread")
# What directions of inputs are called.
WAYS = {"+": "rises with it", "-": "falls with it", "+-": "either", "": "-"}
# Rules that are listed.
MOST_RULES = 60


@dataclass(frozen=True, eq=False)
class Told:
    """What a page is made of besides the network.

    Attributes
    ----------
    model : path
        The model file.
    data : str, optional
        What the rows are called.
    X, y : arrays, optional
        Rows, and their targets.
    left_out : int
        Rows of the table that lacked a value.
    fitted, aside : tuple of (X, y), optional
        Those of the rows that the model was fitted to, and those that were set aside then, where known.
    stability : Stability, optional
    pool : Pool, optional
    command : str
        What makes the page again.
    certified : bool
        Whether to certify the network on the rows.
    """

    model: Path
    data: str | None = None
    X: Any = None
    y: np.ndarray | None = None
    left_out: int = 0
    fitted: tuple[Any, np.ndarray] | None = None
    aside: tuple[Any, np.ndarray] | None = None
    stability: Stability | None = None
    pool: Pool | None = None
    command: str = ""
    certified: bool = True


def write_model_page(network: Network, told: Told, path: Path) -> Path:
    """Write the page of a model, whole or not at all.

    Parameters
    ----------
    network : Network
    told : Told
    path : path
        The file to write.
    """
    content = _render(network, told)
    with writing(path, "Use --out with a file in a folder where you may write and that has room."):
        write_whole(path, content.encode())
    return path


def _render(network: Network, told: Told) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["readable"] = readable
    shown = _gathered(network, told)
    graph = json.dumps(graph_data(network, shown.pop("spread")), allow_nan=False)
    styles = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.css", "model.css")]
    return environment.get_template("model.html").render(
        **shown,
        version=__version__,
        style="\n".join(styles),
        script=(TEMPLATES / "model.js").read_text(encoding="utf-8"),
        # Nothing in the data may end the script that holds it.
        data=graph.replace("<", "\\u003c"),
    )


def _gathered(network: Network, told: Told) -> dict[str, Any]:
    about = summary(network, told.X)
    used = network.inputs_used()
    drawn = _or_why(lambda: effects(network, told.X))
    X, y = (told.X, told.y) if told.aside is None else told.aside
    spread = None
    if told.X is not None:
        part = told.X[:, used]
        dense = np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
        spread = dense.std(axis=0)
    return {
        "name": told.model.stem,
        "model": shlex.quote(told.model.name),
        "digest": hashlib.sha256(told.model.read_bytes()).hexdigest() if told.model.is_file() else None,
        "command": told.command,
        "data_name": told.data,
        "rows": None if told.X is None else int(told.X.shape[0]),
        "left_out": told.left_out,
        "about": about,
        "outputs": output_names(network),
        "hidden_layers": len(network.hidden),
        "linear": network.direct is not None and network.direct.nnz > 0,
        "scores": None if X is None or y is None else scores_of(network, X, y),
        "scored": None if told.aside is None else len(told.aside[1]),
        # Of rows that calibrated them, intervals hold what was asked for by construction.
        "intervals": intervals_of(network, X, y) if told.aside is None else intervals_of(network),
        "words": _or_why(lambda: _words(network, told)),
        "rules": _or_why(lambda: _rules(network, told.X)),
        "effects": _drawn_effects(drawn, network),
        "inputs": _inputs(network, told, drawn),
        "stability": told.stability,
        "pool": told.pool,
        "certificate": _certificate(network, told),
        "details": _details(network),
        "spread": spread,
    }


def _or_why(work: Callable[[], Any]) -> dict[str, Any]:
    """Give what can be had, or why it cannot."""
    try:
        return {"found": work(), "why": None}
    except ThresherError as error:
        return {"found": None, "why": str(error)}


def _words(network: Network, told: Told) -> dict[str, Any]:
    if network.nonzeros > MOST_NONZEROS:
        raise ParameterError(
            f"Not written out: {network.nonzeros:,} nonzeros are too many to read (at most "
            f"{MOST_NONZEROS}). What each input does is drawn below."
        )
    return explain(network, told.X, told.y).plain()


def _rules(network: Network, X: Any) -> list[dict[str, Any]]:
    found = rules(network, X)
    if len(found) > MOST_RULES:
        raise ParameterError(
            f"{len(found)} rules are too many to read (at most {MOST_RULES}): see the effects."
        )
    names = output_names(network)
    tables: dict[tuple[str, int], list[Any]] = {}
    for rule in found:
        tables.setdefault((rule.name, rule.output), []).append(rule)
    return [
        {"name": name, "output": names[output] if network.outputs > 1 else None, "rules": part}
        for (name, output), part in tables.items()
    ]


def _drawn_effects(drawn: dict[str, Any], network: Network) -> dict[str, Any]:
    """Draw an image for each of the largest effects."""
    found: list[Effect] = drawn["found"] or []
    names = output_names(network)
    images = []
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box, which says enough.
        warnings.filterwarnings("ignore", message="Glyph")
        for effect in found[:DRAWN]:
            source = inline(plot_effects([effect], names))
            images.append({"name": effect.name, "source": source, "alone": effect.alone})
    return {"images": images, "more": max(0, len(found) - DRAWN), "why": drawn["why"]}


def _inputs(network: Network, told: Told, drawn: dict[str, Any]) -> list[dict[str, Any]]:
    """List the inputs in use with what each of them does, by every measure that can be had."""
    called = {
        column: f"{name.plain} [{name.unit}]" if name.unit else name.plain
        for column, name in zip(network.inputs_used().tolist(), named_inputs(network), strict=True)
    }
    by_effect = {effect.column: effect.size for effect in drawn["found"] or ()}
    lost = shares = None
    if told.X is not None:
        lost = _or_why(lambda: permutation_importance(network, told.X, told.y))["found"]
        rows = kept_rows(told.X.shape[0], SHARED_ROWS)
        shares = _or_why(lambda: shares_read(network, told.X[rows]))["found"]
    by_share = {}
    if shares is not None:
        sizes = np.abs(shares[1]).mean(axis=(0, 2))
        by_share = dict(zip(shares[0].tolist(), sizes.tolist(), strict=True))
    found = []
    for each in summary(network, told.X)["inputs"]:
        column = each["column"]
        found.append(
            {
                "name": called[column],
                "direction": WAYS[each["direction"]],
                "importance": each["importance"],
                "effect": by_effect.get(column),
                "permutation": None if lost is None else float(lost[column]),
                "shapley": by_share.get(column),
            }
        )
    return found


def _certificate(network: Network, told: Told) -> dict[str, Any]:
    """Say what is proved, where rows came and it does not take long: on those of the fit, others held out."""
    from thresher.theory.certificate import certify

    if told.X is None or told.y is None or not told.certified:
        return {"found": None, "why": None}
    X, y = (told.X, told.y) if told.fitted is None else told.fitted
    if X.shape[0] > CERTIFIED_ROWS or network.nonzeros > CERTIFIED_NONZEROS:
        why = f"More than {CERTIFIED_ROWS:,} rows or {CERTIFIED_NONZEROS} nonzeros take long to certify."
        return {"found": None, "why": why}
    return _or_why(lambda: certify(network, X, y, held_out=told.aside))


def _details(network: Network) -> dict[str, str]:
    """Give what a model file says about itself, long parts left out."""
    short = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in network.details.items()
        if name not in LONG
    }
    rows = network.details.get("rows")
    if isinstance(rows, Mapping) and {"share", "seed", "digest"} <= rows.keys():
        kept = f"a share of {rows['share']} set aside with seed {rows['seed']}" if rows["share"] else "all"
        short["rows"] = f"{kept}; digest of those fitted {rows['digest']}"
    return {name: value if len(value) <= 300 else f"{value[:297]}..." for name, value in short.items()}
