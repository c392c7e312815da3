"""RigL with layers that are stored sparse, through the optional package `sparselab`.

Its products and its optimiser's state hold no zeros. Its constructor and every exchange of weights still make
dense arrays for a moment, so that the peak is that of a dense network here as well.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from thresher.baselines.base import Trial
from thresher.baselines.rigl import RigL, scatter
from thresher.errors import ParameterError


@dataclass(eq=False, repr=False)
class SparseLabRigL(RigL):
    """RigL as the package `sparselab` runs it, from the same first network as :class:`RigL`.

    Each neuron, not each layer, keeps its number of weights, and one that starts without any never gets one.
    The exchanged fraction falls by half a cosine as in :class:`RigL`, and Adam starts afresh after each
    exchange, since the package moves weights between places without telling the optimiser. There are no
    biases.

    Parameters
    ----------
    **others
        As in :class:`RigL`; `bias` must be False.

    Examples
    --------
    >>> SparseLabRigL("classification", budget=50, bias=False).budget
    50
    """

    bias: bool = False

    def _search(self, trial: Trial, budget: int) -> None:
        sparselab = _package()
        if budget >= trial.model.size:
            raise ParameterError(
                f"budget={budget:,} leaves nothing out of {trial.model.size:,} weights, but sparselab's "
                "layers must be sparse. Use a smaller budget, or the baseline Dense."
            )
        scatter(trial.model, budget, trial.generator)
        seed = int(torch.randint(2**31, (1,), generator=trial.generator))
        # The package draws from torch's global state, which is not ours to change.
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # It makes sparse tensors, reads its own arrays, and watches inputs without gradients: all meant.
            warnings.simplefilter("ignore", UserWarning)
            # Its cache knows matrices by their address, and would take a new one for one that is gone.
            sparselab.ops._clear_transpose_cache()
            layers = [_sparse_layer(sparselab, weight.detach()) for weight in trial.model.weights]
            self._train_sparse(sparselab, layers, trial, seed)
            for layer, weight in zip(layers, trial.model.weights, strict=True):
                weight.data.copy_(layer._csr.to_dense())
        trial.model.mask.copy_(trial.model.flat != 0)

    def _train_sparse(self, sparselab: ModuleType, layers: list[Any], trial: Trial, seed: int) -> None:
        run, problem = self._run(trial), trial.problem
        network = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())][:-1])
        every, last = self._exchanges(run.steps)
        rigl = sparselab.RigL(sparsity=0.5, drop_fraction=self.exchange, update_freq=every, seed=seed)
        network.apply(rigl)
        adam = torch.optim.Adam(network.parameters(), lr=run.learning_rate, fused=True)
        step = 0
        for _ in range(self.max_iter):
            total = 0.0
            order = torch.randperm(len(problem.X), generator=trial.generator)
            for rows in order.split(problem.batch_size):
                step += 1
                adam.zero_grad()
                loss = problem.loss(network(problem.X.index_select(0, rows)), problem.y[rows])
                loss.backward()
                adam.param_groups[0]["lr"] = run.rate(step)
                adam.step()
                total += loss.item() * len(rows)
                if step <= last:
                    rigl.drop_fraction = self.exchange * (1 + math.cos(math.pi * step / last)) / 2
                    rigl.step()
                    if step % every == 0:
                        adam.state.clear()
            trial.record.losses.append(total / len(problem.X))
            trial.record.active.append(sum(layer.nnz for layer in layers))

    def _check_own(self, require: Any) -> None:
        super()._check_own(require)
        require("bias", self.bias is False, "False: sparselab's biases are dense and would not count")


def _package() -> ModuleType:
    try:
        import sparselab
        import sparselab.ops
    except ImportError as error:
        raise ParameterError(
            f"SparseLabRigL needs the package sparselab, which cannot be loaded ({error}). Install "
            "thresher[sparselab] (Python 3.11 or later), or use the baseline RigL."
        ) from error
    return sparselab


def _sparse_layer(sparselab: ModuleType, weight: Tensor) -> Any:  # (neurons, inputs)
    """Make a layer with just these weights; its own constructor draws how many there are."""
    neurons, inputs = weight.shape
    layer = sparselab.SparseLinear(inputs, neurons, bias=False)
    layer._csr = sparselab.layout.from_dense(weight)
    # The parameter shares its memory with the matrix that the package's kernels read.
    layer._values = nn.Parameter(torch.from_numpy(np.asarray(layer._csr.values)))
    return layer
