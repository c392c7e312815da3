"""Files of integer networks: safetensors, with whole numbers alone and the configuration in the header.

For layer ``i`` (from 0) five tensors of one dimension each, all of them int64:

``layer{i}.indices``       strictly ascending: ``neuron * inputs + input`` of every nonzero weight
``layer{i}.values``        as many: the weights
``layer{i}.bias_indices``  strictly ascending: the neurons whose bias is not zero
``layer{i}.bias_values``   as many: the biases
``layer{i}.shift``         one for each neuron

``used`` (int64) are the columns in use, ``input_scale`` and ``input_offset`` (float64) one number or one for
each of these, ``output_scale`` (float64) one for each output; ``direct.indices`` and ``direct.values`` as
those of a layer, where there are direct weights. The header's entry ``thresher.integer`` is a JSON object
with all else. Nothing in a file is ever executed, and nothing is used before it is checked.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors
from scipy import sparse

from thresher.atomic import write_whole
from thresher.errors import ModelFileError, ParameterError
from thresher.network.files import MAX_PLACES, MAX_WIDTHS, label_type, labels_of
from thresher.network.metadata import plain_copy

if TYPE_CHECKING:
    from thresher.integer.network import IntegerNetwork

VERSION = 1
ENTRY = "thresher.integer"
PARTS = ("indices", "values", "bias_indices", "bias_values", "shift")
DIRECT_PARTS = ("direct.indices", "direct.values")
VECTORS = {"used": "I64", "input_scale": "F64", "input_offset": "F64", "output_scale": "F64"}

# What the header holds, and of which types each can be.
CONFIG: dict[str, tuple[type, ...]] = {
    "version": (int,),
    "columns": (int,),
    "widths": (list,),
    "signs_only": (list,),
    "direct": (bool,),
    "input_kind": (str,),
    "activation_bits": (int,),
    "threshold": (int,),
    "hidden_shift": (int,),
    "direct_shift": (int,),
    "weight_kind": (str,),
    "weight_bits": (int,),
    "link": (str,),
    "classes": (dict, type(None)),
    "features": (list, type(None)),
    "details": (dict,),
}


def write(path: str | os.PathLike[str], network: IntegerNetwork) -> None:
    """Save an integer network.

    Raises
    ------
    ModelFileError
        When the file cannot be written, or the network has what a file cannot hold.
    """
    config = {**config_of(network), "details": network.details}
    try:
        content = to_safetensors(tensors_of(network), metadata={ENTRY: json.dumps(config, allow_nan=False)})
        write_whole(path, content)
    except (ValueError, OSError, SafetensorError) as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be written: {error}") from error


def config_of(network: IntegerNetwork) -> dict[str, Any]:
    """Return what the header says, details aside."""
    classes = None
    if network.classes is not None:
        classes = {"dtype": label_type(network.classes), "values": network.classes.tolist()}
        labels_of(classes)
    return {
        "version": VERSION,
        "columns": network.columns,
        "widths": [network.used.size, *network.hidden, network.outputs],
        "signs_only": [layer.signs_only for layer in network.layers],
        "direct": network.direct is not None,
        "input_kind": network.coding.kind,
        "activation_bits": network.activation_bits,
        "threshold": network.threshold,
        "hidden_shift": network.hidden_shift,
        "direct_shift": network.direct_shift,
        "weight_kind": network.weight_kind,
        "weight_bits": network.weight_bits,
        "link": network.link,
        "classes": classes,
        "features": None if network.features is None else list(network.features),
    }


def tensors_of(network: IntegerNetwork) -> dict[str, np.ndarray]:
    """Return the tensors of a file."""
    tensors = {
        "used": network.used,
        "input_scale": np.atleast_1d(network.coding.scale),
        "input_offset": np.atleast_1d(network.coding.offset),
        "output_scale": network.output_scale,
    }
    for number, layer in enumerate(network.layers):
        biased = np.flatnonzero(layer.bias).astype(np.int64)
        parts = (*_flat(layer.weights), biased, layer.bias[biased], layer.shift)
        tensors.update({f"layer{number}.{name}": part for name, part in zip(PARTS, parts, strict=True)})
    if network.direct is not None:
        tensors.update(zip(DIRECT_PARTS, _flat(network.direct), strict=True))
    return tensors


def _flat(weights: sparse.csc_array) -> tuple[np.ndarray, np.ndarray]:
    entries = weights.tocoo()
    places = entries.col.astype(np.int64) * weights.shape[0] + entries.row.astype(np.int64)
    order = np.argsort(places)
    return places[order], entries.data[order]


def is_integer(path: str | os.PathLike[str]) -> bool:
    """Say whether a file is one of an integer network; what cannot be read is none."""
    try:
        if not os.path.isfile(path):
            return False
        with safe_open(os.fspath(path), framework="numpy") as file:
            return ENTRY in (file.metadata() or {})
    except (OSError, SafetensorError):
        return False


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check a file of an integer network.

    Returns
    -------
    dict
        What :class:`~thresher.integer.IntegerNetwork` takes, with layers and coding as tuples of their parts.

    Raises
    ------
    ModelFileError
        When the file is missing, damaged, of another kind or of another version.
    """
    name = os.fspath(path)
    try:
        if os.path.exists(name) and not os.path.isfile(name):
            raise ModelFileError("it is a folder or a device, not a file.")
        with safe_open(name, framework="numpy") as file:
            return _parts(file, _config(file.metadata()))
    except ModelFileError as error:
        raise ModelFileError(f"{name} is not an integer network that can be loaded: {error}") from error
    except FileNotFoundError:
        raise ModelFileError(f"{name} does not exist: check the path of the model file.") from None
    except SafetensorError as error:
        raise ModelFileError(
            f"{name} is damaged, or not a model file ({error}): save the model again."
        ) from error
    except OSError as error:
        raise ModelFileError(f"{name} cannot be read ({error.strerror or error}).") from error


def _config(metadata: dict[str, str] | None) -> dict[str, Any]:
    if not metadata or ENTRY not in metadata:
        other = (
            "a network of floating point: use Network.load"
            if "thresher" in (metadata or {})
            else "something else"
        )
        raise ModelFileError(f"it is a file of {other}.")
    try:
        config = json.loads(metadata[ENTRY])
    except (ValueError, RecursionError):
        raise ModelFileError("its configuration is not JSON.") from None
    version = config.get("version") if isinstance(config, dict) else None
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"it has format version {version}, and this Thresher reads {VERSION}: upgrade Thresher."
        )
    if config.keys() != CONFIG.keys() or any(
        type(config[name]) not in types for name, types in CONFIG.items()
    ):
        raise ModelFileError(f"its configuration should have exactly {', '.join(CONFIG)}, each of its type.")
    widths, signs = config["widths"], config["signs_only"]
    if len(widths) < 2 or not all(type(width) is int and width >= 1 for width in widths):
        raise ModelFileError("widths should be two or more whole numbers, each 1 or more.")
    if sum(widths) > MAX_WIDTHS or not 1 <= config["columns"] <= MAX_PLACES:
        raise ModelFileError(f"its widths add up to more than {MAX_WIDTHS:,}.")
    if len(signs) != len(widths) - 1 or not all(type(sign) is bool for sign in signs):
        raise ModelFileError("signs_only should be true or false, once for each layer.")
    features = config["features"]
    if features is not None and (
        len(features) != config["columns"] or not all(type(feature) is str for feature in features)
    ):
        raise ModelFileError("features should be a name for each column.")
    if config["link"] not in ("identity", "logistic", "softmax", "log"):
        raise ModelFileError("link should be identity, logistic, softmax or log.")
    try:
        plain_copy(config["details"])
    except ParameterError as error:
        raise ModelFileError(str(error)) from None
    return config


def _parts(file: Any, config: dict[str, Any]) -> dict[str, Any]:
    widths = config.pop("widths")
    signs = config.pop("signs_only")
    has_direct = config.pop("direct")
    names = {*VECTORS, *(f"layer{number}.{part}" for number in range(len(signs)) for part in PARTS)}
    if set(file.keys()) != names.union(DIRECT_PARTS if has_direct else ()):
        raise ModelFileError("its tensors are not those that its configuration tells of.")
    vectors = {name: _vector(file, name, kind) for name, kind in VECTORS.items()}
    layers = []
    for number, (inputs, neurons) in enumerate(pairwise(widths)):
        name = f"layer{number}"
        bias = np.zeros(neurons, dtype=np.int64)
        places, values = _entries(file, f"{name}.bias_indices", f"{name}.bias_values", neurons)
        bias[places] = values
        weights = _matrix(file, f"{name}.indices", f"{name}.values", inputs, neurons)
        layers.append((weights, bias, _vector(file, f"{name}.shift", "I64"), signs[number]))
    direct = _matrix(file, *DIRECT_PARTS, widths[0], widths[-1]) if has_direct else None
    del config["version"]
    features = config.pop("features")
    classes = config.pop("classes")
    kind = config.pop("input_kind")
    coding = (kind, *(_one_or_all(vectors[name]) for name in ("input_scale", "input_offset")))
    return {
        **config,
        "coding": coding,
        "used": vectors["used"],
        "output_scale": vectors["output_scale"],
        "layers": layers,
        "direct": direct,
        "features": None if features is None else tuple(features),
        "classes": None if classes is None else labels_of(classes),
    }


def _one_or_all(values: np.ndarray) -> Any:
    """Return a number for all columns as itself."""
    return values[0] if values.size == 1 else values


def _vector(file: Any, name: str, kind: str) -> np.ndarray:
    view = file.get_slice(name)
    if view.get_dtype() != kind or len(view.get_shape()) != 1 or view.get_shape()[0] == 0:
        raise ModelFileError(f"{name} should be a vector of type {kind}.")
    values = file.get_tensor(name)
    if not np.isfinite(values).all():
        raise ModelFileError(f"{name} should be finite.")
    return values


def _entries(file: Any, index_name: str, value_name: str, room: int) -> tuple[np.ndarray, np.ndarray]:
    views = [file.get_slice(name) for name in (index_name, value_name)]
    if any(view.get_dtype() != "I64" or len(view.get_shape()) != 1 for view in views):
        raise ModelFileError(f"{index_name} and {value_name} should be vectors of int64.")
    if views[0].get_shape() != views[1].get_shape() or views[0].get_shape()[0] > room:
        raise ModelFileError(f"{index_name} and {value_name} should be of one length, {room:,} at most.")
    places, values = file.get_tensor(index_name), file.get_tensor(value_name)
    if places.size and (places[0] < 0 or places[-1] >= room or not (np.diff(places) > 0).all()):
        raise ModelFileError(f"{index_name} should ascend, each index once, from 0 to {room - 1:,} at most.")
    if not values.all():
        raise ModelFileError(f"{value_name} should not be zero.")
    return places, values


def _matrix(file: Any, index_name: str, value_name: str, inputs: int, neurons: int) -> sparse.csc_array:
    places, values = _entries(file, index_name, value_name, inputs * neurons)
    columns, rows = np.divmod(places, inputs)
    return sparse.csc_array((values, (rows, columns)), shape=(inputs, neurons))
