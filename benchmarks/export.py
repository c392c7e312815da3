"""The C file of a classifier of MNIST's shape: labels as in Python, its size, its time beside onnxruntime's.

Where THRESHER_DATA tells where MNIST is, the network is trained on its 60,000 training images, 784 -> 100 ->
10 with 1,000 nonzeros, and meets the 10,000 test images; elsewhere a random network, 784 -> 30 -> 10, meets
random images. ``python benchmarks/export.py MODEL`` measures one of your own. Times are processor time of one
thread, so that whatever else the machine does counts little. C is called in a loop
of C; what onnxruntime takes one by one includes its call from Python.
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from measuring import Measurement, Options
from run import table
from scipy import sparse

from thresher import SparseMLPClassifier
from thresher.data.mnist import load_mnist
from thresher.errors import ThresherError
from thresher.network import Layer, Network

INPUTS, HIDDEN, CLASSES, NONZEROS = 784, 30, 10, 1_000
TRAINED, PASSES = 100, 20
IMAGES = 10_000
OPTIMISED = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-O2")

DRIVER = """
#include "net.c"
void all_classes(const float *images, int count, int *classes);
void all_classes(const float *images, int count, int *classes) {
    for (int i = 0; i < count; i++)
        classes[i] = net_class(images + (long)i * net_INPUTS);
}
"""


def measure(options: Options) -> list[Measurement]:
    """Measure a classifier of digits, or a random network."""
    return measure_network(classifier(), options)


def measure_network(network: Network, options: Options) -> list[Measurement]:
    """Compare labels, and time one prediction in C, in onnxruntime and in Python."""
    images, source = images_of(network.inputs)
    expected = network.predict(images)
    with tempfile.TemporaryDirectory() as folder:
        sizes, classify = compiled(network, images, Path(folder))
        run_one, run_all, onnx_bytes = onnx_runs(network, images)
        assert network.classes is not None
        same = int((network.classes[classify()] == expected).sum())
        same_onnx = int((run_all() == expected).sum())
        took = processor_times(
            {
                "C": classify,
                "onnxruntime, all at once": run_all,
                "onnxruntime, one by one from Python": run_one,
                "Python, all at once": lambda: network.predict(images),
            },
            options.repeats,
        )
    each = {name: 1e6 * spent / (100 if "one by one" in name else IMAGES) for name, spent in took.items()}
    what = f"{network.nonzeros:,} nonzeros, {IMAGES:,} {source}{accuracy(network, expected)}"
    detail = {**sizes, "onnx bytes": onnx_bytes, "microseconds": each}
    rows = [
        Measurement(f"labels of the C file as in Python, {what}", same, IMAGES, "images", True, detail),
        Measurement("labels of onnxruntime as in Python", same_onnx, IMAGES, "images", True),
        Measurement("size of the C file", sizes["source"] / 1024, None, "KB"),
        Measurement("size of its object code, tables included", sizes["object"] / 1024, None, "KB"),
        Measurement("size of the ONNX file", onnx_bytes / 1024, None, "KB"),
    ]
    rows += [Measurement(f"one prediction, {name}", spent, None, "us") for name, spent in each.items()]
    fewer = each["onnxruntime, one by one from Python"] / each["C"]
    return [*rows, Measurement("onnxruntime, one by one from Python / C", fewer, None)]


def classifier() -> Network:
    """Train a classifier of digits where MNIST is at hand, else draw a network."""
    try:
        images, digits = load_mnist()
    except (ThresherError, OSError):
        return random_classifier()
    X = images[:-IMAGES].reshape(-1, INPUTS).astype(np.float32) / 255
    model = SparseMLPClassifier(budget=NONZEROS, hidden=TRAINED, max_iter=PASSES, random_state=0)
    return model.fit(X, digits[:-IMAGES]).network_


def random_classifier(seed: int = 0) -> Network:
    """Draw a network with exactly 1,000 nonzeros, its 200 of the second layer and 40 biases included."""
    rng = np.random.default_rng(seed)
    second, biases = 200, 40

    def weights(inputs: int, neurons: int, nonzeros: int) -> sparse.csr_array:
        places = rng.choice(inputs * neurons, size=nonzeros, replace=False)
        values = rng.normal(size=nonzeros) / np.sqrt(nonzeros / neurons)
        return sparse.csr_array((values, (places // neurons, places % neurons)), shape=(inputs, neurons))

    first = Layer(weights(INPUTS, HIDDEN, NONZEROS - second - biases), 0.1 * rng.normal(size=HIDDEN))
    last = Layer(weights(HIDDEN, CLASSES, second), 0.1 * rng.normal(size=CLASSES))
    network = Network((first, last), classes=np.arange(CLASSES), link="softmax")
    assert network.nonzeros == NONZEROS
    return network


def images_of(inputs: int) -> tuple[np.ndarray, str]:
    """Give 10,000 images as numbers from 0 to 1, and say what they are."""
    if inputs == INPUTS:
        try:
            images = load_mnist()[0][-IMAGES:].reshape(IMAGES, -1)
            return np.ascontiguousarray(images, dtype=np.float32) / 255, "MNIST test images"
        except (ThresherError, OSError):
            pass
    rng = np.random.default_rng(1)
    drawn = rng.random((IMAGES, inputs)) * (rng.random((IMAGES, inputs)) < 0.2)
    return drawn.astype(np.float32), "random images"


def accuracy(network: Network, labels: np.ndarray) -> str:
    """Say how many test images get their digit, where that means something."""
    if network.inputs != INPUTS or network.classes is None or list(network.classes) != list(range(CLASSES)):
        return ""
    try:
        digits = load_mnist()[1][-IMAGES:]
    except (ThresherError, OSError):
        return ""
    return f", {100 * float(np.mean(labels == digits)):.1f} % right"


def compiled(
    network: Network, images: np.ndarray, folder: Path
) -> tuple[dict[str, int], Callable[[], np.ndarray]]:
    """Compile the C file; return its sizes in bytes, and what classifies all images in a loop of C."""
    (folder / "net.c").write_text(network.to_c("net"), encoding="ascii")
    (folder / "driver.c").write_text(DRIVER, encoding="ascii")
    subprocess.run(["gcc", *OPTIMISED, "-c", "-o", folder / "net.o", folder / "net.c"], check=True)
    command = ["gcc", *OPTIMISED, "-shared", "-fPIC", "-o", folder / "net.so", folder / "driver.c", "-lm"]
    subprocess.run(command, check=True)
    told = subprocess.run(["size", folder / "net.o"], capture_output=True, text=True, check=True).stdout
    code = sum(map(int, told.splitlines()[1].split()[:3]))
    library = ctypes.CDLL(str(folder / "net.so"))
    classes = np.zeros(IMAGES, dtype=np.intc)

    def classify() -> np.ndarray:
        library.all_classes(
            images.ctypes.data_as(ctypes.POINTER(ctypes.c_float)),
            ctypes.c_int(IMAGES),
            classes.ctypes.data_as(ctypes.POINTER(ctypes.c_int)),
        )
        return classes

    return {"source": (folder / "net.c").stat().st_size, "object": code}, classify


def processor_times(works: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds that each piece of work keeps a processor busy, timed in turns."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            began = time.process_time()
            work()
            times[name].append(time.process_time() - began)
    return {name: statistics.median(spent) for name, spent in times.items()}


def onnx_runs(
    network: Network, images: np.ndarray
) -> tuple[Callable[[], object], Callable[[], np.ndarray], int]:
    """Return what runs onnxruntime on 100 images one by one, on all at once, and the size of the model."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    content = network.to_onnx("net").SerializeToString()
    session = onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    single = [images[i : i + 1] for i in range(100)]

    def run_one() -> object:
        return [session.run(["label"], {"X": image}) for image in single]

    def run_all() -> np.ndarray:
        return session.run(["label"], {"X": images})[0]

    return run_one, run_all, len(content)


if __name__ == "__main__":
    model = Network.load(sys.argv[1]) if len(sys.argv) > 1 else classifier()
    print(table({"export": measure_network(model, Options())}, {}))
