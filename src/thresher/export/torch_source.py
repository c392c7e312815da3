"""A network as a Python file that builds a torch module, and needs torch alone."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from thresher._version import __version__
from thresher.export.naming import plain_labels, python_name
from thresher.network.structure import Structure

if TYPE_CHECKING:
    import torch

TAKEN = {
    *("CLASSES", "FEATURES", "LINK"),
    *("Exp", "SparseLinear", "WithDirect"),
    *("annotations", "int", "nn", "super", "torch"),
}


def torch_source(network: Structure, name: str) -> str:
    """Write the source of a file with a function that makes the module of :meth:`Network.to_torch`.

    Unlike a pickled module it can be read, and loading it executes nothing but what it shows. Numbers are
    written so that they come back to the last bit.
    """
    from thresher.export.sparse_linear import SparseLinear
    from thresher.export.torch_module import torch_module
    from thresher.export.torch_parts import Exp, WithDirect

    name = python_name(name, TAKEN)
    module = torch_module(network)
    shape = " -> ".join(map(str, (network.inputs, *network.hidden, network.outputs)))
    lines = [
        f'"""A sparse ReLU network, {shape}, {network.nonzeros} nonzeros. Written by thresher {__version__}.',
        "",
        f"{name}() makes a torch module that gives the {_given(network)}.",
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
    for kind in (SparseLinear, WithDirect, Exp):
        if any(isinstance(part, kind) for part in module.modules()):
            lines += [inspect.getsource(kind), ""]
    lines += [f"def {name}() -> nn.Sequential:", '    """Make the module, with its weights."""']
    made = _made(module, "layer", lines)
    return "\n".join([*lines, f"    return {made}", ""])


def _given(network: Structure) -> str:
    return "predictions, exp of the outputs" if network.link == "log" else "outputs before any link"


def _made(part: torch.nn.Module, name: str, lines: list[str]) -> str:
    """Add the lines that make the layers of a module; return the expression that puts it together."""
    from torch import nn

    from thresher.export.torch_parts import WithDirect

    if isinstance(part, nn.Sequential):
        # Within another module the chain's layers are numbered alone.
        inner = [_made(each, f"layer{number}", lines) for number, each in enumerate(part)]
        return f"nn.Sequential({', '.join(inner)})"
    if isinstance(part, WithDirect):
        return f"WithDirect({_made(part.chain, name, lines)}, {_made(part.direct, 'direct', lines)})"
    if not list(part.parameters()):
        return "nn.ReLU()" if isinstance(part, nn.ReLU) else "Exp()"
    lines += _dense(name, part) if isinstance(part, nn.Linear) else _sparse(name, part)
    return name


def _tensor(values: torch.Tensor | None) -> str:
    """Write a tensor as the call that makes it; one of two dimensions by its rows."""
    if values is None:
        return "None"
    shape = f".reshape({', '.join(map(str, values.shape))})" if values.dim() > 1 else ""
    return f"torch.tensor({values.detach().reshape(-1).tolist()!r}, dtype={values.dtype}){shape}"


def _dense(name: str, part: torch.nn.Linear) -> list[str]:
    bias = "" if part.bias is not None else ", bias=False"
    dtype = part.weight.dtype
    return [
        f"    {name} = nn.Linear({part.in_features}, {part.out_features}{bias}, dtype={dtype})",
        f"    {name}.weight.data = {_tensor(part.weight)}",
        *([] if part.bias is None else [f"    {name}.bias.data = {_tensor(part.bias)}"]),
    ]


def _sparse(name: str, part: torch.nn.Module) -> list[str]:
    return [
        f"    {name} = SparseLinear(",
        f"        {part.inputs},",
        f"        {part.neurons},",
        *(f"        {_tensor(values)}," for values in (part.indices, part.values, part.bias)),  # type: ignore[arg-type]
        "    )",
    ]
