"""What `thresher fit` says about a model: measures beside those of peers, an interval, confusions, doubts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thresher.cli.live import LiveTable
from thresher.cli.screen import print_table

if TYPE_CHECKING:
    from thresher.data.prepared import Prepared
    from thresher.experiments.peers import Peer
    from thresher.experiments.scores import Confusion, Values
    from thresher.network import Network

# Larger tables of confusions are in the JSON document alone.
MOST_CLASSES = 12

# Decimals of measures in the JSON document.
DIGITS = 6


@dataclass(frozen=True, eq=False)
class Scores:
    """What was measured on the rows set aside.

    Attributes
    ----------
    values : dict
        Measures by name, the score first; empty where no rows were set aside.
    interval : (float, float), optional
        Where the score of so many rows drawn alike lies, 19 times in 20.
    confusion : Confusion, optional
        Of a classifier.
    notes : list of str
        What makes these numbers doubtful.
    peers : tuple of Peer
        The same measures of other models.
    """

    values: Values
    interval: tuple[float, float] | None = None
    confusion: Confusion | None = None
    notes: tuple[str, ...] = ()
    peers: tuple[Peer, ...] = ()

    @property
    def score(self) -> float | None:
        """Accuracy or R2."""
        first = next(iter(self.values.values()), None)
        return None if first is None else round(first, 4)

    def with_peers(self, peers: tuple[Peer, ...]) -> Scores:
        """Give the same with peers beside it."""
        return replace(self, peers=peers)

    def document(self) -> dict[str, Any]:
        """Write all of it as plain values."""
        return {
            "score": self.score,
            "interval": None if self.interval is None else [round(end, DIGITS) for end in self.interval],
            "measures": {
                name: None if value is None else float(f"{value:.{DIGITS}g}")
                for name, value in self.values.items()
            },
            "confusion": None
            if self.confusion is None
            else {"labels": self.confusion.labels, "counts": self.confusion.counts.tolist()},
            "notes": list(self.notes),
            "peers": [asdict(peer) for peer in self.peers],
        }


def scores_of(network: Network, ready: Prepared) -> Scores:
    """Measure a network on the rows that were set aside, if there are any."""
    from thresher.experiments import scores

    truth = ready.y_test
    if truth is None:
        return Scores({})
    guess = network.predict(ready.X_test)
    doubts = tuple(scores.notes(ready.task, ready.y, truth))
    if network.classes is None:
        numbers = scores.number_values(truth, guess)
        interval = None if numbers["R2"] is None else scores.r2_interval(truth, guess)
        return Scores(numbers, interval, notes=doubts)
    shares = network.predict_proba(ready.X_test)
    values = scores.class_values(network.classes, truth, guess, shares)
    interval = scores.accuracy_interval(int((guess == truth).sum()), len(truth))
    return Scores(values, interval, scores.Confusion.of(network.classes, truth, guess), doubts)


def with_calibration(network: Network, ready: Prepared) -> Network:
    """Keep how far a network is off on the rows that were set aside, for its intervals."""
    from thresher.estimators.intervals import calibrated
    from thresher.estimators.intervals import scores_of as misses_of

    if ready.y_test is None:
        return network
    return calibrated(network, misses_of(network, ready.X_test, ready.y_test), "held out")


def peers_of(ready: Prepared, seed: int, shown: bool) -> tuple[Peer, ...]:
    """Fit peers to the same rows and measure them on the same others."""
    from thresher.experiments.peers import fit_peer, peer_models

    assert ready.y_test is not None
    found: list[Peer] = []
    models = peer_models(ready.task == "classification", ready.X, seed)
    with LiveTable("comparing", ("model", "score"), shown) as table:
        for name, model in models.items():
            done = [(peer.model, "-" if peer.score is None else f"{peer.score:.4f}") for peer in found]
            table.update([*done, (name, "...")], name)
            found.append(fit_peer(name, model, ready.X, ready.y, ready.X_test, ready.y_test))
    return tuple(found)


def print_scores(
    name: str, nonzeros: int, seconds: float, ready: Prepared, scores: Scores, note: str
) -> None:
    """Print the measures of a model and its peers, then the interval, confusions and doubts.

    Parameters
    ----------
    name : str
        What the model is called.
    nonzeros : int
    seconds : float
        What its fit took.
    ready : Prepared
    scores : Scores
    note : str
        What is said below the table.
    """
    import typer

    from thresher.experiments import Table
    from thresher.experiments.scores import COVERAGE, MEASURES

    measures = MEASURES[ready.task]
    ours = (name, nonzeros, *(scores.values.get(measure) for measure in measures), seconds)
    rows = [ours]
    for peer in scores.peers:
        rows.append((peer.model, peer.numbers, *map(peer.measures.get, measures), peer.seconds))
    tested = "no rows set aside" if ready.y_test is None else f"{len(ready.y_test):,} rows it has not seen"
    columns = ("model", "nonzeros", *measures, "seconds")
    print_table(Table(f"{ready.target}: {measures[0]} on {tested}", columns, tuple(rows), note))
    if scores.interval is not None:
        low, high = scores.interval
        typer.echo(
            f"{COVERAGE:.0%} interval of {measures[0]}: {low:.3f} to {high:.3f}, if rows are like these."
        )
    for doubt in scores.notes:
        typer.echo(doubt)
    for peer in scores.peers:
        if peer.problem is not None:
            typer.echo(f"{peer.model} could not be fitted: {peer.problem}")
    if scores.confusion is not None and len(scores.confusion.labels) <= MOST_CLASSES:
        _print_confusion(scores.confusion)


def _print_confusion(confusion: Confusion) -> None:
    from thresher.experiments import Table

    names = [str(label) for label in confusion.labels]
    rows = [
        (name, *map(int, counts), int(np.sum(counts)))
        for name, counts in zip(names, confusion.counts, strict=True)
    ]
    columns = ("true class", *(f"as {name}" for name in names), "rows")
    print_table(Table("Confusions: what rows of each class were taken for", columns, tuple(rows)))
