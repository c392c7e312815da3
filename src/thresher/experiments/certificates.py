"""Certificates put to the test: 500 planted networks, recovered and spoiled, and no false proof.

Each problem is planted by assumption 1(a), 1(b), as in the paper's section 5, or with three neurons that sum
to zero. The default solver fits it; what it recovers exactly should be certified. Spoiled versions of the
planted network, some of them the same function, must not be certified as fitting and unique in a dictionary
unless they are equivalent to the planted one.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from thresher.data.assumed import assumed
from thresher.data.planted import planted, psnr
from thresher.experiments.experiment import Choices, Experiment, Summary, Table
from thresher.experiments.fits import PERFECT
from thresher.experiments.record import Cell, Outcome

if TYPE_CHECKING:
    from thresher.network import Network

BATCHES, PROBLEMS = 25, 20
QUICK_BATCHES, QUICK_PROBLEMS = 1, 4
KINDS = ("1(a)", "1(b)", "section 5", "triple")
QUICK = ("own", "opposite", "one-sided", "one-sparse", "sampled")
# Enumerated pairs of features are many: every fifth problem asks for them, and only for what was recovered.
EVERY_FIFTH = "two-sparse"
# Relative difference of weights up to which networks count as one; float32 labels leave 1e-8 to 1e-6 open.
EQUIVALENT = 1e-5


def _cells(choices: Choices) -> list[Cell]:
    batches, problems = (QUICK_BATCHES, QUICK_PROBLEMS) if choices.quick else (BATCHES, PROBLEMS)
    rows = choices.rows or 600
    return [
        Cell("certificates", {"n": rows, "problems": problems}, seed)
        for seed in choices.seeds or range(batches)
    ]


def _fingerprint(cell: Cell) -> str:
    digest = hashlib.sha256(json.dumps(dict(cell.configuration), sort_keys=True).encode())
    for number in range(2):
        for part in _problem(cell, number)[1:]:
            digest.update(np.ascontiguousarray(part).astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def _problem(
    cell: Cell, number: int
) -> tuple[str, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Draw a problem: its kind, hidden weights, signs, rows and float32 labels."""
    seed = 1000 * cell.seed + number
    rng = np.random.default_rng([17, seed])
    kind = KINDS[number % len(KINDS)]
    d, neurons, largest = int(rng.integers(5, 13)), int(rng.integers(1, 8)), int(rng.integers(1, 4))
    n = int(rng.integers(cell["n"] // 3, cell["n"] + 1))
    if kind == "section 5":
        problem = planted(n, d, neurons, max(neurons, 2 * neurons), negative=0.4, seed=seed)
    else:
        neurons = min(neurons, d)
        problem = assumed(n, d, neurons, largest, "a" if kind == "1(a)" else "b", seed=seed)
    assert problem.signs is not None
    U, signs = problem.weights[0].toarray().astype(np.float64), problem.signs.astype(np.float64)
    live = (U != 0).any(axis=0)
    U, signs = U[:, live], signs[live]
    X = problem.X.astype(np.float64)
    if kind == "triple":
        pair = np.zeros((d, 2))
        for column in range(2):
            pair[rng.choice(d, 2, replace=False), column] = rng.standard_normal(2)
        U, signs = np.hstack([U, pair, -pair.sum(axis=1, keepdims=True)]), np.append(signs, [1.0, 1.0, 1.0])
    y = (np.maximum(X @ U, 0) @ signs).astype(np.float32).astype(np.float64)
    return kind, U, signs, X, y


def _measure(cell: Cell) -> dict[str, Any]:
    quality, records = [], []
    for number in range(cell["problems"]):
        fit, found = records_of(cell, number)
        quality.append(fit)
        records += found
    return {"psnr": statistics.median(quality), **gathered(records)}


def records_of(cell: Cell, number: int) -> tuple[float, list[dict[str, Any]]]:
    """Certify what the solver makes of one problem, and spoiled versions; give its PSNR and all claims."""
    from thresher.experiments.spoiled import network, shuffled, variants
    from thresher.theory.matching import match

    kind, U, signs, X, y = _problem(cell, number)
    rng = np.random.default_rng([23, cell.seed, number])
    truth = network(U, signs)
    fitted = _fitted(X, y, truth.hidden[0], int(np.count_nonzero(U)))
    dictionaries = (*QUICK, EVERY_FIFTH) if number % 5 == 0 else QUICK
    tried = [("recovered", fitted, dictionaries), ("planted", shuffled(U, signs, rng), QUICK)]
    tried += [(name, made, QUICK) for name, made in variants(U, signs, X, y, rng)]
    records = []
    for name, made, asked in tried:
        same = match(made, truth).equivalent(EQUIVALENT)
        about = {"kind": kind, "s": int(np.count_nonzero(U)), "what": name, "same": same}
        records.append({**about, **_asked(made, X, y, asked)})
    return min(PERFECT, psnr(y, fitted.predict(X))), records


def gathered(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Keep of all certificates their number, whatever is false, and those of exactly recovered networks."""
    wrong = [record for record in records if not record["same"]]
    kept = ("kind", "s", "support", "isolated", "unique")
    return {
        "tried": dict(Counter(record["what"] for record in records)),
        "wrong": len(wrong),
        "wrong but fitting": sum(record["fits"] for record in wrong),
        "false": [record for record in wrong if record["fits"] and record["unique"]],
        "exact": [
            {**{name: record[name] for name in kept}, "pairs asked": EVERY_FIFTH in record["asked"]}
            for record in records
            if record["what"] == "recovered" and record["same"]
        ],
    }


def _fitted(X: NDArray[np.float64], y: NDArray[np.float64], hidden: int, budget: int) -> Network:
    from thresher.estimators import SparseMLPRegressor

    model = SparseMLPRegressor(budget=budget, hidden=hidden, bias=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y).network_


def _asked(
    made: Network, X: NDArray[np.float64], y: NDArray[np.float64], dictionaries: Sequence[str]
) -> dict[str, Any]:
    """Certify a network, and give what is claimed in a few letters."""
    from thresher.theory.certificate import certify
    from thresher.theory.levels import ISOLATED, ON_SUPPORT

    found = certify(made, X, y, dictionary=dictionaries)
    claims = {name: status for name, status in found.levels.items() if "dictionary" in name}
    proved = [name.split("(")[1][:-1] for name, status in claims.items() if status == "holds"]
    return {
        "fits": found["fits"].holds,
        "support": found.levels[ON_SUPPORT] == "holds",
        "isolated": found.levels[ISOLATED] == "holds",
        "asked": list(dictionaries),
        "unique": proved,
    }


def _summarise(outcomes: Sequence[Outcome]) -> Summary:
    results = [outcome.result for outcome in outcomes]
    tried: Counter[str] = Counter()
    for result in results:
        tried.update(result["tried"])
    found = [record for result in results for record in result["exact"]]
    numbers = {
        "problems": tried["planted"],
        "networks": sum(tried.values()),
        "not equivalent": sum(result["wrong"] for result in results),
        "not equivalent and fitting": sum(result["wrong but fitting"] for result in results),
        "false proofs": sum(len(result["false"]) for result in results),
        "recovered exactly": len(found),
        "unique on its support": _share([record["support"] for record in found]),
        "isolated": _share([record["isolated"] for record in found]),
        "tried": dict(tried),
    }
    levels = Table(
        "Certificates of planted networks that were recovered exactly",
        ("what", "share or number"),
        tuple((name, value) for name, value in numbers.items() if not isinstance(value, dict)),
        "a false proof is a claim of fitting and unique in a dictionary, for a network that is not the "
        "planted one",
    )
    table, by_size = _by_size(found)
    return Summary((levels, table), {**numbers, "unique in the dictionary": by_size})


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
    varies=("n", "problems"),
)
