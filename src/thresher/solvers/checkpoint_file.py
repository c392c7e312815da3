"""The file of a checkpoint: states as safetensors, the tensors beside a text that says where they belong.

The header tells the version of the format, what fit it is of, whether that is finished, and a digest of all
else. A file is trusted no more than a model file: what is cut, changed or made up is refused in words.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors
from torch import Tensor

from thresher.device import from_host, to_host
from thresher.errors import CheckpointError, ParameterError
from thresher.linear.vector import SparseVector
from thresher.solvers.journal import State

VERSION = 1
# The name of the header, that of the text among the tensors, and what marks tensors and vectors in the text.
HEADER, TEXT = "thresher-checkpoint", "states"
TENSOR, VECTOR = "$tensor", "$vector"


@dataclass(frozen=True)
class Stored:
    """What a checkpoint holds.

    Attributes
    ----------
    identity : dict of str
        What the fit is of, by name: each parameter, the data, the versions.
    seed : int
        The seed of the fit.
    done : bool
        Whether the fit was finished.
    states : State
    """

    identity: dict[str, str]
    seed: int
    done: bool
    states: State


def to_bytes(stored: Stored) -> bytes:
    """Give the content of a file."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_plain(stored.states, arrays)).encode()
    named = {str(number): array for number, array in enumerate(arrays)}
    named[TEXT] = np.frombuffer(text, dtype=np.uint8)
    header = {
        "version": VERSION,
        "identity": stored.identity,
        "seed": stored.seed,
        "done": stored.done,
        "digest": _digest(named),
    }
    return to_safetensors(named, metadata={HEADER: json.dumps(header)})


def from_file(path: str | os.PathLike[str]) -> Stored | None:
    """Read and check a file; None where there is none."""
    name = os.fspath(path)
    try:
        if not os.path.exists(name):
            return None
        # Opening a pipe or a device would wait for ever.
        if not os.path.isfile(name):
            raise CheckpointError("it is a folder or a device.")
        with safe_open(name, framework="numpy") as file:
            header = _header(file.metadata())
            named = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 it is no dictionary
        if TEXT not in named or named[TEXT].dtype != np.uint8 or _digest(named) != header["digest"]:
            raise CheckpointError("its content is not what its header says: it was changed or damaged.")
        states = _stateful(json.loads(named[TEXT].tobytes()), named)
        return Stored(header["identity"], header["seed"], header["done"], states)
    except CheckpointError as error:
        raise CheckpointError(
            f"{name} is not a checkpoint that can be used: {error} Delete it, or give another path."
        ) from None
    except OSError as error:
        raise CheckpointError(f"{name} cannot be read ({error.strerror or error}).") from error
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{name} is damaged, or not a checkpoint ({error}). Delete it, or give another path."
        ) from error


def _digest(named: dict[str, np.ndarray]) -> str:
    found = blake2b(digest_size=16)
    for name in sorted(named):
        array = named[name]
        found.update(f"{name} {array.dtype.str} {array.shape};".encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _header(metadata: dict[str, str] | None) -> dict[str, Any]:
    if not metadata or HEADER not in metadata:
        raise CheckpointError("it is a safetensors file of something else.")
    header = json.loads(metadata[HEADER])
    version = header.get("version") if isinstance(header, dict) else None
    if version != VERSION:
        raise CheckpointError(f"it has format version {version}, and this Thresher reads {VERSION}.")
    identity = header.get("identity")
    whole = isinstance(identity, dict) and all(isinstance(value, str) for value in identity.values())
    if not whole or type(header.get("done")) is not bool or type(header.get("seed")) is not int:
        raise CheckpointError("its header does not tell what fit it is of.")
    return header


def _plain(state: State, arrays: list[np.ndarray]) -> Any:
    """Turn a state into what JSON holds; tensors are put aside, and their number takes their place."""
    if isinstance(state, SparseVector):
        return {VECTOR: [_aside(state.indices, arrays), _aside(state.values, arrays), state.size]}
    if isinstance(state, Tensor):
        return {TENSOR: _aside(state, arrays)}
    if isinstance(state, np.generic):
        return state.item()
    if isinstance(state, dict) and all(isinstance(key, str) and key[:1] != "$" for key in state):
        return {key: _plain(part, arrays) for key, part in state.items()}
    if isinstance(state, (list, tuple)):
        return [_plain(part, arrays) for part in state]
    if state is None or isinstance(state, (bool, int, float, str)):
        return state
    raise ParameterError(
        f"a checkpoint cannot hold {str(state)[:100]!r} of type {type(state).__name__}. Let states and "
        "records be numbers, text, None, tensors and sparse vectors, in lists and dictionaries."
    )


def _aside(tensor: Tensor, arrays: list[np.ndarray]) -> int:
    arrays.append(to_host(tensor.detach().contiguous()))
    return len(arrays) - 1


def _stateful(plain: Any, named: dict[str, np.ndarray]) -> State:
    if isinstance(plain, list):
        return [_stateful(part, named) for part in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.keys() == {TENSOR}:
        return _tensor(plain[TENSOR], named)
    if plain.keys() == {VECTOR}:
        indices, values, size = plain[VECTOR]
        return _vector(_tensor(indices, named), _tensor(values, named), size)
    return {key: _stateful(part, named) for key, part in plain.items()}


def _tensor(number: Any, named: dict[str, np.ndarray]) -> Tensor:
    # A copy of its own is aligned as torch aligns memory, which the last bits of products may depend on.
    return from_host(named[str(number)]).clone()


def _vector(indices: Tensor, values: Tensor, size: Any) -> SparseVector:
    """Give a sparse vector in canonical form or not at all."""
    fits = indices.dtype is torch.int64 and indices.dim() == 1 and indices.shape == values.shape
    inside = fits and type(size) is int and all(_ends(indices, size))
    if not inside or not values.is_floating_point():
        raise CheckpointError("it holds a vector whose places do not ascend within its size.")
    return SparseVector(indices, values, size)


def _ends(indices: Tensor, size: int) -> Iterator[bool]:
    if indices.numel():
        yield int(indices[0]) >= 0 and int(indices[-1]) < size
        yield bool((indices[1:] > indices[:-1]).all())
