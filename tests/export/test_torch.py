"""The torch module, and the file that makes one, compute what the network does."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from networks import NETWORKS, ODD_NAMES, answers, fused, random_network, rows_for

from thresher.export import exported
from thresher.export.sparse_linear import SparseLinear
from thresher.network import Layer


def as_tensor(network, X):
    return torch.from_numpy(X.astype(network.layers[0].weights.dtype))


def made_by(source):
    space = {}
    exec(compile(source, "written", "exec"), space)
    return space


@pytest.mark.parametrize("name", NETWORKS)
def test_the_module_computes_what_the_network_does(name):
    network = NETWORKS[name]
    X = rows_for(network)
    with torch.no_grad():
        found = network.to_torch()(as_tensor(network, X)).numpy()
    close = {"rtol": 1e-5, "atol": 1e-5} if "float32" in name else {"rtol": 1e-11, "atol": 1e-11}
    assert np.allclose(found, answers(network, X), **close)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_file_makes_the_same_module(name, monkeypatch):
    network = NETWORKS[name]
    source = exported(network, "torch", "net").decode("ascii")
    monkeypatch.setitem(sys.modules, "thresher", None)
    space = made_by(source)
    module, original = space["net"](), network.to_torch()
    theirs, ours = module.state_dict(), original.state_dict()
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[key], ours[key]) for key in ours)
    X = as_tensor(network, rows_for(network))
    assert torch.equal(module(X), original(X))
    assert space["CLASSES"] == (None if network.classes is None else network.classes.tolist())
    assert space["FEATURES"] == (None if network.features is None else list(network.features))


def test_odd_texts_enter_as_literals():
    source = exported(fused(features=ODD_NAMES), "torch", "lambda").decode("ascii")
    assert made_by(source)["lambda_"]()(torch.ones(1, 10, dtype=torch.float64)).shape == (1, 1)


@pytest.mark.parametrize("name", ["torch", "nn", "SparseLinear", "WithDirect", "Exp", "LINK", "super", "int"])
def test_names_that_are_taken_are_changed(name):
    network = replace(NETWORKS["direct, sparse and wide"], link="log")
    module = made_by(exported(network, "torch", name).decode("ascii"))[f"{name}_"]()
    assert module(as_tensor(network, rows_for(network))).shape == (40, 2)


def test_sparse_layers_hold_their_nonzeros_alone():
    network = NETWORKS["sparse and wide"]
    module = network.to_torch()
    assert isinstance(module[0], SparseLinear)
    assert module[0].values.numel() == network.layers[0].weights.nnz
    beside = NETWORKS["direct, sparse and wide"].to_torch()[0]
    assert isinstance(beside.direct, SparseLinear)
    assert [part.numel() for part in beside.direct.parameters()] == [13]
    assert isinstance(random_network((4, 3), density=1.0).to_torch()[0], torch.nn.Linear)
    assert "nonzeros=" in repr(module)


def test_the_state_goes_through_a_file(tmp_path):
    network = NETWORKS["sparse and wide"]
    module = network.to_torch()
    torch.save(module.state_dict(), tmp_path / "state.pt")
    halved = replace(network, layers=tuple(Layer(0.5 * one.weights, one.bias) for one in network.layers))
    other = halved.to_torch()
    X = as_tensor(network, rows_for(network))
    assert not torch.allclose(other(X), module(X))
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(other(X), module(X))


@pytest.mark.parametrize("name", ["sparse and wide", "direct, sparse and wide"])
def test_training_changes_the_nonzeros_and_no_others(name):
    network = NETWORKS[name]
    module = network.to_torch()
    numbers = [part.numel() for part in module.parameters()]
    X = as_tensor(network, rows_for(network, 60))
    y = torch.zeros(60, 2, dtype=torch.float64)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-4)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(module(X), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert [part.numel() for part in module.parameters()] == numbers
    assert sum(numbers) < network.layers[0].size / 10


def test_rows_may_come_in_any_shape():
    network = NETWORKS["sparse and wide"]
    module, X = network.to_torch(), as_tensor(network, rows_for(network, 6))
    whole = module(X)
    assert torch.allclose(module(X.reshape(2, 3, -1)), whole.reshape(2, 3, -1))
    assert torch.allclose(module(X[0]), whole[0])
    assert module(X[:0]).shape == (0, 2)


def test_the_network_is_not_changed_through_its_module():
    network = fused()
    before = network.predict(rows_for(network))
    with torch.no_grad():
        for parameter in network.to_torch().parameters():
            parameter.fill_(9.0)
    assert np.array_equal(network.predict(rows_for(network)), before)
