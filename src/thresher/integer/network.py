"""The integer network: what a device computes, defined here to the last bit in 64-bit whole numbers.

For codes ``x`` of the inputs in use, weights ``W`` and biases ``b``, all of them whole numbers, layer after
layer::

    s = x W + b,    x <- min(max(s, 0) >> shift, 2**activation_bits - 1)

and at the end ``outputs = (x W << hidden_shift) + (codes D << direct_shift) + b``. Every export gives these
outputs, the same on every device. No sum can overflow 64 bits: :mod:`thresher.integer.ranges` proves it when
a network is made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from thresher.errors import ModelFileError, ParameterError, SaturationWarning, warn_user
from thresher.integer import files
from thresher.integer.coding import InputCoding
from thresher.integer.ranges import Ranges, proved
from thresher.network.forward import CHUNK_NUMBERS, checked, exponential, finite_chunks
from thresher.network.metadata import plain_copy

# Bits that neurons may be kept to.
LEAST_ACTIVATION, MOST_ACTIVATION = 1, 32
MOST_SHIFT = 62


@dataclass(frozen=True, eq=False, repr=False)
class IntegerLayer:
    """One layer of whole numbers.

    Parameters
    ----------
    weights : sparse array of shape (inputs, neurons)
        Kept as a CSC array of int64, sorted, without zeros: a neuron's weights stand together.
    bias : ndarray of shape (neurons,)
    shift : ndarray of shape (neurons,)
        By how many bits each neuron is shifted down; zeros in the last layer.
    signs_only : bool
        Whether this is a fused output layer, whose entries of +1 and -1 are free.
    """

    weights: sparse.csc_array
    bias: np.ndarray
    shift: np.ndarray
    signs_only: bool = False

    def __post_init__(self) -> None:
        weights = sparse.csc_array(self.weights, copy=True).astype(np.int64)
        weights.sum_duplicates()
        weights.eliminate_zeros()
        neurons = weights.shape[1]
        for name in ("bias", "shift"):
            values = np.asarray(getattr(self, name))
            if values.shape != (neurons,) or values.dtype.kind not in "iu":
                raise ParameterError(f"{name} should be a whole number for each of {neurons} neurons.")
            object.__setattr__(self, name, values.astype(np.int64))
        if self.shift.size and not (self.shift.min() >= 0 and self.shift.max() <= MOST_SHIFT):
            raise ParameterError(f"a shift should be 0 to {MOST_SHIFT}.")
        if self.signs_only and not (np.abs(weights.data) == 1).all():
            raise ParameterError("signs_only=True, but some weight is not +1 or -1.")
        object.__setattr__(self, "weights", weights)

    @property
    def inputs(self) -> int:
        """How many numbers come in."""
        return int(self.weights.shape[0])

    @property
    def neurons(self) -> int:
        """How many numbers go out."""
        return int(self.weights.shape[1])

    @property
    def nonzeros(self) -> int:
        """Weights and biases that are not zero; the signs of a fused layer are free."""
        return (0 if self.signs_only else int(self.weights.nnz)) + int(np.count_nonzero(self.bias))

    def __repr__(self) -> str:
        return f"<IntegerLayer {self.inputs} -> {self.neurons}, {self.nonzeros:,} nonzeros>"


@dataclass(frozen=True, eq=False, repr=False)
class IntegerNetwork:
    """A sparse ReLU network of whole numbers, as :meth:`thresher.Network.quantise` makes one.

    It holds the inputs in use and the neurons that take part, no others.

    Parameters
    ----------
    layers : sequence of IntegerLayer
        From the inputs in use to the outputs.
    columns : int
        Columns of X.
    used : ndarray
        The columns in use, ascending.
    coding : InputCoding
        How those columns become codes.
    activation_bits : int
        Bits that neurons are kept to, 1 to 32.
    output_scale : ndarray of shape (outputs,)
        What one step of each output is worth.
    threshold : int
        Two classes: an output above it means ``classes[1]``.
    direct : sparse array of shape (used, outputs), optional
        Weights from inputs straight to outputs.
    hidden_shift, direct_shift : int
        By how many bits the two sums of the outputs are shifted up.
    weight_kind : str
        ``"int2"`` to ``"int16"``, or ``"pow2"``.
    weight_bits : int
        Bits of one weight.
    classes, link, features, details
        As those of :class:`thresher.Network`; `features` names all columns.
    """

    layers: tuple[IntegerLayer, ...]
    columns: int
    used: np.ndarray
    coding: InputCoding
    activation_bits: int
    output_scale: np.ndarray
    threshold: int = 0
    direct: sparse.csc_array | None = None
    hidden_shift: int = 0
    direct_shift: int = 0
    weight_kind: str = "int8"
    weight_bits: int = 8
    classes: np.ndarray | None = None
    link: str = "identity"
    features: tuple[str, ...] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "used", np.asarray(self.used, dtype=np.int64))
        object.__setattr__(self, "output_scale", np.asarray(self.output_scale, dtype=np.float64))
        object.__setattr__(self, "details", plain_copy(self.details))
        if self.direct is not None:
            direct = sparse.csc_array(self.direct, copy=True).astype(np.int64)
            direct.sum_duplicates()
            direct.eliminate_zeros()
            object.__setattr__(self, "direct", direct if direct.nnz else None)
        self._check()
        proved(self)

    def _check(self) -> None:
        if not self.layers or any(one.neurons != two.inputs for one, two in pairwise(self.layers)):
            raise ParameterError("layers should be one or more, each with as many inputs as come before it.")
        ascending = (
            (np.diff(self.used) > 0).all() and (self.used >= 0).all() and (self.used < self.columns).all()
        )
        if self.used.shape != (self.layers[0].inputs,) or not ascending:
            raise ParameterError("used should name one column for each input of the first layer, ascending.")
        if any(
            part.ndim and part.shape != self.used.shape for part in (self.coding.scale, self.coding.offset)
        ):
            raise ParameterError("coding should have one scale and offset, or one for each column in use.")
        if not LEAST_ACTIVATION <= self.activation_bits <= MOST_ACTIVATION:
            raise ParameterError(
                f"activation_bits={self.activation_bits}, but it is a whole number from "
                f"{LEAST_ACTIVATION} to {MOST_ACTIVATION}."
            )
        if self.output_scale.shape != (self.outputs,) or not (self.output_scale > 0).all():
            raise ParameterError("output_scale should be a number above zero for each output.")
        if self.direct is not None and self.direct.shape != (self.used.size, self.outputs):
            raise ParameterError(
                "direct should have a row for each input in use and a column for each output."
            )
        if not all(0 <= shift <= MOST_SHIFT for shift in (self.hidden_shift, self.direct_shift)):
            raise ParameterError(f"shifts of sums should be 0 to {MOST_SHIFT}.")
        if self.layers[-1].shift.any():
            raise ParameterError("outputs have no shift of their own.")
        if self.classes is not None:
            object.__setattr__(self, "classes", np.array(self.classes))
            if self.outputs != (1 if self.classes.size == 2 else self.classes.size):
                raise ParameterError(f"{self.classes.size} classes do not fit {self.outputs} outputs.")

    @property
    def inputs(self) -> int:
        """Columns of X."""
        return self.columns

    @property
    def hidden(self) -> tuple[int, ...]:
        """Neurons of every hidden layer that take part."""
        return tuple(layer.neurons for layer in self.layers[:-1])

    @property
    def outputs(self) -> int:
        """How many numbers come out."""
        return self.layers[-1].neurons

    @property
    def nonzeros(self) -> int:
        """Weights, direct ones too, and biases that are not zero; the signs of a fused output are free."""
        return sum(layer.nonzeros for layer in self.layers) + (
            0 if self.direct is None else int(self.direct.nnz)
        )

    @property
    def activation_limit(self) -> int:
        """The largest number a neuron can have; what would be larger saturates."""
        return 2**self.activation_bits - 1

    @cached_property
    def ranges(self) -> Ranges:
        """Between which numbers every sum is, for any input."""
        return proved(self)

    def inputs_used(self) -> np.ndarray:
        """Return the columns in use, ascending."""
        return self.used.copy()

    def codes(self, X: Any) -> np.ndarray:
        """Return what the device is given for the rows of X: codes of the inputs in use, int64 (n, used)."""
        parts = [self.coding.codes(values) for values in self._chunks(X)]
        return np.concatenate(parts) if parts else np.empty((0, self.used.size), dtype=np.int64)

    def run(self, codes: np.ndarray) -> np.ndarray:
        """Return the outputs for codes of the inputs in use (n, used) as int64 of shape (n, outputs)."""
        return self._trace(np.asarray(codes, dtype=np.int64))[0]

    def forward(self, X: Any) -> np.ndarray:
        """Return the outputs for the rows of X as whole numbers, int64 of shape (n, outputs).

        Numbers that no code of the inputs reaches are kept to the nearest one; a warning says how many.
        """
        found, outside = [], 0
        for values in self._chunks(X):
            outside += self.coding.outside(values)
            found.append(self.run(self.coding.codes(values)))
        if outside:
            warn_user(
                f"{outside:,} numbers of X are beyond {self.coding.kind} inputs and were kept to the nearest "
                "code.",
                SaturationWarning,
            )
        return np.concatenate(found) if found else np.empty((0, self.outputs), dtype=np.int64)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of every row, or the outputs of a regression times their scale.

        Of outputs that are equal the first class wins; of two classes the second needs an output above
        `threshold`. Under the log link a regression answers exponentials. Several labels are 0 or 1 each.
        """
        outputs = self.forward(X)
        if self.classes is not None:
            return self.classes[self.class_numbers(outputs)]
        if self.link == "logistic":
            return (outputs > 0).astype(np.int64)
        values = outputs * self.output_scale
        values = exponential(values) if self.link == "log" else values
        return values[:, 0] if self.outputs == 1 else values

    def class_numbers(self, outputs: np.ndarray) -> np.ndarray:
        """Return the number of the class that outputs (n, outputs) stand for."""
        if self.outputs == 1:
            return (outputs[:, 0] > self.threshold).astype(np.int64)
        return outputs.argmax(axis=1)

    def saturation(self, X: Any) -> dict[str, int]:
        """Count what was kept to its range on the rows of X: numbers of the inputs, and neurons."""
        inputs = neurons = rows = 0
        for values in self._chunks(X):
            inputs += self.coding.outside(values)
            neurons += self._trace(self.coding.codes(values))[1]
            rows += len(values)
        return {"rows": rows, "inputs": inputs, "neurons": neurons}

    def _trace(self, codes: np.ndarray) -> tuple[np.ndarray, int]:
        """Return outputs, and how many neurons were kept to the largest activation."""
        values, saturated = codes, 0
        for layer in self.layers[:-1]:
            shifted = np.maximum(values @ layer.weights + layer.bias, 0) >> layer.shift
            saturated += int((shifted > self.activation_limit).sum())
            values = np.minimum(shifted, self.activation_limit)
        outputs = (values @ self.layers[-1].weights << self.hidden_shift) + self.layers[-1].bias
        if self.direct is not None:
            outputs += codes @ self.direct << self.direct_shift
        return outputs, saturated

    def _chunks(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the columns in use of some rows after others, in float64."""
        X = checked(X, self.columns, self.features)
        widest = max(X.shape[1] if not sparse.issparse(X) else 1, self.used.size, *self.hidden, self.outputs)
        for _, values in finite_chunks(X, max(1, CHUNK_NUMBERS // widest), self.used):
            yield values.toarray() if sparse.issparse(values) else values

    def describe(self) -> str:
        """Return a short summary: shape, bits, nonzeros, ranges."""
        widths = " -> ".join(map(str, (self.used.size, *self.hidden, self.outputs)))
        bits = ", ".join(str(layer.bits) for layer in self.ranges.layers)
        lines = [
            f"integer network {widths}, {self.nonzeros:,} nonzeros",
            f"inputs: {self.used.size} of {self.columns} columns as {self.coding.kind}",
            f"weights: {self.weight_kind}, {self.weight_bits} bits; activations: {self.activation_bits} bits",
            f"sums: {bits} bits, proved for any input",
        ]
        if self.classes is None:
            lines.append("one step of an output: " + ", ".join(f"{scale:.6g}" for scale in self.output_scale))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        shape = " -> ".join(map(str, (self.used.size, *self.hidden, self.outputs)))
        return f"<IntegerNetwork {shape}, {self.nonzeros:,} nonzeros, {self.weight_kind}>"

    def equals(self, other: object) -> bool:
        """Tell whether another network computes the same by the same numbers; details do not count."""
        if not isinstance(other, IntegerNetwork) or files.config_of(self) != files.config_of(other):
            return False
        theirs = files.tensors_of(other)
        return all(np.array_equal(part, theirs[name]) for name, part in files.tensors_of(self).items())

    def to_c(self, name: str = "network", *, packed: bool = True, used_inputs: bool = True) -> str:
        """Return one C99 file of whole numbers with its declarations; see :meth:`to_c_files`."""
        from thresher.export.integer_c import one_file

        return one_file(self, name, packed=packed, used_inputs=used_inputs)

    def to_c_files(
        self, name: str = "network", X: Any = None, *, packed: bool = True, used_inputs: bool = True
    ) -> dict[str, str]:
        """Return C99 files: source, header, and with rows X a program that checks them on the device.

        Parameters
        ----------
        name : str
            What every name in the files begins with.
        X : array-like of shape (n, inputs), optional
            Rows for the test.
        packed : bool
            Whether tables are a stream of bits, the smallest form, rather than arrays, the fastest.
        used_inputs : bool
            Whether the function takes the inputs in use alone rather than all columns.
        """
        from thresher.export.integer_c import c_files

        return c_files(self, name, X, packed=packed, used_inputs=used_inputs)

    def to_verilog(
        self, name: str = "network", X: Any = None, *, pipeline: bool = False, serial: bool = False
    ) -> str:
        """Return a Verilog-2001 module, and with rows X a test bench that checks itself on them.

        Parameters
        ----------
        name : str
            Name of the module.
        X : array-like of shape (n, inputs), optional
            Rows for the test bench.
        pipeline : bool
            Whether registers follow every layer.
        serial : bool
            Whether a second module, ``NAME_serial``, takes one input at each clock.
        """
        from thresher.export.verilog import test_bench, verilog
        from thresher.export.verilog_serial import serial as serial_module

        parts = [verilog(self, name, pipeline=pipeline)]
        if serial:
            parts.append(serial_module(self, name, pipeline=pipeline))
        if X is not None:
            parts.append("\n" + test_bench(self, name, self.codes(X), pipeline=pipeline))
        return "".join(parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a file, whole or not at all."""
        files.write(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IntegerNetwork:
        """Read a network that :meth:`save` wrote, everything in the file checked before it is used.

        Raises
        ------
        ModelFileError
            When the file is missing, damaged, of another kind or of another version.
        """
        parts = files.read(path)
        try:
            layers = tuple(IntegerLayer(*layer) for layer in parts.pop("layers"))
            return cls(layers=layers, coding=InputCoding(*parts.pop("coding")), **parts)
        except ParameterError as error:
            raise ModelFileError(f"{os.fspath(path)} holds a network that cannot be: {error}") from error


def names_in_use(network: IntegerNetwork) -> Sequence[str] | None:
    """Return the names of the inputs in use, where there are names."""
    return None if network.features is None else [network.features[column] for column in network.used]
