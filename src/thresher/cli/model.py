"""What a model file knows of the table it came from: how to encode another one, and what it predicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from thresher.data.encoding import Column, Encoding
from thresher.integer import IntegerNetwork
from thresher.network import Network


def reads_from_disk(path: str, asked: bool) -> bool:
    """Say whether rows stay on disk: those of folders and .npy files do, others where it is asked for."""
    return asked or Path(path).is_dir() or Path(path).suffix.lower() == ".npy"


def annotated(network: Network, features: tuple[str, ...], details: dict[str, Any]) -> Network:
    """Give a network that carries names of its inputs and these details along, also into its file."""
    return replace(network, features=features, details=details)


def details_of(network: Network | IntegerNetwork) -> dict[str, Any]:
    """Give the details of a network."""
    return dict(network.details or {})


def encoding_of(network: Network | IntegerNetwork) -> Encoding:
    """Tell how a table becomes the inputs of a network.

    A network that was fitted in Python knows the names of its inputs at most: then they are columns of
    numbers of those names, or x0, x1, and so on.
    """
    features = network.features or tuple(f"x{column}" for column in range(network.inputs))
    told = details_of(network).get("table")
    if isinstance(told, dict):
        return Encoding.from_details(told, features)
    return Encoding(tuple(Column(name) for name in features))
