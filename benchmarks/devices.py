"""Integer networks on devices: accuracy on all 10,000 test images, bytes, cycles, LUTs, equal outputs.

    python benchmarks/devices.py                      all of it: about an hour on one core
    python benchmarks/devices.py bits smallest        some parts
    python benchmarks/devices.py fpga --keep nets     keep trained networks in a folder, and use those in it

Networks learn from the 60,000 training images of the MNIST files that THRESHER_DATA names. Settings were
chosen on training images alone, by scoring every fifth of them with ranges chosen on the rest. Device parts
need the compilers, simulators and synthesis that `thresher device` names.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure
from measuring import Measurement, Options
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import StratifiedKFold

from thresher import Network, SparseMLPClassifier
from thresher.clock import Seconds
from thresher.data.mnist import load_mnist
from thresher.export.integer_c import bytes_of_tables
from thresher.hardware import atmega328p
from thresher.hardware import measure as on_device
from thresher.integer import IntegerNetwork
from thresher.report.style import new_figure, styled

TRAINED, PASSES = 60_000, 40

# Networks by name: how pixels are made, nonzeros, neurons.
NETWORKS = {
    "pixels-1000": ("pixels", 1000, 100),
    "one-bit-2000": ("one bit", 2000, 150),
    **{f"7x7-{budget}": ("7x7", budget, hidden) for budget, hidden in ((60, 6), (120, 10), (250, 16))},
    **{
        f"14x14-{budget}": ("14x14", budget, hidden)
        for budget, hidden in ((250, 24), (330, 30), (500, 40), (850, 60))
    },
    **{f"pixels-{budget}": ("pixels", budget, 100) for budget in (2000, 4000)},
}
# Networks of the curve of accuracy against bytes, with bits of a weight.
CURVE = (
    ("7x7-60", 5),
    ("7x7-120", 4),
    ("7x7-250", 4),
    ("14x14-250", 4),
    ("14x14-330", 4),
    ("14x14-500", 4),
    ("14x14-850", 4),
    ("pixels-1000", 4),
    ("pixels-1000", 8),
    ("pixels-2000", 8),
    ("pixels-4000", 8),
)
# Passes of training with rounding in the loop, where bits are few.
PASSES_ROUNDED = 8


@cache
def images(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return all images, made into inputs as a device would, and their digits."""
    pixels, digits = load_mnist()
    square = pixels.reshape(-1, 28, 28)
    if kind == "one bit":
        return (pixels >= 64).astype(np.uint8), digits
    if kind in ("7x7", "14x14"):
        side = int(kind.split("x")[0])
        size = 28 // side
        sums = square.reshape(-1, side, size, side, size).astype(np.int64).sum(axis=(2, 4))
        return (sums // size**2).astype(np.uint8).reshape(-1, side * side), digits
    return pixels, digits


def trained(name: str, keep: Path) -> Network:
    """Train a network on the 60,000 images, or load the one that was kept."""
    path = keep / f"{name}.thresher"
    if path.exists():
        return Network.load(path)
    kind, budget, hidden = NETWORKS[name]
    X, y = images(kind)
    model = SparseMLPClassifier(budget=budget, hidden=hidden, max_iter=PASSES, random_state=0)
    model.fit(X[:TRAINED], y[:TRAINED]).network_.save(path)
    return model.network_


def accuracy(network: Network | IntegerNetwork, kind: str) -> float:
    """Return the share of the 10,000 test images that are read right, in percent."""
    X, y = images(kind)
    return 100 * float((network.predict(X[TRAINED:]) == y[TRAINED:]).mean())


def rounded(name: str, keep: Path, **how: Any) -> IntegerNetwork:
    """Round a network on training images."""
    return trained(name, keep).quantise(images(NETWORKS[name][0])[0][:TRAINED], **how)


def bits(keep: Path) -> Iterator[Measurement]:
    """Points of accuracy that rounding costs at 1,000 nonzeros."""
    network = trained("pixels-1000", keep)
    before = accuracy(network, "pixels")
    for weights, bar in (("int8", 0.1), ("int4", 0.5), ("pow2", 0.5)):
        began = Seconds.now()
        found = rounded("pixels-1000", keep, weights=weights, activation_bits=8)
        spent = Seconds.since(began).processor
        after = accuracy(found, "pixels")
        detail = {"before": before, "after": after, "nonzeros": found.nonzeros, "seconds": round(spent, 1)}
        yield Measurement(
            f"MNIST, {network.nonzeros} nonzeros, {weights}: points lost",
            before - after,
            bar,
            "points",
            detail=detail,
        )


def smallest(keep: Path) -> Iterator[Measurement]:
    """Accuracy against bytes of tables, pooled images for the smallest."""
    for name, width in CURVE:
        kind = NETWORKS[name][0]
        passes = PASSES_ROUNDED if width <= 4 else 0
        found = rounded(name, keep, bits=width, activation_bits=8, bias_bits=8, passes=passes)
        size = bytes_of_tables(found, all_inputs=True)
        detail = {"bytes": size, "nonzeros": found.nonzeros, "inputs": kind}
        bar = 90.0 if size <= 414 and name == "14x14-330" else None
        what = f"MNIST as {kind}, int{width}, {size:,} bytes of tables: accuracy"
        yield Measurement(what, accuracy(found, kind), bar, "%", at_least=True, detail=detail)


def avr(keep: Path) -> Iterator[Measurement]:
    """Ten digits on an ATmega328P: every test image, with the image in RAM; the float export beside it."""
    X, _ = images("pixels")
    yield from float_on_avr("pixels-1000", keep)
    yield from float_on_avr("7x7-250", keep)
    for weights, packed in (("int8", False), ("int8", True)):
        found = rounded("pixels-1000", keep, weights=weights, activation_bits=8)
        measured = on_device(found, X[TRAINED:], "atmega328p", packed=packed)
        form = "packed" if packed else "plain"
        what = f"ATmega328P, {weights}, {form}"
        yield Measurement(f"{what}: accuracy", accuracy(found, "pixels"), 96.5, "%", at_least=True)
        yield Measurement(f"{what}: bytes of flash", measured.figures["flash"], 4096 if packed else None, "B")
        yield Measurement(f"{what}: bytes of RAM", measured.figures["ram"], 2048, "B")
        yield Measurement(f"{what}: cycles for a prediction", measured.figures["cycles"], None, "")
        yield agreeing(what, measured)


FLOAT_FIRMWARE = """\
#include <avr/io.h>
#include "net.h"
net_input row[net_INPUTS];
int16_t answer[1];
int main(void) { for (;;) { GPIOR0 = 1; answer[0] = (int16_t)net_class(row); GPIOR0 = 2; } }
"""
# Test images that the export in floating point is run on.
FLOAT_ROWS = 200


def float_on_avr(name: str, keep: Path) -> Iterator[Measurement]:
    """Measure the export in floating point on an ATmega328P, given the inputs in use alone."""
    network, kind = trained(name, keep), NETWORKS[name][0]
    X = images(kind)[0][TRAINED : TRAINED + FLOAT_ROWS]
    rows = X[:, network.inputs_used()].astype("<f4")
    with TemporaryDirectory() as place:
        folder = Path(place)
        for file, text in network.to_c_files("net", used_inputs=True).items():
            (folder / file).write_text(text, encoding="ascii")
        flash, static = atmega328p.compiled(folder, FLOAT_FIRMWARE, ["net.c"])
        numbers, cycles, _, stack = atmega328p.simulated(folder, rows, np.dtype("<i2"), 1)
    what = f"ATmega328P, {name} in floating point, {rows.shape[1]} inputs in use"
    yield Measurement(f"{what}: bytes of flash", flash, None, "B")
    yield Measurement(f"{what}: bytes of RAM", static + stack, 2048, "B")
    yield Measurement(f"{what}: cycles for a prediction", cycles, None, "")
    same = int((network.classes[numbers[:, 0]] == network.predict(X)).sum())
    yield Measurement(f"{what}: labels that agree", same, FLOAT_ROWS, "", at_least=True)


def arm(keep: Path) -> Iterator[Measurement]:
    """Ten digits on a Cortex-M3: every test image."""
    X, _ = images("pixels")
    for packed in (False, True):
        found = rounded("pixels-1000", keep, weights="int8", activation_bits=8)
        measured = on_device(found, X[TRAINED:], "cortex-m3", packed=packed)
        what = f"Cortex-M3, int8, {'packed' if packed else 'plain'}"
        for figure in ("flash", "ram", "instructions"):
            yield Measurement(f"{what}: {figure}", measured.figures[figure], None, "")
        yield agreeing(what, measured)


# Networks with bits of weights and of activations, and LUTs that are allowed.
FPGA = (("one-bit-2000", 4, 2, 5000), ("one-bit-2000", 4, 3, 4400))


def fpga(keep: Path) -> Iterator[Measurement]:
    """Ten digits as LUTs of six inputs, argmax included; inputs are pixels of one bit."""
    for name, width, activations, bar in FPGA:
        kind = NETWORKS[name][0]
        how = {"bits": width, "activation_bits": activations, "inputs": "uint1", "passes": PASSES_ROUNDED}
        found = rounded(name, keep, **how)
        measured = on_device(found, images(kind)[0][TRAINED:], "xilinx")
        what = f"xilinx, {name}, int{width}, activations of {activations} bits"
        right = accuracy(found, kind)
        # Whether a pixel of eight bits is 64 or more, its two upper bits tell: a table for each.
        luts = measured.figures["luts"] + found.used.size
        detail = {**measured.plain(), "accuracy": right, "nonzeros": found.nonzeros}
        yield Measurement(f"{what}: accuracy", right, 96.5 if bar else None, "%", at_least=True)
        yield Measurement(f"{what}, comparison of pixels included: LUTs", luts, bar, "", detail=detail)
        yield agreeing(what, measured)


def ice40(_: Path) -> Iterator[Measurement]:
    """Scikit-learn's digits, ten classes, placed and routed."""
    X, y = load_digits(return_X_y=True)
    model = SparseMLPClassifier(budget=150, hidden=15, random_state=0).fit(X[::2], y[::2])
    found = model.network_.quantise(X[::2], inputs="uint5", weights="int4", activation_bits=5)
    measured = on_device(found, X[1::2], "ice40")
    right = 100 * float((found.predict(X[1::2]) == y[1::2]).mean())
    yield Measurement("iCE40, digits of scikit-learn, 150 nonzeros: accuracy", right, None, "%")
    yield Measurement(
        "iCE40, digits: clock", measured.figures["clock_MHz"], None, "MHz", detail=measured.plain()
    )
    yield agreeing("iCE40, digits", measured)


def tables(_: Path) -> Iterator[Measurement]:
    """Breast cancer and spambase at 30 nonzeros, five folds: points lost, bytes of tables."""
    data = {"breast cancer": load_breast_cancer(return_X_y=True)}
    folder = os.environ.get("THRESHER_DATA")
    if folder and (Path(folder) / "tables" / "spambase.csv.gz").exists():
        frame = pandas.read_csv(Path(folder) / "tables" / "spambase.csv.gz")
        data["spambase"] = (frame.iloc[:, 1:].to_numpy(float), frame.iloc[:, 0].to_numpy())
    for name, (X, y) in data.items():
        lost, sizes = [], []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=1).split(X, y):
            network = (
                SparseMLPClassifier(budget=30, hidden=10, random_state=0).fit(X[train], y[train]).network_
            )
            found = network.quantise(X[train], 8, bias_bits=16)
            right = [(one.predict(X[test]) == y[test]).mean() for one in (network, found)]
            lost.append(100 * (right[0] - right[1]))
            sizes.append(bytes_of_tables(found, all_inputs=True))
        detail = {"folds": [round(points, 2) for points in lost], "bytes": sizes}
        yield Measurement(
            f"{name}, 30 nonzeros, int8: points lost", float(np.mean(lost)), 0.5, "points", detail=detail
        )
        yield Measurement(f"{name}: bytes of tables", max(sizes), 300, "B")


def agreeing(what: str, measured: Any) -> Measurement:
    """Say how many rows agree with Python in every output."""
    return Measurement(f"{what}: rows that agree", measured.agree, measured.rows, "", at_least=True)


# Published systems: what they take, accuracy, and what they are called in the figure. Their sizes were not
# measured as ours: the first made images smaller in its own way; the others are from vendors' tools.
PUBLISHED_BYTES = ((414, 90.0, "414 bytes"),)
PUBLISHED_LUTS = ((4_478, 97.0, "trees"), (14_810, 96.0, "tables"))


@styled
def figure(rows: list[dict[str, Any]]) -> Figure:
    """Draw accuracy against bytes of tables, and against LUTs."""
    drawn, panels = new_figure(10.0, 4.0, panels=2)
    byte_axes, lut_axes = panels
    points = [row for row in rows if row["part"] == "smallest"]
    for kind in dict.fromkeys(row["detail"]["inputs"] for row in points):
        own = sorted((r["detail"]["bytes"], r["value"]) for r in points if r["detail"]["inputs"] == kind)
        byte_axes.plot(*zip(*own, strict=True), marker="o", label=f"Thresher, {kind}")
    luts = [row for row in rows if row["part"] == "fpga" and row["what"].endswith("LUTs")]
    own = sorted((row["value"], row["detail"]["accuracy"]) for row in luts)
    if own:
        lut_axes.plot(*zip(*own, strict=True), marker="o", label="Thresher, pixels of one bit")
    for axes, published in ((byte_axes, PUBLISHED_BYTES), (lut_axes, PUBLISHED_LUTS)):
        sizes, right, names = zip(*published, strict=True)
        axes.plot(sizes, right, marker="x", linestyle="none", color="black", label="published")
        for size, share, name in zip(sizes, right, names, strict=True):
            axes.annotate(name, (size, share), xytext=(4, -12), textcoords="offset points")
        axes.set_xscale("log")
        axes.margins(0.15)
        axes.set_ylabel("accuracy on 10,000 test images, %")
        axes.legend()
    byte_axes.set_xlabel("bytes of tables")
    lut_axes.set_xlabel("LUTs of six inputs")
    return drawn


PARTS: dict[str, Callable[[Path], Iterator[Measurement]]] = {
    part.__name__: part for part in (bits, smallest, tables, avr, arm, fpga, ice40)
}


def measure(options: Options) -> list[Measurement]:
    """Measure the parts that need no device; `quick` the tables alone."""
    with TemporaryDirectory() as folder:
        parts = (tables,) if options.quick else (bits, tables)
        return [row for part in parts for row in part(Path(folder))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run some parts, and print every figure as it comes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--keep", type=Path, help="folder of trained networks")
    parser.add_argument("--json", type=Path, help="file to append every figure to, one line each")
    parser.add_argument("--figure", type=Path, help="draw what --json holds as PNG and SVG, and run nothing")
    given = parser.parse_args(arguments)
    if given.figure:
        rows = list(map(json.loads, given.json.read_text().splitlines()))
        for suffix in (".png", ".svg"):
            figure(rows).savefig(given.figure.with_suffix(suffix), dpi=150)
        return 0
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    with TemporaryDirectory() as spare:
        keep = given.keep or Path(spare)
        keep.mkdir(parents=True, exist_ok=True)
        for name in given.parts or PARTS:
            for row in PARTS[name](keep):
                bar = "" if row.bar is None else f" (bar {row.bar:g}, {'met' if row.passed else 'missed'})"
                print(f"{row.what}: {row.value:,.2f} {row.unit}{bar}", flush=True)
                if given.json:
                    with given.json.open("a") as file:
                        file.write(json.dumps({"part": name, **asdict(row)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
