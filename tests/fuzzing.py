"""Load thousands of damaged model files, in a process of its own with little memory and an eye on what runs.

Run as ``python tests/fuzzing.py FOLDER COUNT SEED``. It prints one JSON document: how many files were loaded,
how many refused, and whatever else happened. A crash, or memory without limit, ends the process instead.
"""

from __future__ import annotations

import json
import pickle
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from networks import NETWORKS

from thresher.errors import DataError, ModelFileError
from thresher.network import Network, files

# Beyond what the interpreter itself maps. The widest network that a file may hold takes 700 MB.
SPARE_BYTES = 2**30

# What no file may make the interpreter do. `open` and `mmap` of the file itself are allowed.
FORBIDDEN = (
    "exec",
    "compile",
    "import",
    "os.",
    "subprocess.",
    "socket.",
    "pickle.",
    "marshal.",
    "ctypes.",
    "shutil.",
    "code.",
    "sys._",
)

LIES: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    7,
    2**31,
    2**32 + 1,
    2**53,
    2**63 - 1,
    2**64,
    10**30,
    -(2**63),
    0.5,
    -0.0,
    1e308,
    "",
    "0",
    "I64",
    "F32",
    "F16",
    "BOOL",
    "object",
    "softmax",
    "log",
    "__import__('os').abort()",
    "\ud800",
    [],
    [[]],
    {},
    ["a", 1],
    [5, 4, 1],
    [2**62, 2**62],
    [0, 2**63],
    [8, 0],
    [-8, 8],
]


def split(data: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Take a file apart: header without the configuration, the configuration, the tensors."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    config = json.loads(header["__metadata__"]["thresher"])
    return header, config, data[8 + length :]


def joined(header: dict[str, Any], config: Any, tensors: bytes, length: int | None = None) -> bytes:
    """Put a file together; `length` may lie about the header."""
    text = config if isinstance(config, str) else json.dumps(config)
    told = {**header, "__metadata__": {"thresher": text}}
    encoded = json.dumps(told).encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded) if length is None else length) + encoded + tensors


def any_of(rng: np.random.Generator, values: list[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip bits in the header or, as often, in the tensors, which are much smaller."""
    changed = bytearray(data)
    tensors = min(8 + struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else 0, len(data) - 1)
    low, high = (0, len(data)) if rng.random() < 0.5 else (tensors, len(data))
    for place in rng.integers(low, high, size=int(rng.integers(1, 4))):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def change_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for place in rng.integers(len(data), size=int(rng.integers(1, 4))):
        changed[place] = int(rng.choice(list(b'0123456789-,:"[]{}\x00\xff')))
    return bytes(changed)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data)))]


def swap_ranges(data: bytes, rng: np.random.Generator) -> bytes:
    a, b = sorted(rng.integers(len(data), size=2).tolist())
    size = int(rng.integers(1, 33))
    return data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]


def repeat_range(data: bytes, rng: np.random.Generator) -> bytes:
    place, size = int(rng.integers(len(data))), int(rng.integers(1, 65))
    return data[: place + size] + data[place:]


def drop_range(data: bytes, rng: np.random.Generator) -> bytes:
    place, size = int(rng.integers(len(data))), int(rng.integers(1, 65))
    return data[:place] + data[place + size :]


def lie_about_length(data: bytes, rng: np.random.Generator) -> bytes:
    return struct.pack("<Q", int(rng.integers(2**63)) >> int(rng.integers(63))) + data[8:]


def lie_in_header(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the type, the shape or the place of a tensor, drop one or give one twice."""
    header, config, tensors = split(data)
    name = any_of(rng, [key for key in header if key != "__metadata__"])
    field = any_of(rng, ["dtype", "shape", "data_offsets", "offset", "drop", "alias", "whole"])
    entry = dict(header[name])
    if field == "drop":
        del header[name]
    elif field == "alias":
        header[any_of(rng, [name + "x", "code", "layer0.values", "direct.indices", "direct.values", ""])] = (
            entry
        )
    elif field == "whole":
        header[name] = any_of(rng, LIES)
    elif field == "offset":
        offsets = list(entry["data_offsets"])
        offsets[int(rng.integers(2))] += int(any_of(rng, [-8, 8, -1, 1, 2**40, -(2**40)]))
        header[name] = {**entry, "data_offsets": offsets}
    else:
        header[name] = {**entry, field: any_of(rng, LIES)}
    return joined(header, config, tensors)


def lie_in_config(data: bytes, rng: np.random.Generator) -> bytes:
    """Change fields of the configuration to what they should not be, or just could be."""
    header, config, tensors = split(data)
    for _ in range(int(rng.integers(1, 3))):
        key = any_of(rng, sorted(config) or ["version"])
        kind = rng.random()
        if kind < 0.5:
            config[key] = any_of(rng, LIES)
        elif kind < 0.6:
            config.pop(key)
        elif kind < 0.8 and isinstance(config.get("widths"), list) and config["widths"]:
            config["widths"][int(rng.integers(len(config["widths"])))] = any_of(rng, LIES)
        else:
            values = [any_of(rng, LIES), any_of(rng, LIES)]
            config["classes"] = {"dtype": any_of(rng, list(files.LABEL_TYPES)), "values": values}
    return joined(header, config, tensors)


def nest_deeply(data: bytes, rng: np.random.Generator) -> bytes:
    header, config, tensors = split(data)
    depth = int(10 ** rng.uniform(1, 5))
    left, right = any_of(rng, [("[", "]"), ('{"a":', "}")])
    inner = left * depth + "1" + right * int(rng.integers(2)) * depth
    if rng.random() < 0.3:
        return joined(header, inner, tensors)
    text = json.dumps(config)[:-1] + f', "{any_of(rng, ["details", "widths", "classes"])}": {inner}}}'
    return joined(header, text, tensors)


def strange_numbers(data: bytes, rng: np.random.Generator) -> bytes:
    """Write NaN, infinity, zeros and extreme indices into the tensors."""
    header, config, tensors = split(data)
    changed = bytearray(tensors)
    for _ in range(int(rng.integers(1, 4))):
        if len(changed) < 8:
            break
        place = 8 * int(rng.integers(len(changed) // 8))
        number = any_of(rng, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-320, 1e308])
        whole = any_of(rng, [-1, 0, 1, 2**31, 2**62, -(2**63)])
        form = any_of(rng, ["<d", "<q", "<ff"])
        values = (whole,) if form == "<q" else (number,) if form == "<d" else (np.float32(np.nan), 1.0)
        changed[place : place + 8] = struct.pack(form, *values)
    return joined(header, config, bytes(changed))


MUTATIONS: list[Callable[[bytes, np.random.Generator], bytes]] = [
    flip_bits,
    change_bytes,
    truncate,
    swap_ranges,
    repeat_range,
    drop_range,
    lie_about_length,
    lie_in_header,
    lie_in_config,
    nest_deeply,
    strange_numbers,
]


def limit_memory() -> None:
    """Let the process have little more memory than it maps now."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class Watch:
    """Note what the interpreter is made to do while a file is loaded."""

    def __init__(self) -> None:
        self.on = False
        self.seen: set[str] = set()
        sys.addaudithook(self.hear)

    def hear(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if self.on and event.startswith(FORBIDDEN):
            self.seen.add(event)

    def check_itself(self) -> None:
        """See to it that running a pickle would be noticed."""
        self.on = True
        pickle.loads(b"cos\ngetpid\n(tR.")
        self.on = False
        assert "pickle.find_class" in self.seen
        self.seen.clear()


def check(network: Network, size: int) -> str | None:
    """Say what is wrong with a network that came from a file of so many bytes."""
    weights = [layer.weights for layer in network.layers]
    if network.direct is not None:
        if network.direct.shape != (network.inputs, network.outputs) or network.direct.nnz == 0:
            return "direct connections that are none"
        weights.append(network.direct)
    biases = sum(np.count_nonzero(layer.bias) for layer in network.layers)
    if (sum(matrix.nnz for matrix in weights) + biases) * 8 > size:
        return "more nonzeros than the file has room for"
    if not all(np.isfinite(matrix.data).all() for matrix in weights):
        return "weights that are not finite"
    if not all(matrix.has_canonical_format for matrix in weights):
        return "weights out of order"
    if network.inputs < 1_000:
        with suppress(DataError):  # damaged weights may be so large that answers overflow
            network.predict(np.ones((2, network.inputs), dtype=np.float32) * 1e-3)
    return None


def main(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Load `count` files that each have one damage, or two."""
    path = folder / "model.thresher"
    originals = []
    for network in NETWORKS.values():
        network.save(path)
        originals.append(path.read_bytes())
    assert Network.load(path) is not None  # whatever is loaded late is loaded now
    found: dict[str, Any] = {"loaded": 0, "with direct": 0, "refused": 0, "wrong": [], "by": {}}
    watch = Watch()
    watch.check_itself()
    limit_memory()
    for trial in range(count):
        rng = np.random.default_rng([seed, trial])
        mutation = MUTATIONS[trial % len(MUTATIONS)]
        data = mutation(originals[int(rng.integers(len(originals)))], rng)
        if rng.random() < 0.2 and data:
            data = flip_bits(data, rng)
        # A new file each time: some file systems wait for the disk when one is overwritten.
        path.unlink()
        path.write_bytes(data)
        watch.on = True
        try:
            network = Network.load(path)
            problem = check(network, len(data))
            found["loaded"] += 1
            found["with direct"] += network.direct is not None
            if problem is not None:
                found["wrong"].append([trial, mutation.__name__, problem])
        except ModelFileError:
            found["refused"] += 1
            found["by"][mutation.__name__] = found["by"].get(mutation.__name__, 0) + 1
        except Exception as error:
            found["wrong"].append([trial, mutation.__name__, f"{type(error).__name__}: {error}"[:300]])
        finally:
            watch.on = False
    return {**found, "events": sorted(watch.seen)}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
