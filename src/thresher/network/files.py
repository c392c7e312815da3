"""Model files: safetensors with the indices and values of every layer, and the configuration in the header.

For layer ``i`` (from 0) four tensors of one dimension each:

``layer{i}.indices``       int64, strictly ascending: ``input * neurons + neuron`` of every nonzero weight
``layer{i}.values``        float32 or float64, as many: the weights
``layer{i}.bias_indices``  int64, strictly ascending: the neurons whose bias is not zero
``layer{i}.bias_values``   the type of ``values``: the biases

Networks without direct connections have format version 1. Those with them have version 2, and two tensors
more:

``direct.indices``         int64, strictly ascending: ``input * outputs + output`` of every direct weight
``direct.values``          the type of ``layer0.values``, as many, at least one: the direct weights

The header's metadata has one entry, ``thresher``, a JSON object: ``version``, ``widths`` (from the inputs to
the outputs), ``signs_only`` (one boolean for each layer), ``link``, ``classes`` (null, or ``dtype`` and
``values``), ``features`` (null, or a list of names) and ``details`` (an object with anything in it). Nothing
in a file is ever executed, and nothing is used before it is checked.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors
from scipy import sparse

from thresher.atomic import write_whole
from thresher.errors import ModelFileError, ParameterError
from thresher.network.layer import MOST_BY_INPUT, Weights, canonical_copy
from thresher.network.metadata import plain_copy

if TYPE_CHECKING:
    from thresher.network.structure import Structure

# Without direct connections, and with them.
PLAIN_VERSION, DIRECT_VERSION = 1, 2

# Neurons and outputs together, and inputs up to as many as are held by input. A sparse layer needs memory in
# proportion to these, so without a limit a file of a few bytes could ask for all the memory there is. This
# one allows some 700 MB. Places of weights are numbers of 64 bits.
MAX_WIDTHS, MAX_PLACES = 2**24, 2**63 - 1

# An array of strings holds each as long as the longest; 64 MB of them is what this allows.
MAX_LABEL_LETTERS = 2**24

PARTS = ("indices", "values", "bias_indices", "bias_values")
DIRECT_PARTS = ("direct.indices", "direct.values")
CONFIG_KEYS = {"version", "widths", "signs_only", "link", "classes", "features", "details"}

# What a label may be in JSON, by the type of the array of labels.
LABEL_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "object": (str, bool, int, float),
    "bool": (bool,),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), (int,)),
    **dict.fromkeys(("float16", "float32", "float64"), (float,)),
}


class Stored(NamedTuple):
    """What a model file holds, checked for damage."""

    layers: tuple[tuple[Weights, np.ndarray, bool], ...]  # weights, bias, signs_only
    classes: np.ndarray | None
    link: str
    features: tuple[str, ...] | None
    details: dict[str, Any]
    direct: Weights | None


def label_type(labels: np.ndarray) -> str:
    """Name the type of an array of labels; strings of any length are one type."""
    return "str" if labels.dtype.kind == "U" else str(labels.dtype.name)


def write(path: str | os.PathLike[str], network: Structure) -> None:
    """Save a network as a model file.

    Parameters
    ----------
    path : str or path
        Where to; a file already there is replaced.
    network : Structure
        What to save.

    Raises
    ------
    ModelFileError
        When the file cannot be written, or the network has what a file cannot hold.
    """
    try:
        content = to_safetensors(_tensors(network), metadata={"thresher": _config_text(network)})
        # A header of more than 100 MB would be written without complaint and refused on loading.
        if int.from_bytes(content[:8], "little") > 100_000_000:
            raise ModelFileError("its names and details exceed 100 MB: shorten or drop them.")
        write_whole(path, content)
    except ModelFileError as error:
        raise ModelFileError(f"The network cannot be saved as {os.fspath(path)}: {error}") from error
    except ValueError as error:
        # A zero byte, or half a character, in the name of the file.
        raise ModelFileError(f"{os.fspath(path)!r} is no name of a file ({error}).") from error
    except (OSError, SafetensorError) as error:
        raise ModelFileError(
            f"{os.fspath(path)} cannot be written ({_reason(error)}): its folder must exist and have room."
        ) from error


def _tensors(network: Structure) -> dict[str, np.ndarray]:
    tensors = {}
    for number, layer in enumerate(network.layers):
        biased = np.flatnonzero(layer.bias).astype(np.int64)
        parts = (*_flat(layer.weights), biased, layer.bias[biased])
        tensors.update({f"layer{number}.{name}": part for name, part in zip(PARTS, parts, strict=True)})
    if network.direct is not None:
        tensors.update(zip(DIRECT_PARTS, _flat(network.direct), strict=True))
    return tensors


def _flat(weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """Give the places of the nonzeros, ascending, and their values."""
    entries = weights.tocoo()
    places = entries.row.astype(np.int64) * weights.shape[1] + entries.col.astype(np.int64)
    order = np.argsort(places)
    return places[order], entries.data[order]


def _config_text(network: Structure) -> str:
    widths = [network.inputs, *network.hidden, network.outputs]
    _check_widths(widths)
    classes = None
    if network.classes is not None:
        classes = {"dtype": label_type(network.classes), "values": network.classes.tolist()}
        labels_of(classes)
    config = {
        "version": PLAIN_VERSION if network.direct is None else DIRECT_VERSION,
        "widths": widths,
        "signs_only": [layer.signs_only for layer in network.layers],
        "link": network.link,
        "classes": classes,
        "features": None if network.features is None else list(network.features),
        "details": network.details,
    }
    try:
        text = json.dumps(config, allow_nan=False)
    except ValueError:
        raise ModelFileError("a label is NaN or infinite, which a file cannot hold.") from None
    _refuse_half_characters(config)
    return text


def _refuse_half_characters(config: dict[str, Any]) -> None:
    """Refuse text that holds half of a character (a lone surrogate): nothing can print or write it."""
    try:
        json.dumps(config, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ModelFileError(
            "a name, a label or a detail holds half of a character (a lone surrogate)."
        ) from None


def read(path: str | os.PathLike[str]) -> Stored:
    """Read and check a model file.

    Parameters
    ----------
    path : str or path
        A file that :func:`write` made, or anything that claims to be one.

    Returns
    -------
    Stored
        The parts of the network.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, of another kind or of another version.
    """
    name = os.fspath(path)
    try:
        # Opening a pipe or a device would wait for ever.
        if os.path.exists(name) and not os.path.isfile(name):
            raise ModelFileError("it is a folder or a device, not a file.")
        with safe_open(name, framework="numpy") as file:
            config = _config(file.metadata())
            layers, direct = _weights(file, config)
    except ModelFileError as error:
        raise ModelFileError(f"{name} is not a model that can be loaded: {error}") from error
    except FileNotFoundError:
        raise ModelFileError(f"{name} does not exist: check the path of the model file.") from None
    except SafetensorError as error:
        raise ModelFileError(
            f"{name} is damaged, or not a model file ({error}): save the model again."
        ) from error
    except ValueError as error:
        raise ModelFileError(f"{name!r} is no name of a file ({error}).") from error
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read ({_reason(error)}).") from error
    return Stored(layers, config["classes"], config["link"], config["features"], config["details"], direct)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _config(metadata: dict[str, str] | None) -> dict[str, Any]:
    """Return the configuration in the header, every field checked and turned into what a Network takes."""
    if "thresher.integer" in (metadata or {}):
        raise ModelFileError("it holds an integer network: use IntegerNetwork.load.")
    if not metadata or "thresher" not in metadata:
        raise ModelFileError("it is a safetensors file of something else, with no Thresher network in it.")
    try:
        config = json.loads(metadata["thresher"], parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ModelFileError("its configuration is not JSON.") from None
    version = config.get("version") if isinstance(config, dict) else None
    if type(version) is not int:
        raise ModelFileError("its configuration does not tell the version of the format.")
    if version not in (PLAIN_VERSION, DIRECT_VERSION):
        raise ModelFileError(
            f"it has format version {version}, and this Thresher reads {PLAIN_VERSION} and {DIRECT_VERSION}: "
            "upgrade Thresher."
        )
    if config.keys() != CONFIG_KEYS:
        raise ModelFileError(f"its configuration should have exactly {', '.join(sorted(CONFIG_KEYS))}.")
    _refuse_half_characters(config)
    _check_widths(config["widths"])
    signs = config["signs_only"]
    if not _all_of(signs, (bool,)) or len(signs) != len(config["widths"]) - 1:
        raise ModelFileError("signs_only should be true or false, once for each layer.")
    if not isinstance(config["link"], str):
        raise ModelFileError("link should be a string.")
    if config["classes"] is not None:
        config["classes"] = labels_of(config["classes"])
    if config["features"] is not None:
        if not _all_of(config["features"], (str,)):
            raise ModelFileError("features should be a list of names.")
        config["features"] = tuple(config["features"])
    try:
        plain_copy(config["details"])
    except ParameterError as error:
        raise ModelFileError(str(error)) from None
    return config


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _all_of(values: Any, types: tuple[type, ...]) -> bool:
    """Whether this is a list of exactly these types; for JSON, True is no whole number."""
    return isinstance(values, list) and all(type(value) in types for value in values)


def _check_widths(widths: Any) -> None:
    if not _all_of(widths, (int,)) or len(widths) < 2 or min(widths) < 1:
        raise ModelFileError("widths should be two or more whole numbers, each 1 or more.")
    if max(widths) > MAX_PLACES:
        raise ModelFileError(f"a layer is too wide: {MAX_PLACES:,} at most.")
    counted = sum(widths[1:]) + min(widths[0], MOST_BY_INPUT)
    if counted > MAX_WIDTHS:
        raise ModelFileError(
            f"its widths add up to {counted:,}, and a file can hold {MAX_WIDTHS:,} at most (inputs count up "
            f"to {MOST_BY_INPUT:,})."
        )
    places = max(one * two for one, two in pairwise([*widths, widths[0]]))
    if places > MAX_PLACES:
        raise ModelFileError(f"a layer has {places:,} places, and positions end at {MAX_PLACES:,}.")


def labels_of(classes: Any) -> np.ndarray:
    """Turn ``{"dtype": ..., "values": [...]}`` into an array of labels."""
    if not isinstance(classes, dict) or classes.keys() != {"dtype", "values"}:
        raise ModelFileError("classes should have exactly dtype and values.")
    dtype, values = classes["dtype"], classes["values"]
    if not isinstance(dtype, str) or dtype not in LABEL_TYPES:
        raise ModelFileError(f"classes are of type {dtype!r}; a file can hold {', '.join(LABEL_TYPES)}.")
    if not _all_of(values, LABEL_TYPES[dtype]):
        raise ModelFileError(
            f"some class is not of the type that {dtype} classes need; use strings or numbers."
        )
    if dtype == "str" and len(values) * max(map(len, values), default=0) > MAX_LABEL_LETTERS:
        raise ModelFileError(
            f"its {len(values):,} labels, the longest of {max(map(len, values)):,} letters, need too much "
            "memory: shorten that one."
        )
    try:
        with np.errstate(over="ignore"):
            return np.array(values, dtype=dtype)
    except (OverflowError, ValueError):
        raise ModelFileError(f"some class does not fit into {dtype}.") from None


def _weights(
    file: Any, config: dict[str, Any]
) -> tuple[tuple[tuple[Weights, np.ndarray, bool], ...], Weights | None]:
    """Read the layers, and the direct connections that the version tells of."""
    widths, signs_only = config["widths"], config["signs_only"]
    has_direct = config["version"] == DIRECT_VERSION
    expected = {f"layer{number}.{part}" for number in range(len(signs_only)) for part in PARTS}
    if set(file.keys()) != expected.union(DIRECT_PARTS if has_direct else ()):
        also = f" and {' and '.join(DIRECT_PARTS)}" if has_direct else ""
        raise ModelFileError(
            f"its tensors should be {', '.join(PARTS)} for each of {len(signs_only)} layers{also}."
        )
    layers = tuple(
        (*_layer(file, f"layer{number}", inputs, neurons), signs)
        for number, (inputs, neurons, signs) in enumerate(zip(widths, widths[1:], signs_only, strict=False))
    )
    if not has_direct:
        return layers, None
    direct = _matrix(file, *DIRECT_PARTS, widths[0], widths[-1])
    if direct.nnz == 0:
        raise ModelFileError(
            "direct.indices is empty, but direct connections are written only where there are any."
        )
    if direct.dtype != layers[0][0].dtype:
        raise ModelFileError("direct.values and layer0.values are of different types.")
    return layers, direct


def _layer(file: Any, name: str, inputs: int, neurons: int) -> tuple[Weights, np.ndarray]:
    weights = _matrix(file, f"{name}.indices", f"{name}.values", inputs, neurons)
    biased, biases = _entries(file, f"{name}.bias_indices", f"{name}.bias_values", neurons)
    if biases.dtype != weights.dtype:
        raise ModelFileError(f"{name} has weights and biases of different types.")
    bias = np.zeros(neurons, dtype=weights.dtype)
    bias[biased] = biases
    return weights, bias


def _matrix(file: Any, index_name: str, value_name: str, rows: int, columns: int) -> Weights:
    """Read a sparse matrix whose index is ``row * columns + column``."""
    indices, values = _entries(file, index_name, value_name, rows * columns)
    entries = sparse.coo_array((values, np.divmod(indices, columns)), shape=(rows, columns))
    return canonical_copy(entries, values.dtype)


def _entries(file: Any, index_name: str, value_name: str, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Read the indices and values of a sparse vector of length ``room``, in canonical form or not at all."""
    index_view, value_view = file.get_slice(index_name), file.get_slice(value_name)
    if index_view.get_dtype() != "I64" or value_view.get_dtype() not in ("F32", "F64"):
        raise ModelFileError(f"{index_name} should be int64 and {value_name} float32 or float64.")
    shape = index_view.get_shape()
    if len(shape) != 1 or shape != value_view.get_shape():
        raise ModelFileError(f"{index_name} and {value_name} should be vectors of the same length.")
    if shape[0] > room:
        raise ModelFileError(f"{index_name} holds {shape[0]:,} indices, but there is room for {room:,}.")
    indices, values = file.get_tensor(index_name), file.get_tensor(value_name)
    if indices.size and (indices[0] < 0 or indices[-1] >= room or not (indices[1:] > indices[:-1]).all()):
        raise ModelFileError(f"{index_name} should ascend, each index once, from 0 to {room - 1:,} at most.")
    if not (np.isfinite(values) & (values != 0)).all():
        raise ModelFileError(f"{value_name} should be finite and not zero.")
    return indices, values
