"""One layer of a network, and which parts of a network take part in its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from thresher.errors import ParameterError

# Inputs beyond which a layer is held by neuron (CSC): the row starts of CSR are one number for each input,
# 8 MB here and 8 GB for a billion hashed features, of which a network reads a few hundred.
MOST_BY_INPUT = 2**20

Weights = sparse.csr_array | sparse.csc_array


@dataclass(frozen=True, eq=False, repr=False)
class Layer:
    """One layer of weights and biases, kept as copies in canonical form (sorted, no zeros, no duplicates).

    Parameters
    ----------
    weights : sparse array of shape (inputs, neurons)
        Kept as a CSR array, and as a CSC array beyond a million inputs, where nothing of their number is
        held. float32 stays float32; anything else becomes float64.
    bias : ndarray of shape (neurons,)
        Taken to the type of the weights.
    signs_only : bool
        Whether this is a fused output layer, whose entries of +1 and -1 are free.
    """

    weights: Weights  # (inputs, neurons)
    bias: np.ndarray  # (neurons,)
    signs_only: bool = False

    def __post_init__(self) -> None:
        weights = self.weights if sparse.issparse(self.weights) else np.asarray(self.weights)
        if weights.ndim != 2 or 0 in weights.shape or weights.dtype.kind not in "biuf":
            raise ParameterError(
                f"weights have shape {weights.shape} and type {weights.dtype}, but a layer needs real "
                "numbers of shape (inputs, neurons), at least one of each."
            )
        dtype = np.float32 if weights.dtype == np.float32 else np.float64
        canonical = canonical_copy(weights, dtype)
        bias = np.asarray(self.bias)
        if bias.shape != canonical.shape[1:] or bias.dtype.kind not in "biuf":
            raise ParameterError(
                f"bias has shape {bias.shape} and type {bias.dtype}, but each of the {canonical.shape[1]} "
                "neurons needs one real number."
            )
        with np.errstate(over="ignore"):
            bias = bias.astype(dtype)
        if not (np.isfinite(canonical.data).all() and np.isfinite(bias).all()):
            raise ParameterError(
                "a weight or bias is NaN or infinite, but a network holds finite numbers only."
            )
        if self.signs_only and not _are_signs(canonical):
            raise ParameterError(
                "signs_only=True, but signs are free only where every weight is +1 or -1 and no neuron feeds "
                "several outputs: use signs_only=False."
            )
        object.__setattr__(self, "weights", canonical)
        object.__setattr__(self, "bias", bias)

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

    @property
    def size(self) -> int:
        """Weights and biases there could be; the signs of a fused layer are free."""
        return (0 if self.signs_only else self.inputs * self.neurons) + self.neurons

    def pattern(self) -> Weights:
        """Return the support of the weights as ones, so that sums of tiny weights cannot vanish."""
        return pattern_of(self.weights)

    def restricted(self, before: np.ndarray, after: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
        """Return weights and biases between some inputs and some neurons, given as masks, in float64."""
        return self.weights[before][:, after].astype(np.float64), self.bias[after].astype(np.float64)

    def equals(self, other: Layer) -> bool:
        """Tell whether another layer is the same to the last bit."""
        if self.signs_only != other.signs_only or not np.array_equal(self.bias, other.bias):
            return False
        return same_entries(self.weights, other.weights)

    def __repr__(self) -> str:
        return f"<Layer {self.inputs} -> {self.neurons}, {self.nonzeros:,} nonzeros>"


def canonical_copy(weights: sparse.sparray | np.ndarray, dtype: np.typing.DTypeLike) -> Weights:
    """Copy real weights into a CSR array (CSC for very many inputs), sorted, without zeros or duplicates."""
    compressed = sparse.csr_array if weights.shape[0] <= MOST_BY_INPUT else sparse.csc_array
    with np.errstate(over="ignore"):  # what overflows is left to be refused in words
        canonical = compressed(weights.astype(dtype), copy=True)
    canonical.sum_duplicates()
    canonical.eliminate_zeros()
    return canonical


def pattern_of(weights: Weights) -> Weights:
    """Return the support of weights as ones."""
    return type(weights)((np.ones(weights.nnz), weights.indices, weights.indptr), shape=weights.shape)


def rows_of(weights: Weights, rows: np.ndarray) -> sparse.csr_array:
    """Return some rows, ascending, in memory that grows with the nonzeros and not with all rows."""
    if weights.format == "csr":
        return weights[rows]
    entries = weights.tocoo()
    place = np.searchsorted(rows, entries.row)
    found = np.take(rows, place, mode="clip") == entries.row
    parts = entries.data[found], (place[found], entries.col[found])
    return sparse.csr_array(parts, shape=(len(rows), weights.shape[1]))


def columns_of(X: sparse.csr_array, columns: np.ndarray) -> sparse.csr_array:
    """Return some columns, ascending: as `rows_of`."""
    return rows_of(X.T, columns).T.tocsr()


def narrowed(
    layers: Sequence[Layer],
    direct: Weights | None = None,  # (inputs, outputs)
) -> tuple[np.ndarray, list[Layer], sparse.csr_array | None]:
    """Return the inputs that any weight reads, ascending, and the layers and direct weights of these alone.

    Everything that looks at a network looks at it this way, so that a billion inputs cost nothing. A network
    that reads nothing keeps its first input.

    Examples
    --------
    >>> layer = Layer(np.array([[0.0], [2.0], [0.0]]), np.zeros(1))
    >>> read, layers, _ = narrowed([layer])
    >>> read, layers[0].weights.toarray()
    (array([1]), array([[2.]]))
    """
    parts = [layers[0].weights] if direct is None else [layers[0].weights, direct]
    read = np.unique(np.concatenate([part.tocoo().row for part in parts])).astype(np.int64)
    read = read if read.size else np.zeros(1, dtype=np.int64)
    first = Layer(rows_of(layers[0].weights, read), layers[0].bias, layers[0].signs_only)
    return read, [first, *layers[1:]], None if direct is None else rows_of(direct, read)


def same_entries(one: Weights, two: Weights) -> bool:
    """Tell whether two arrays in canonical form are the same to the last bit."""
    if (one.shape, one.dtype) != (two.shape, two.dtype):
        return False
    return all(
        np.array_equal(getattr(one, part), getattr(two, part)) for part in ("indptr", "indices", "data")
    )


def live(
    layers: Sequence[Layer],
    direct: Weights | None = None,  # (inputs, outputs)
) -> list[np.ndarray]:
    """Return a mask for inputs, each hidden layer and outputs: what takes part in the answer.

    A neuron takes part when it can be above zero and a path leads from it to an output. An input takes part
    when it leads to such a neuron or has a direct connection. An output is answered even when it is constant.

    Examples
    --------
    >>> hidden = Layer(np.array([[1.0, 0.0], [0.0, 2.0]]), np.zeros(2))
    >>> output = Layer(np.array([[3.0], [0.0]]), np.zeros(1))
    >>> [mask.tolist() for mask in live([hidden, output])]
    [[True, False], [True, False], [True]]
    """
    connected = [layer.pattern() for layer in layers]
    awake = [np.ones(layers[0].inputs, dtype=bool)]
    for layer, pattern in zip(layers, connected, strict=True):
        awake.append((pattern.T @ awake[-1].astype(float) > 0) | (layer.bias > 0))
    reaching = [np.ones(layers[-1].neurons, dtype=bool)]
    for pattern in reversed(connected):
        reaching.insert(0, pattern @ reaching[0].astype(float) > 0)
    masks = [one & two for one, two in zip(awake[:-1], reaching[:-1], strict=True)] + reaching[-1:]
    if direct is not None:
        masks[0][np.unique(direct.tocoo().row)] = True
    return masks


def _are_signs(weights: Weights) -> bool:
    return bool((np.abs(weights.data) == 1).all() and np.unique(weights.tocoo().row).size == weights.nnz)
