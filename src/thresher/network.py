"""The fitted network: predict, count, describe, write out as a formula.

A :class:`Network` needs NumPy and SciPy alone, so what was trained can be used where torch is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax

from thresher import files
from thresher.errors import DataError, ModelFileError, ParameterError

LINKS = ("identity", "logistic", "softmax")

# Numbers in the largest array of one chunk of rows (16 MB): any number of rows can be predicted.
CHUNK_NUMBERS = 2**21

# A formula beyond these sizes is no longer something to read. A neuron that feeds several others is written
# out once for each, so a network of few nonzeros can still need many terms.
FORMULA_NONZEROS = 200
FORMULA_TERMS = 2_000


@dataclass(frozen=True, eq=False, repr=False)
class Layer:
    """One layer of weights and biases, kept as copies in canonical form (sorted, no zeros, no duplicates).

    Parameters
    ----------
    weights : sparse array of shape (inputs, neurons)
        float32 stays float32; anything else becomes float64.
    bias : ndarray of shape (neurons,)
        Taken to the type of the weights.
    signs_only : bool
        Whether this is a fused output layer, whose entries of +1 and -1 are free.
    """

    weights: sparse.csr_array  # (inputs, neurons)
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
        with np.errstate(over="ignore"):  # what overflows is refused below, in words
            canonical = sparse.csr_array(weights.astype(dtype), copy=True)
        canonical.sum_duplicates()
        canonical.eliminate_zeros()
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

    def __repr__(self) -> str:
        return f"<Layer {self.inputs} -> {self.neurons}, {self.nonzeros:,} nonzeros>"


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """A sparse ReLU network: ReLU between the layers, none after the last.

    Parameters
    ----------
    layers : sequence of Layer
        From the inputs to the outputs.
    classes : array-like of shape (n_classes,), optional
        The labels; None for regression.
    link : {"identity", "logistic", "softmax"}
        How outputs become answers. Regression: "identity". Two classes: one output, which "logistic" takes to
        the probability of ``classes[1]`` and "identity" compares with 0.5. More: "softmax", one output each.
    features : sequence of str, optional
        Names of the inputs.

    Examples
    --------
    >>> import numpy as np
    >>> network = Network.fused(np.array([[2.0, 0.0], [0.0, 0.5]]), bias=[0.0, 1.0], signs=[1, -1])
    >>> print(network.formula())
    y = relu(2*x0) - relu(0.5*x1 + 1)
    >>> network.predict([[3.0, 4.0]])
    array([3.])
    >>> network.nonzeros
    3
    """

    layers: tuple[Layer, ...]
    classes: np.ndarray | None = None
    link: str = "identity"
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        self._check_layers()
        if self.classes is not None:
            object.__setattr__(self, "classes", np.array(self.classes))
        self._check_link()
        if self.features is not None:
            object.__setattr__(self, "features", tuple(self.features))
            _check_names(self.features, self.inputs)

    def _check_layers(self) -> None:
        if not self.layers or not all(isinstance(layer, Layer) for layer in self.layers):
            raise ParameterError(f"layers={self.layers!r}, but a network needs one Layer or more.")
        for number, (one, two) in enumerate(pairwise(self.layers)):
            if one.neurons != two.inputs:
                raise ParameterError(
                    f"layer {number} has {one.neurons} neurons, but layer {number + 1} takes {two.inputs} "
                    "inputs: they must be equal."
                )
        if any(layer.signs_only for layer in (self.layers[0], *self.layers[:-1])):
            raise ParameterError("signs_only=True is for the last of two or more layers, and came elsewhere.")

    def _check_link(self) -> None:
        if self.link not in LINKS:
            raise ParameterError(f"link={self.link!r}, but it must be one of {', '.join(LINKS)}.")
        if self.classes is None:
            if self.link != "identity":
                raise ParameterError(f"link={self.link!r} needs classes; regression has link='identity'.")
            return
        labels = self.classes
        if labels.ndim != 1 or labels.size < 2 or len(set(labels.tolist())) != labels.size:
            raise ParameterError(f"classes={labels!r}, but two or more different labels are needed.")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ParameterError(f"classes={labels!r}, but a label cannot be NaN or infinite.")
        outputs, links = (1, LINKS[:2]) if labels.size == 2 else (labels.size, LINKS[2:])
        if self.outputs != outputs or self.link not in links:
            raise ParameterError(
                f"{labels.size} classes came with outputs={self.outputs} and link={self.link!r}, but need "
                f"outputs={outputs} and link={' or '.join(map(repr, links))}."
            )

    @classmethod
    def fused(
        cls,
        weights: Any,  # (inputs, hidden)
        bias: Any,  # (hidden,), or None for no bias
        signs: Any,  # (hidden,): +1 or -1, which cost nothing
        *,
        output_bias: float = 0.0,
        classes: Any = None,
        link: str = "identity",
        features: Sequence[str] | None = None,
    ) -> Network:
        """Make the network ``sum_i signs[i] * relu(x @ weights[:, i] + bias[i]) + output_bias``.

        Weights of type float32 and float64 keep it. A neuron without weights stays.
        """
        weights = weights if sparse.issparse(weights) else np.asarray(weights)
        hidden = Layer(weights, np.zeros(weights.shape[-1:]) if bias is None else bias)
        signs = np.asarray(signs)
        if signs.shape != (hidden.neurons,) or not np.isin(signs, (-1, 1)).all():
            raise ParameterError(
                f"signs have shape {signs.shape}, but each of {hidden.neurons} neurons needs one, +1 or -1."
            )
        column = signs.reshape(-1, 1).astype(hidden.weights.dtype)
        output = Layer(column, np.array([output_bias]), signs_only=True)
        names = None if features is None else tuple(features)
        return cls((hidden, output), classes=classes, link=link, features=names)

    @property
    def inputs(self) -> int:
        """Columns of X."""
        return self.layers[0].inputs

    @property
    def hidden(self) -> tuple[int, ...]:
        """Width of every hidden layer."""
        return tuple(layer.neurons for layer in self.layers[:-1])

    @property
    def outputs(self) -> int:
        """Columns that :meth:`forward` returns."""
        return self.layers[-1].neurons

    @property
    def targets(self) -> int:
        """Columns of y: one for classification, one for each output of a regression."""
        return self.outputs if self.classes is None else 1

    @property
    def nonzeros(self) -> int:
        """Weights and biases of every layer that are not zero; the signs of a fused output are free."""
        return sum(layer.nonzeros for layer in self.layers)

    @property
    def size(self) -> int:
        """Weights and biases there could be: the largest budget that means anything."""
        return sum(layer.size for layer in self.layers)

    @property
    def coefs(self) -> list[np.ndarray]:
        """Weights of every layer as dense arrays (inputs, neurons), which may need much memory."""
        return [layer.weights.toarray() for layer in self.layers]

    @property
    def intercepts(self) -> list[np.ndarray]:
        """Biases of every layer, as copies."""
        return [layer.bias.copy() for layer in self.layers]

    @property
    def live_neurons(self) -> tuple[int, ...]:
        """How many neurons of every hidden layer can be nonzero and reach an output."""
        return tuple(int(mask.sum()) for mask in self._live()[1:-1])

    def support(self) -> np.ndarray:
        """Tell which inputs can reach an output, as a boolean mask of shape (inputs,)."""
        return self._live()[0]

    def _live(self) -> list[np.ndarray]:
        """Return a mask for inputs, each hidden layer and outputs: what takes part in the answer."""
        connected = [_pattern(layer) for layer in self.layers]
        awake = [np.ones(self.inputs, dtype=bool)]
        for layer, pattern in zip(self.layers, connected, strict=True):
            awake.append((pattern.T @ awake[-1].astype(float) > 0) | (layer.bias > 0))
        reaching = [np.ones(self.outputs, dtype=bool)]
        for pattern in reversed(connected):
            reaching.insert(0, pattern @ reaching[0].astype(float) > 0)
        # An output is answered even when it is constant.
        return [one & two for one, two in zip(awake[:-1], reaching[:-1], strict=True)] + reaching[-1:]

    def forward(self, X: Any) -> np.ndarray:
        """Return the outputs for the rows of X, before any link, as float64 of shape (n, outputs).

        Parameters
        ----------
        X : array-like or sparse array of shape (n, inputs)
            Real numbers of any type, a frame or a memory map; sparse data is never made dense.
        """
        X = self._checked(X)
        masks = self._live()
        widths = [int(mask.sum()) for mask in masks[1:]]
        if sparse.issparse(X):
            masks[0] = np.ones(self.inputs, dtype=bool)
        else:
            widths.append(self.inputs)
        # What takes no part is left out: it would only multiply zeros.
        compact = [
            (layer.weights[before][:, after].astype(np.float64), layer.bias[after].astype(np.float64))
            for layer, (before, after) in zip(self.layers, pairwise(masks), strict=True)
        ]
        answer = np.empty((X.shape[0], self.outputs))
        for start, values in _finite_chunks(X, max(1, CHUNK_NUMBERS // max(widths)), masks[0]):
            with np.errstate(over="ignore", invalid="ignore"):  # said once, in words, below
                for number, (weights, bias) in enumerate(compact):
                    product = (values if number == 0 else np.maximum(values, 0.0)) @ weights
                    values = (product.toarray() if sparse.issparse(product) else product) + bias
            answer[start : start + values.shape[0]] = values
        if not np.isfinite(answer).all():
            raise DataError("X holds values so large that the network's answer overflows: check its scale.")
        return answer

    def _checked(self, X: Any) -> Any:
        """Return X as an array or CSR array of the right shape, its values not yet looked at."""
        X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2:
            raise DataError(f"X has shape {X.shape}, but rows and columns are needed: try X.reshape(1, -1).")
        if X.shape[1] != self.inputs:
            raise DataError(
                f"X has {X.shape[1]} columns, but the network takes {self.inputs}: pass those of training."
            )
        if X.dtype.kind not in "biufO":
            raise DataError(f"X is of type {X.dtype}, but numbers are needed: convert or encode it.")
        return X

    def decision_function(self, X: Any) -> np.ndarray:
        """Return scores: (n,) for two classes, above zero for ``classes[1]``, else (n, n_classes)."""
        if self.classes is None:
            raise ParameterError(
                "decision_function needs classes, but this network is a regression: use predict."
            )
        scores = self.forward(X)
        if self.outputs > 1:
            return scores
        return scores[:, 0] - (0.5 if self.link == "identity" else 0.0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of every row, or the outputs of a regression: (n,) for one, else (n, outputs)."""
        if self.classes is None:
            values = self.forward(X)
            return values[:, 0] if self.outputs == 1 else values
        scores = self.decision_function(X)
        if self.outputs > 1:
            return self.classes[scores.argmax(axis=1)]
        # The squared-loss classifier takes classes[1] where its output is at least 0.5, a tie included.
        above = scores >= 0 if self.link == "identity" else scores > 0
        return self.classes[above.astype(np.intp)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, of shape (n, n_classes).

        With ``link="identity"`` the output itself is the probability of ``classes[1]``, clipped to [0, 1].
        """
        if self.classes is None:
            raise ParameterError(
                "predict_proba needs classes, but this network is a regression: use predict."
            )
        scores = self.forward(X)
        if self.link == "softmax":
            return softmax(scores, axis=1)
        score = scores[:, 0]
        if self.link == "logistic":
            return np.column_stack([expit(-score), expit(score)])
        second = np.clip(score, 0.0, 1.0)
        return np.column_stack([1.0 - second, second])

    def describe(self) -> str:
        """Return a short summary: shape, purpose, nonzeros, and what takes part."""
        task = f"targets={self.targets}" if self.classes is None else f"classes={self.classes.size}"
        live = [
            f"{alive:,} of {width:,}" for alive, width in zip(self.live_neurons, self.hidden, strict=True)
        ]
        return "\n".join(
            [
                f"ReLU network   {self._shape()} ({task}, link={self.link})",
                f"nonzeros       {self.nonzeros:,} of {self.size:,} ({self.nonzeros / self.size:.2%})",
                f"inputs used    {int(self.support().sum()):,} of {self.inputs:,}",
                f"neurons alive  {', '.join(live) or 'no hidden layer'}",
            ]
        )

    def _shape(self) -> str:
        return " -> ".join(map(str, (self.inputs, *self.hidden, self.outputs)))

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"<Network {self._shape()}, {self.nonzeros:,} nonzeros>"

    def formula(self, names: Sequence[str] | None = None, digits: int = 4) -> str:
        """Write the network out as plain text, a line for each output, deeper layers nested.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the inputs; by default the network's own, else x0, x1, ... as columns are numbered.
        digits : int
            Significant digits.
        """
        return _formula(self, self._live(), self.features if names is None else names, digits)

    def equals(self, other: object) -> bool:
        """Tell whether another network has the same weights to the last bit, classes, link and features."""
        if not isinstance(other, Network) or len(self.layers) != len(other.layers):
            return False
        if (self.link, self.features) != (other.link, other.features):
            return False
        if not _same_labels(self.classes, other.classes):
            return False
        return all(_same_layer(one, two) for one, two in zip(self.layers, other.layers, strict=True))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a file, by custom one ending in ``.thresher``, whole or not at all."""
        files.write(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Network:
        """Read a network that :meth:`save` wrote, everything in the file checked before it is used.

        Raises
        ------
        ModelFileError
            When the file is missing, damaged, of another kind or of another version.
        """
        stored = files.read(path)
        try:
            layers = tuple(Layer(*parts) for parts in stored.layers)
            return cls(layers, classes=stored.classes, link=stored.link, features=stored.features)
        except ParameterError as error:
            raise ModelFileError(f"{os.fspath(path)} holds a network that cannot be: {error}") from error


def _are_signs(weights: sparse.csr_array) -> bool:
    return bool((np.abs(weights.data) == 1).all() and np.diff(weights.indptr).max() <= 1)


def _pattern(layer: Layer) -> sparse.csr_array:
    """Return the support of the weights as ones, in float64 so that sums of tiny weights cannot vanish."""
    weights = layer.weights
    return sparse.csr_array((np.ones(weights.nnz), weights.indices, weights.indptr), shape=weights.shape)


def _where(mask: np.ndarray) -> list[int]:
    return [int(i) for i in np.flatnonzero(mask)]


def _check_names(names: Sequence[str], inputs: int) -> None:
    if len(names) != inputs or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{len(names)} names came for {inputs} inputs: give one string for each.")


def _finite_chunks(X: Any, rows: int, used: np.ndarray) -> Iterator[tuple[int, Any]]:
    """Yield rows of X in float64, restricted to the columns in use, with every column checked."""
    for start in range(0, X.shape[0], rows):
        chunk = X[start : start + rows]
        if chunk.dtype.kind == "O":
            try:
                chunk = chunk.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise DataError(f"X holds what is not a number ({error}): convert or encode it.") from error
        if not np.isfinite(chunk.data if sparse.issparse(chunk) else chunk).all():
            raise DataError("X holds NaN or infinity: drop those rows, or fill them in (SimpleImputer can).")
        yield start, (chunk if used.all() else chunk[:, used]).astype(np.float64)


def _formula(network: Network, masks: list[np.ndarray], names: Sequence[str] | None, digits: int) -> str:
    if not 1 <= digits <= 17:
        raise ParameterError(f"digits={digits}, but a number has between 1 and 17 significant digits.")
    _refuse_long_formula(network, masks)
    if names is None:
        names = [f"x{column}" for column in range(network.inputs)]
    _check_names(names, network.inputs)
    texts = {i: names[i] if names[i].isidentifier() else f"[{names[i]}]" for i in _where(masks[0])}
    for number, (layer, mask) in enumerate(zip(network.layers, masks[1:], strict=True)):
        if number > 0:
            texts = {i: f"relu({text})" for i, text in texts.items()}
        columns = layer.weights.tocsc()
        texts = {j: _sum_text(columns[:, [j]], texts, layer.bias[j], digits) for j in _where(mask)}
    return "\n".join(_equation(network, output, text) for output, text in texts.items())


def _refuse_long_formula(network: Network, masks: list[np.ndarray]) -> None:
    terms = masks[0].astype(float)
    for layer, mask in zip(network.layers, masks[1:], strict=True):
        terms = (_pattern(layer).T @ terms + (layer.bias != 0)) * mask
    if network.nonzeros > FORMULA_NONZEROS or terms.sum() > FORMULA_TERMS:
        raise ParameterError(
            f"a formula of {network.nonzeros:,} nonzeros in {terms.sum():,.0f} terms is too long to read (at "
            f"most {FORMULA_NONZEROS} in {FORMULA_TERMS:,}): use describe(), or fit with a smaller budget."
        )


def _equation(network: Network, output: int, text: str) -> str:
    if network.classes is None:
        return f"y = {text}" if network.outputs == 1 else f"y{output} = {text}"
    label = network.classes[1 if network.outputs == 1 else output]
    return f"P({label}) = sigmoid({text})" if network.link == "logistic" else f"score({label}) = {text}"


def _sum_text(column: sparse.csc_array, texts: dict[int, str], bias: float, digits: int) -> str:
    """Return a weighted sum as text, such as "2*x0 - x3 + 0.5"; what is not in ``texts`` is always zero."""
    inner = [(w, texts[i]) for i, w in zip(column.indices, column.data, strict=True) if i in texts]
    text = ""
    for weight, name in [*inner, (bias, "")]:
        if weight == 0:
            continue
        number = f"{abs(weight):.{digits}g}"
        product = number if not name else name if number == "1" else f"{number}*{name}"
        sign = "-" if weight < 0 else "+"
        text += f" {sign} {product}" if text else sign.strip("+") + product
    return text or "0"


def _same_labels(one: np.ndarray | None, two: np.ndarray | None) -> bool:
    if one is None or two is None:
        return one is two
    return files.label_type(one) == files.label_type(two) and bool(np.array_equal(one, two))


def _same_layer(one: Layer, two: Layer) -> bool:
    if (one.signs_only, one.weights.shape) != (two.signs_only, two.weights.shape):
        return False
    return one.weights.dtype == two.weights.dtype and all(
        np.array_equal(a, b)
        for a, b in [
            (one.bias, two.bias),
            *(
                (getattr(one.weights, part), getattr(two.weights, part))
                for part in ("indptr", "indices", "data")
            ),
        ]
    )
