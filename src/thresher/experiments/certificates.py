"""Certificates put to the test: 1,800 planted networks, recovered and spoiled, and no false proof.

1,500 have one output and 300 several; rows and labels are plain, far from zero, of widely different scales,
repeated, or exact. The default solver fits 100 of those with one output; what it recovers exactly should be
certified. Spoiled versions of the planted network, some of them the same function, must not be certified as
fitting and unique in a dictionary unless they are the planted one, and whatever is certified is put to a
search that tries to break it: by refitting, and by moving one weight at a time.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.data.planted import psnr
from thresher.experiments.certified_problems import DATA, Problem, problem_of
from thresher.experiments.experiment import Choices, Experiment, Summary, Table
from thresher.experiments.fits import PERFECT
from thresher.experiments.record import Cell, Outcome

if TYPE_CHECKING:
    from thresher.network import Network

# Batches of problems with one output, and with several; a batch of 20 holds every pair of network and data.
BATCHES, WIDE_BATCHES, PROBLEMS = 75, 15, 20
QUICK_BATCHES, QUICK_PROBLEMS = 1, 4
# The most outputs of those with several.
MOST_OUTPUTS = 4
# The solver's fits take most of the time: every third problem of the first batches is fitted, 100 in all.
FITTED, FITTED_BATCHES = 3, 15
QUICK = ("own", "opposite", "one-sided", "one-sparse", "sampled")
# What spoiled networks are asked for: uniqueness over less is easier to claim.
SPOILED = ("own", "opposite", "one-sided", "one-sparse")
# Enumerated pairs of features are many: every fifth fit asks for them.
EVERY_FIFTH = "two-sparse"


def _cells(choices: Choices) -> list[Cell]:
    rows = choices.rows or 600
    if choices.quick:
        shapes = [(1, QUICK_BATCHES, QUICK_PROBLEMS)]
    else:
        shapes = [(1, BATCHES, PROBLEMS), (MOST_OUTPUTS, WIDE_BATCHES, PROBLEMS)]
    return [
        Cell("certificates", {"n": rows, "problems": problems, "outputs": outputs}, seed)
        for outputs, batches, problems in shapes
        for seed in choices.seeds or range(batches)
    ]


def _fingerprint(cell: Cell) -> str:
    digest = hashlib.sha256(json.dumps(dict(cell.configuration), sort_keys=True).encode())
    for number in range(2):
        problem = _problem(cell, number)
        for part in (problem.U, problem.V, problem.X, problem.y):
            digest.update(np.ascontiguousarray(part).astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def _problem(cell: Cell, number: int) -> Problem:
    return problem_of(cell["n"], cell.seed, number, cell["outputs"])


def _measure(cell: Cell) -> dict[str, Any]:
    quality, records = [], []
    for number in range(cell["problems"]):
        fit, found = records_of(cell, number)
        quality += [] if fit is None else [fit]
        records += found
    return {"psnr": statistics.median(quality) if quality else None, **gathered(records)}


def records_of(cell: Cell, number: int) -> tuple[float | None, list[dict[str, Any]]]:
    """Certify one planted network, what the solver makes of it, and spoiled versions.

    Returns
    -------
    psnr : float or None
        Of the solver's fit, where there is one.
    records : list of dict
        What each network is, what is claimed of it, and what broke that.
    """
    from thresher.experiments.spoiled import network, shuffled, variants

    problem = _problem(cell, number)
    rng = np.random.default_rng([23, cell["outputs"], cell.seed, number])
    truth = network(problem.U, problem.V, problem.c)
    tried: list[tuple[str, Network, tuple[str, ...]]] = [
        ("planted", shuffled(problem.U, problem.V, rng, problem.c), QUICK)
    ]
    spoiled = variants(problem.U, problem.V, problem.X, problem.y, rng, problem.c)
    tried += [(name, made, SPOILED) for name, made in spoiled]
    quality = None
    if cell["outputs"] == 1 and cell.seed < FITTED_BATCHES and (number + cell.seed) % FITTED == 0:
        fitted = _fitted(problem)
        quality = min(PERFECT, psnr(problem.target, fitted.predict(problem.X)))
        every_fifth = (number + cell.seed) % (5 * FITTED) == 0
        tried.append(("recovered", fitted, (*QUICK, EVERY_FIFTH) if every_fifth else QUICK))
    return quality, [_record(problem, truth, *each) for each in tried]


def _record(
    problem: Problem, truth: Network, name: str, made: Network, asked: Sequence[str]
) -> dict[str, Any]:
    """Certify a network, try to break what is claimed, and say both in a few letters."""
    from thresher.experiments.breaking import broken, same_network
    from thresher.theory.certificate import certify
    from thresher.theory.levels import ISOLATED, ON_SUPPORT

    found = certify(made, problem.X, problem.target, dictionary=asked)
    claims = {name: status for name, status in found.levels.items() if "dictionary" in name}
    simple = made.direct is None and not made.layers[0].bias.any()
    return {
        "kind": problem.kind,
        "data": problem.data,
        "s": problem.nonzeros,
        "what": name,
        "same": same_network(made, truth, problem.X, problem.hidden_by),
        "fits": found["fits"].holds,
        "support": found.levels[ON_SUPPORT] == "holds",
        "isolated": found.levels[ISOLATED] == "holds",
        "asked": list(asked),
        "unique": [each.split("(")[1][:-1] for each, status in claims.items() if status == "holds"],
        "broken": broken(made, problem.X, problem.y, problem.hidden_by, found.levels) if simple else [],
    }


def gathered(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Keep of all certificates their number, whatever is false or broken, and those that should hold."""
    wrong = [record for record in records if not record["same"]]
    kept = ("kind", "data", "s", "what", "support", "isolated", "unique")
    return {
        "tried": dict(Counter(record["what"] for record in records)),
        "claimed": sum(record["support"] or bool(record["unique"]) for record in records),
        "wrong": len(wrong),
        "wrong but fitting": sum(record["fits"] for record in wrong),
        "false": [record for record in wrong if record["fits"] and record["unique"]],
        "broken": [record for record in records if record["broken"]],
        "exact": [
            {**{name: record[name] for name in kept}, "pairs asked": EVERY_FIFTH in record["asked"]}
            for record in records
            if record["what"] in ("planted", "recovered") and record["same"]
        ],
    }


def _fitted(problem: Problem) -> Network:
    from thresher.estimators import SparseMLPRegressor

    biased = bool(problem.c.any())
    hidden = problem.U.shape[1]
    model = SparseMLPRegressor(budget=problem.nonzeros, hidden=hidden, bias=biased, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(problem.X, problem.target).network_


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    parts: dict[str, list[Mapping[str, Any]]] = {
        "one output": [outcome.result for outcome in outcomes if outcome.cell["outputs"] == 1],
        "several outputs": [outcome.result for outcome in outcomes if outcome.cell["outputs"] > 1],
    }
    parts = {name: results for name, results in parts.items() if results}
    numbers = {name: _numbers(results) for name, results in parts.items()}
    names = [name for name, value in next(iter(numbers.values())).items() if not isinstance(value, dict)]
    levels = Table(
        "Certificates of planted networks, of what the solver recovers of them, and of spoiled ones",
        ("what", *numbers),
        tuple((name, *(each[name] for each in numbers.values())) for name in names),
        "a false proof is a claim of fitting and unique in a dictionary, for a network that is not the "
        "planted one; broken is a claim that other weights refute",
    )
    found = [record for results in parts.values() for result in results for record in result["exact"]]
    recovered = [record for record in found if record["what"] == "recovered"]
    by_data = _by_data(found)
    by_size, shares = _by_size(recovered)
    return Summary((levels, by_data, by_size), {**numbers, "unique in the dictionary": shares})


def _numbers(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    from thresher.experiments.breaking import counted

    tried: Counter[str] = Counter()
    for result in results:
        tried.update(result["tried"])
    found = [record for result in results for record in result["exact"]]
    recovered = [record for record in found if record["what"] == "recovered"]
    return {
        "problems": tried["planted"],
        "networks": sum(tried.values()),
        "not equivalent": sum(result["wrong"] for result in results),
        "not equivalent and fitting": sum(result["wrong but fitting"] for result in results),
        "something claimed": sum(result["claimed"] for result in results),
        "false proofs": sum(len(result["false"]) for result in results),
        "claims broken": sum(len(result["broken"]) for result in results),
        "fitted by the default solver": tried["recovered"],
        "recovered exactly": len(recovered),
        "recovered: unique on its support": _share([record["support"] for record in recovered]),
        "recovered: isolated": _share([record["isolated"] for record in recovered]),
        "broken by": counted([record["broken"] for result in results for record in result["broken"]]),
        "tried": dict(tried),
    }


def _by_data(found: Sequence[dict[str, Any]]) -> Table:
    """Give the share of planted networks that is certified, against their rows and labels."""
    rows = []
    for data in DATA:
        here = [record for record in found if record["data"] == data and record["what"] == "planted"]
        shares = [_share([record[level] for record in here]) for level in ("support", "isolated")]
        names = ("own", "one-sided", "one-sparse")
        shares += [_share([name in record["unique"] for record in here]) for name in names]
        rows.append((data, len(here), *shares))
    columns = ("data", "networks", "unique on its support", "isolated", "own", "one-sided", "one-sparse")
    return Table("Share of the planted networks themselves that is certified", columns, tuple(rows))


def _by_size(found: Sequence[dict[str, Any]]) -> tuple[Table, dict[str, dict[str, float | None]]]:
    """Give the share that is certified unique in each dictionary, against s."""
    names = (*QUICK, EVERY_FIFTH)
    groups = ((1, 2), (3, 4), (5, 8), (9, 12), (13, 30))
    rows, numbers = [], {}
    for low, high in groups:
        here = [record for record in found if low <= record["s"] <= high]
        asked = {
            name: [name in r["unique"] for r in here if name != EVERY_FIFTH or r["pairs asked"]]
            for name in names
        }
        shares = {name: _share(values) for name, values in asked.items()}
        rows.append((f"{low} to {high}", len(here), *shares.values()))
        numbers[f"{low} to {high}"] = shares
    title = "Share certified unique in each dictionary, against s, of those recovered exactly"
    note = f"{EVERY_FIFTH} was asked for every fifth problem"
    return Table(title, ("s", "networks", *names), tuple(rows), note), numbers


def _share(values: Sequence[bool]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None


CERTIFICATES = Experiment(
    "certificates",
    "Certificates of recovered and spoiled networks: what is claimed, and that nothing false is",
    _cells,
    _fingerprint,
    _measure,
    _summarise,
    varies=("n", "problems", "outputs"),
)
