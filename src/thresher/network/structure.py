"""What a network is made of: layers that chain, direct connections, labels, names; what it counts and what
takes part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from thresher.errors import ParameterError
from thresher.network.files import label_type
from thresher.network.layer import Layer, Weights, canonical_copy, live, narrowed, same_entries
from thresher.network.metadata import plain_copy

LINKS = ("identity", "logistic", "softmax", "log")


@dataclass(frozen=True, eq=False, repr=False)
class Structure:
    """The parts of a network, checked and kept as copies; :class:`thresher.Network` tells what each is."""

    layers: tuple[Layer, ...]
    classes: np.ndarray | None = None
    link: str = "identity"
    features: tuple[str, ...] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # None means none
    direct: Weights | None = None  # (inputs, outputs)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        self._check_layers()
        if self.direct is not None:
            object.__setattr__(self, "direct", self._checked_direct(self.direct))
        if self.classes is not None:
            object.__setattr__(self, "classes", np.array(self.classes))
        self._check_link()
        if self.features is not None:
            object.__setattr__(self, "features", tuple(self.features))
            check_names(self.features, self.inputs)
        object.__setattr__(self, "details", plain_copy({} if self.details is None else self.details))

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

    def _checked_direct(self, direct: Any) -> Weights | None:
        """Return direct connections as a copy in canonical form, in the type of the first layer's weights."""
        direct = direct if sparse.issparse(direct) else np.asarray(direct)
        if direct.shape != (self.inputs, self.outputs) or direct.dtype.kind not in "biuf":
            raise ParameterError(
                f"direct has shape {direct.shape} and type {direct.dtype}, but direct connections need real "
                f"numbers of shape (inputs, outputs), here ({self.inputs}, {self.outputs})."
            )
        canonical = canonical_copy(direct, self.layers[0].weights.dtype)
        if not np.isfinite(canonical.data).all():
            raise ParameterError(
                "a direct weight is NaN or infinite, but a network holds finite numbers only."
            )
        return canonical if canonical.nnz else None

    def _check_link(self) -> None:
        if self.link not in LINKS:
            raise ParameterError(f"link={self.link!r}, but it must be one of {', '.join(LINKS)}.")
        if self.classes is None:
            if self.link == "softmax" or (self.link == "logistic" and self.outputs == 1):
                raise ParameterError(
                    f"link={self.link!r} needs classes; regression has link='identity' or 'log', and two "
                    "labels or more have link='logistic' with an output each."
                )
            return
        labels = self.classes
        if labels.ndim != 1 or labels.size < 2 or len(set(labels.tolist())) != labels.size:
            raise ParameterError(f"classes={labels!r}, but two or more different labels are needed.")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ParameterError(f"classes={labels!r}, but a label cannot be NaN or infinite.")
        outputs, links = (1, LINKS[:2]) if labels.size == 2 else (labels.size, LINKS[2:3])
        if self.outputs != outputs or self.link not in links:
            raise ParameterError(
                f"{labels.size} classes came with outputs={self.outputs} and link={self.link!r}, but need "
                f"outputs={outputs} and link={' or '.join(map(repr, links))}."
            )

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
    def gives_labels(self) -> bool:
        """Whether a row has or has not each of several labels, whose log-odds are the outputs."""
        return self.classes is None and self.link == "logistic"

    @property
    def targets(self) -> int:
        """Columns of y: one for classification, one for each output of a regression, one for each label."""
        return self.outputs if self.classes is None else 1

    @property
    def nonzeros(self) -> int:
        """Weights, direct ones too, and biases that are not zero; the signs of a fused output are free."""
        direct = 0 if self.direct is None else int(self.direct.nnz)
        return sum(layer.nonzeros for layer in self.layers) + direct

    @property
    def size(self) -> int:
        """Weights and biases there could be: the largest budget that means anything.

        Direct weights count where the network has any.
        """
        direct = 0 if self.direct is None else self.inputs * self.outputs
        return sum(layer.size for layer in self.layers) + direct

    @property
    def coefs(self) -> list[np.ndarray]:
        """Weights of every layer as dense arrays (inputs, neurons), which may need much memory."""
        return [layer.weights.toarray() for layer in self.layers]

    @property
    def intercepts(self) -> list[np.ndarray]:
        """Biases of every layer, as copies."""
        return [layer.bias.copy() for layer in self.layers]

    @property
    def direct_coef(self) -> np.ndarray:
        """Direct weights as a dense array (inputs, outputs), zeros where there are none."""
        if self.direct is None:
            return np.zeros((self.inputs, self.outputs), dtype=self.layers[0].weights.dtype)
        return self.direct.toarray()

    @property
    def live_neurons(self) -> tuple[int, ...]:
        """How many neurons of every hidden layer can be nonzero and reach an output."""
        return tuple(int(mask.sum()) for mask in live(narrowed(self.layers)[1])[1:-1])

    def support(self) -> np.ndarray:
        """Tell which inputs can reach an output, as a boolean mask of shape (inputs,)."""
        mask = np.zeros(self.inputs, dtype=bool)
        mask[self.inputs_used()] = True
        return mask

    def inputs_used(self) -> np.ndarray:
        """Return the numbers of the inputs that can reach an output, ascending."""
        read, layers, direct = narrowed(self.layers, self.direct)
        return read[live(layers, direct)[0]]

    def equals(self, other: object) -> bool:
        """Tell whether another network has the same weights to the last bit, classes, link and features.

        Direct weights count, details do not.
        """
        if not isinstance(other, Structure) or len(self.layers) != len(other.layers):
            return False
        if (self.link, self.features) != (other.link, other.features):
            return False
        if not _same_labels(self.classes, other.classes):
            return False
        if self.direct is None or other.direct is None:
            if self.direct is not other.direct:
                return False
        elif not same_entries(self.direct, other.direct):
            return False
        return all(one.equals(two) for one, two in zip(self.layers, other.layers, strict=True))


def check_names(names: Sequence[str], inputs: int) -> None:
    """Refuse names that are no strings, or not one for each input."""
    if len(names) != inputs or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"{len(names)} names came for {inputs} inputs: give one string for each.")


def _same_labels(one: np.ndarray | None, two: np.ndarray | None) -> bool:
    if one is None or two is None:
        return one is two
    return label_type(one) == label_type(two) and bool(np.array_equal(one, two))
