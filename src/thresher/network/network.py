"""The fitted network: describe, write out as a formula, save, export.

A :class:`Network` needs NumPy and SciPy alone, so what was trained can be used where torch is not installed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from thresher.errors import ModelFileError, ParameterError
from thresher.network import description, files, formula
from thresher.network.layer import Layer
from thresher.network.predictor import Predictor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thresher.explain.readable import Explanation
    from thresher.integer import InputCoding, IntegerNetwork

__all__ = ["Layer", "Network"]


@dataclass(frozen=True, eq=False, repr=False)
class Network(Predictor):
    """A sparse ReLU network: ReLU between the layers, none after the last, direct connections beside them.

    Parameters
    ----------
    layers : sequence of Layer
        From the inputs to the outputs.
    classes : array-like of shape (n_classes,), optional
        The labels; None for regression, and where a row may have several labels.
    link : {"identity", "logistic", "softmax", "log"}
        How outputs become answers. Regression: "identity", or "log" where the answer is the exponential of
        the output (counts, rates). Two classes: one output, which "logistic" takes to the probability of
        ``classes[1]`` and "identity" compares with 0.5. More: "softmax", one output each. Several labels for
        a row: no classes and "logistic", the log-odds of one label in each output.
    features : sequence of str, optional
        Names of the inputs.
    details : mapping, optional
        Anything else worth keeping, as JSON could hold it; saved and loaded, and without influence on any
        prediction. ``target`` (a name, or one for each target) is used in formulas and descriptions,
        ``spread`` (the standard deviation of every input) to compare inputs, ``calibration`` for intervals.
    direct : sparse array of shape (inputs, outputs), optional
        Weights from the inputs straight to the outputs, a linear part: ``X @ direct`` is added to what the
        layers give. They count like any weight, and become the type of the first layer's. One without
        nonzeros is kept as None.

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

    @classmethod
    def fused(
        cls,
        weights: Any,  # (inputs, hidden)
        bias: Any,  # (hidden,), or None for no bias
        signs: Any,  # (hidden,): +1 or -1, which cost nothing
        *,
        direct: Any = None,  # (inputs,) or (inputs, 1)
        output_bias: float = 0.0,
        classes: Any = None,
        link: str = "identity",
        features: Sequence[str] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> Network:
        """Make the network ``x @ direct + sum_i signs[i] * relu(x @ weights[:, i] + bias[i]) + output_bias``.

        Weights of type float32 and float64 keep it. A neuron without weights stays.

        Examples
        --------
        >>> print(Network.fused([[0.0], [3.0]], [1.0], [-1], direct=[0.5, 0.0], output_bias=2.0).formula())
        y = 0.5*x0 - relu(3*x1 + 1) + 2
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
        if direct is not None:
            direct = direct if sparse.issparse(direct) else np.asarray(direct)
            direct = direct.reshape(-1, 1) if direct.ndim == 1 else direct
        return cls((hidden, output), classes, link, names, details or {}, direct)

    def describe(self, X: Any = None) -> str:
        """Return a short summary: shape, purpose, layers, nonzeros, inputs used and how much each matters.

        A small network is written out as a formula too.

        Parameters
        ----------
        X : array-like or sparse array of shape (n, inputs), optional
            Data to measure with how much each input matters; see :meth:`importance`.
        """
        return description.describe(self, X)

    def importance(self, X: Any = None) -> np.ndarray:
        """Return how much each input matters, of shape (inputs,); zero for those that are not used.

        Parameters
        ----------
        X : array-like or sparse array of shape (n, inputs), optional
            With data, the root mean square change of the outputs when an input is held at its mean. Without,
            how far the outputs can move for one unit of it (the sum over paths of the product of the weights'
            sizes), or for one standard deviation where the details tell these as ``spread``.

        Examples
        --------
        >>> network = Network.fused([[2.0, 0.0], [0.0, -0.5]], None, [1, -1])
        >>> network.importance()
        array([2. , 0.5])
        """
        return description.importance(self, X)[0]

    def explain(self, X: Any = None, y: Any = None, *, digits: int | None = None) -> Explanation:
        """Write the network in words: terms by what they do on rows, numbers to as many digits as matter.

        Parameters are those of :func:`thresher.explain.explain`.
        """
        from thresher.explain.readable import explain

        return explain(self, X, y, digits=digits)

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        shape = " -> ".join(map(str, (self.inputs, *self.hidden, self.outputs)))
        return f"<Network {shape}, {self.nonzeros:,} nonzeros>"

    def formula(self, names: Sequence[str] | None = None, digits: int = 4) -> str:
        """Write the network out as plain text, a line for each output, deeper layers nested.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the inputs; by default the network's own, else x0, x1, ... as columns are numbered.
        digits : int
            Significant digits.
        """
        return formula.text(self, names, digits)

    def latex(self, names: Sequence[str] | None = None, digits: int = 4) -> str:
        r"""Write the network out as LaTeX, for use in display mathematics; needs amsmath.

        Examples
        --------
        >>> print(Network.fused([[2.0], [-1.0]], [0.5], [1], features=["age", "x1"]).latex())
        y = \max\left(0, 2 \, \mathrm{age} - x_{1} + 0.5\right)
        """
        return formula.latex(self, names, digits)

    def sympy(self, names: Sequence[str] | None = None) -> Any:
        """Return the network as a SymPy expression; a list of them where there are several outputs.

        Symbols are real and bear the names of the inputs. What the expression gives is what :meth:`formula`
        says: a target, the probability of ``classes[1]`` for two classes under "logistic", or a score.
        """
        expressions = formula.sympy_expressions(self, names)
        return expressions[0] if self.outputs == 1 else expressions

    def to_python(self, name: str = "predict") -> str:
        """Return the source of a Python function that predicts one row with no library at all.

        Parameters
        ----------
        name : str
            Name of the function. It takes a mapping from the names of the inputs to numbers (a dictionary, a
            row of a frame), or a sequence in the order of the columns where inputs have no names.

        Examples
        --------
        >>> network = Network.fused([[2.0], [-1.0]], None, [1], features=["age", "blood pressure"])
        >>> namespace = {}
        >>> exec(network.to_python(), namespace)
        >>> namespace["predict"]({"age": 40, "blood pressure": 70})
        10.0
        """
        from thresher.export.python_source import python_source

        return python_source(self, name)

    def to_c(self, name: str = "network", *, used_inputs: bool = False) -> str:
        """Return one C99 file with ``NAME_predict``, which needs no library; see :meth:`to_c_files`."""
        from thresher.export.c_source import c_source

        return c_source(self, name, used_inputs=used_inputs)

    def to_c_files(self, name: str = "network", *, used_inputs: bool = False) -> dict[str, str]:
        """Return C99 source and header by name, with ``NAME_predict(const float *in, float *out)``.

        Classifiers have ``NAME_class(const float *in)``, a place in ``NAME_LABELS``, as well.

        Parameters
        ----------
        name : str
            What every name in the files begins with.
        used_inputs : bool
            Whether functions take the inputs in use alone, ``NAME_USED``, rather than all columns.
        """
        from thresher.export.c_source import c_files

        return c_files(self, name, used_inputs=used_inputs)

    def to_onnx(self, name: str = "network") -> Any:
        """Return the network as an ONNX ModelProto, which needs the package onnx.

        It takes ``X``, float32 of shape (n, inputs), and gives ``y`` of shape (n, targets), or ``label`` and
        ``probabilities`` as :meth:`predict` and :meth:`predict_proba` do.
        """
        from thresher.export.onnx_model import onnx_model

        return onnx_model(self, name)

    def to_torch(self) -> Any:
        """Return the network as a torch module, which gives what :meth:`forward` gives.

        Under the log link it gives the exponential of that, as :meth:`predict` does. Layers with few nonzeros
        hold these alone, and training the module trains no others.
        """
        from thresher.export.torch_module import torch_module

        return torch_module(self)

    def to_json(self) -> str:
        """Return everything about the network as one JSON document."""
        from thresher.export.json_document import json_document

        return json_document(self)

    def quantise(
        self,
        X: Any,
        bits: int = 8,
        *,
        weights: str | None = None,
        activation_bits: int = 16,
        inputs: str | InputCoding = "auto",
        bias_bits: int = 32,
        passes: int = 0,
    ) -> IntegerNetwork:
        """Return the network in whole numbers, for devices without floating point.

        Weights are rounded one after the other, and the rest is refitted each time to make up for it, so that
        few bits suffice. There are never more nonzeros than before. What the integer network predicts is what
        its exports to C and Verilog compute, bit for bit.

        Parameters
        ----------
        X : array-like of shape (n, inputs)
            Calibration rows, such as those of training: ranges are chosen on at most 20,000 of them, and
            100,000 are trained on.
        bits : int
            Bits of a weight, 2 to 16.
        weights : {"int8", "int4", "pow2"}, optional
            Instead of bits; "pow2" are plus and minus powers of two, of 4 bits each.
        activation_bits : int
            Bits that neurons are kept to, 1 to 32; what exceeds them saturates.
        inputs : str or InputCoding
            Inputs as the device sees them: "uint1" to "uint16", "int2" to "int16", or with a scale and an
            offset for each column. "auto" keeps whole numbers of 8 or 16 bits, and codes others in 16 bits.
        bias_bits : int
            Bits of a bias, 4 to 32; one that needs more is rounded to a multiple of a power of two.
        passes : int
            Passes over the calibration rows in which weights are trained on with rounding in the loop, so
            that answers stay what they were: worth their time at four bits or fewer of weights or neurons.

        Returns
        -------
        IntegerNetwork
        """
        from thresher.integer.quantise import quantise

        return quantise(
            self,
            X,
            bits,
            weights=weights,
            activation_bits=activation_bits,
            inputs=inputs,
            bias_bits=bias_bits,
            passes=passes,
        )

    def plot(self) -> Figure:
        """Draw the network as a graph: inputs, neurons, outputs; width by weight, colour by sign.

        Returns
        -------
        matplotlib.figure.Figure
            ``network.plot().savefig("network.png")`` writes it to a file.
        """
        from thresher.report.graph import graph

        return graph(self)

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
            return cls(layers, stored.classes, stored.link, stored.features, stored.details, stored.direct)
        except ParameterError as error:
            raise ModelFileError(f"{os.fspath(path)} holds a network that cannot be: {error}") from error
