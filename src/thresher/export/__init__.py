"""A network in forms that other programs read: C, ONNX, torch, JSON.

What a format needs is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from thresher.errors import ParameterError
from thresher.export.naming import checked_name
from thresher.network.structure import Structure

__all__ = ["FORMATS", "Format", "exported", "format_named"]


@dataclass(frozen=True)
class Format:
    """One form that a network can be exported to.

    Attributes
    ----------
    name : str
        As on the command line.
    suffix : str
        How its files end.
    is_text : bool
    write : callable
        From a network and a name to the content of the file.
    """

    name: str
    suffix: str
    is_text: bool
    write: Callable[[Structure, str], bytes]


def _c(network: Structure, name: str) -> bytes:
    from thresher.export.c_source import c_source

    return c_source(network, name).encode("ascii")


def _onnx(network: Structure, name: str) -> bytes:
    from thresher.export.onnx_model import onnx_model

    return bytes(onnx_model(network, name).SerializeToString())


def _torch(network: Structure, name: str) -> bytes:
    from thresher.export.torch_source import torch_source

    return torch_source(network, name).encode("ascii")


def _json(network: Structure, _name: str) -> bytes:
    from thresher.export.json_document import json_document

    return json_document(network).encode("ascii")


FORMATS = {
    form.name: form
    for form in (
        Format("c", ".c", True, _c),
        Format("onnx", ".onnx", False, _onnx),
        Format("torch", ".py", True, _torch),
        Format("json", ".json", True, _json),
    )
}


def format_named(name: str) -> Format:
    """Give a format by its name.

    Examples
    --------
    >>> format_named("onnx").suffix
    '.onnx'
    """
    wanted = name.lower().lstrip(".")
    if wanted in FORMATS:
        return FORMATS[wanted]
    other_words = {"pytorch": "torch", "pt": "torch", "py": "torch", "c99": "c", "h": "c", "ort": "onnx"}
    close = [other_words[wanted]] if wanted in other_words else get_close_matches(wanted, FORMATS, 1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ParameterError(f"there is no format {name!r}.{hint} Use one of {', '.join(FORMATS)}.")


def exported(network: Structure, to: str, name: str = "network") -> bytes:
    """Return the content of a file that holds the network in some format.

    Parameters
    ----------
    network : Network
    to : {"c", "onnx", "torch", "json"}
    name : str
        What functions, tables and classes in the file are called after: letters, digits and underscores.
    """
    return format_named(to).write(network, checked_name(name))
