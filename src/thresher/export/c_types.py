"""Types and tables of the C of integer networks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from thresher.integer import IntegerNetwork

# Characters of a line of a table.
WIDTH = 96


def signed_type(bits: int) -> str:
    """Name the smallest signed type that has so many bits.

    Examples
    --------
    >>> signed_type(7), signed_type(17)
    ('int8_t', 'int32_t')
    """
    return f"int{_size(bits)}_t"


def unsigned_type(bits: int) -> str:
    """Name the smallest unsigned type that has so many bits."""
    return f"uint{_size(bits)}_t"


def sum_type(bits: int) -> str:
    """Name the smallest signed type that has so many bits, 16 at least: what is smaller saves nothing."""
    return signed_type(max(bits, 16))


def _size(bits: int) -> int:
    return next(size for size in (8, 16, 32, 64) if bits <= size)


def layer_type(network: IntegerNetwork, number: int) -> str:
    """Name the type in which a layer is summed up."""
    return sum_type(network.ranges.layers[number].bits)


def activation_type(network: IntegerNetwork, number: int) -> str:
    """Name the type of a hidden layer's neurons."""
    return unsigned_type(int(max(network.ranges.layers[number].activation)).bit_length())


def product_type(network: IntegerNetwork, largest: int, before: int | None) -> str:
    """Name the smallest type of 16 bits or more that holds a weight, what it multiplies, and their product.

    Parameters
    ----------
    network : IntegerNetwork
    largest : int
        The largest weight.
    before : int or None
        The hidden layer that weights read, None for inputs.
    """
    if before is None:
        widest = max(abs(end) for end in network.coding.range)
    else:
        widest = int(max(network.ranges.layers[before].activation))
    return sum_type(1 + (widest * max(largest, 1)).bit_length())


def constant(value: int) -> str:
    """Write a number so that every compiler gives it a type that holds it.

    Examples
    --------
    >>> constant(7), constant(-40_000)
    ('7', 'INT32_C(-40000)')
    """
    bits = abs(value).bit_length()
    return str(value) if bits < 16 else f"INT{32 if bits < 32 else 64}_C({value})"


def times(kind: str, shift: int) -> str:
    """Write a shift up of a number that may be negative, which C has none for."""
    return f" * (({kind})1 << {shift})" if shift else ""


def activation(network: IntegerNetwork, number: int, shift: str) -> Iterator[str]:
    """Write the end of a hidden neuron: zero or more, shifted down, kept to the largest."""
    held, kind = activation_type(network, number), layer_type(network, number)
    shifted = "sum" if shift == "0" else f"sum >> {shift}"
    if not network.ranges.layers[number].saturates:
        yield f"h{number}[j] = ({held})(sum > 0 ? {shifted} : 0);"
        return
    limit = constant(network.activation_limit)
    yield f"sum = ({kind})(sum > 0 ? {shifted} : 0);"
    yield f"h{number}[j] = ({held})(sum > {limit} ? {limit} : sum);"


def answer(network: IntegerNetwork, bias: str | None) -> str:
    """Write the end of an output."""
    kind = layer_type(network, len(network.layers) - 1)
    before = "out[j] + " if network.direct is not None else ""
    after = f" + {bias}" if bias else ""
    return f"out[j] = (NAME_output)({before}sum{times(kind, network.hidden_shift)}{after});"


def declared(network: IntegerNetwork) -> list[str]:
    """Declare the neurons of hidden layers."""
    return [
        f"{activation_type(network, number)} h{number}[{layer.neurons}];"
        for number, layer in enumerate(network.layers[:-1])
    ]


def function(body: list[str]) -> str:
    """Write the function that computes the outputs."""
    lines = [f"    {line}" for line in body]
    return "\n".join(["void NAME_run(const NAME_input *in, NAME_output *out) {", *lines, "}", ""])


def indented(lines: list[str]) -> list[str]:
    """Move lines in by one level."""
    return [f"    {line}" for line in lines]


@dataclass(frozen=True, eq=False)
class Table:
    """A table of whole numbers of one or two dimensions, in the smallest type that holds them."""

    name: str
    values: np.ndarray

    @property
    def signed(self) -> bool:
        """Whether some number is below zero."""
        return bool((self.values < 0).any())

    @property
    def size(self) -> int:
        """Bits of one number."""
        most = int(np.abs(self.values).max(initial=0))
        return _size(most.bit_length() + self.signed)

    def read(self, place: str) -> str:
        """Write how one number is read."""
        sign = f"(int{self.size}_t)" if self.signed else ""
        return f"{sign}NAME_READ{self.size}(&NAME_{self.name}[{place}])"

    def __str__(self) -> str:
        kind = f"{'' if self.signed else 'u'}int{self.size}_t"
        return listed(kind, f"NAME_{self.name}[{len(self.values)}]", "NAME_FLASH", self.values)


def listed(kind: str, name: str, flash: str, values: np.ndarray) -> str:
    """Write the declaration of a table; of two dimensions with a row in braces each."""
    if values.ndim == 2:
        body = ",\n".join(f"    {{{_numbers(row)}}}" for row in values)
    else:
        body = f"    {_numbers(values)}"
    return f"static const {kind} {name} {flash} = {{\n{body}\n}};\n"


def _numbers(values: np.ndarray) -> str:
    numbers = [constant(value) for value in values.tolist()]
    each = max(1, WIDTH // (2 + max(map(len, numbers))))
    return ",\n    ".join(", ".join(numbers[i : i + each]) for i in range(0, len(numbers), each))
