"""A network as a Python file that builds a torch module, and needs torch alone."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from thresher._version import __version__
from thresher.export.naming import plain_labels, python_name
from thresher.network.structure import Structure

if TYPE_CHECKING:
    import torch

TAKEN = {"CLASSES", "FEATURES", "LINK", "SparseLinear", "annotations", "int", "nn", "super", "torch"}


def torch_source(network: Structure, name: str) -> str:
    """Write the source of a file with a function that makes the module of :meth:`Network.to_torch`.

    Unlike a pickled module it can be read, and loading it executes nothing but what it shows. Numbers are
    written so that they come back to the last bit.
    """
    from torch import nn

    from thresher.export import sparse_linear
    from thresher.export.torch_module import torch_module

    name = python_name(name, TAKEN)
    module = torch_module(network)
    shape = " -> ".join(map(str, (network.inputs, *network.hidden, network.outputs)))
    lines = [
        f'"""A sparse ReLU network, {shape}, {network.nonzeros} nonzeros. Written by thresher {__version__}.',
        "",
        f"{name}() makes a torch module that gives the outputs before any link.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "import torch",
        "from torch import nn",
        "",
        f"FEATURES = {None if network.features is None else ascii(list(network.features))}",
        f"CLASSES = {None if network.classes is None else ascii(plain_labels(network.classes))}",
        f"LINK = {network.link!r}",
        "",
        "",
    ]
    if any(isinstance(part, sparse_linear.SparseLinear) for part in module):
        lines += [inspect.getsource(sparse_linear.SparseLinear), ""]
    lines += [f"def {name}() -> nn.Sequential:", '    """Make the module, with its weights."""']
    made = []
    for number, part in enumerate(module):
        if isinstance(part, nn.ReLU):
            made.append("nn.ReLU()")
        elif isinstance(part, nn.Linear):
            made.append(f"layer{number}")
            lines += _dense(number, part)
        else:
            assert isinstance(part, sparse_linear.SparseLinear)
            made.append(f"layer{number}")
            lines += _sparse(number, part)
    return "\n".join([*lines, f"    return nn.Sequential({', '.join(made)})", ""])


def _tensor(values: torch.Tensor) -> str:
    """Write a tensor as the call that makes it; one of two dimensions by its rows."""
    shape = f".reshape({', '.join(map(str, values.shape))})" if values.dim() > 1 else ""
    return f"torch.tensor({values.detach().reshape(-1).tolist()!r}, dtype={values.dtype}){shape}"


def _dense(number: int, part: torch.nn.Linear) -> list[str]:
    return [
        f"    layer{number} = nn.Linear({part.in_features}, {part.out_features}, dtype={part.weight.dtype})",
        f"    layer{number}.weight.data = {_tensor(part.weight)}",
        f"    layer{number}.bias.data = {_tensor(part.bias)}",
    ]


def _sparse(number: int, part: torch.nn.Module) -> list[str]:
    return [
        f"    layer{number} = SparseLinear(",
        f"        {part.inputs},",
        f"        {part.neurons},",
        *(f"        {_tensor(values)}," for values in (part.indices, part.values, part.bias)),  # type: ignore[arg-type]
        "    )",
    ]
