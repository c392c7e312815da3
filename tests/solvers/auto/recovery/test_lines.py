"""Lines that outputs share: outputs are written on them exactly, copies of a line are one, accidents go."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import normal
from torch import Tensor

from thresher.objective.data import Data
from thresher.objective.layout import Layout
from thresher.objective.loss import SquaredError
from thresher.objective.relu import Relu
from thresher.solvers.auto.recovery.absolute import AbsoluteForm
from thresher.solvers.auto.recovery.joint import Joint, written
from thresher.solvers.auto.recovery.lines import Lines, Stack, on_all_inputs, on_inputs
from thresher.solvers.auto.recovery.tuning import RecoverTuning

ROWS, INPUTS, NEURONS, OUTPUTS = 800, 6, 4, 3
TUNING = RecoverTuning()
X = torch.from_numpy(normal(ROWS, INPUTS))


def network(seed: int) -> tuple[Tensor, Tensor]:
    """Draw neurons of three inputs with a bias, and how outputs read them."""
    random = np.random.default_rng(seed)
    hidden = np.zeros((NEURONS, INPUTS + 1))
    for row in hidden:
        row[random.choice(INPUTS, 3, replace=False)] = random.standard_normal(3)
        row[INPUTS] = 0.3 * random.standard_normal()
    outer = random.standard_normal((OUTPUTS, NEURONS)) * (random.random((OUTPUTS, NEURONS)) < 0.8)
    return torch.from_numpy(hidden), torch.from_numpy(outer)


def outputs_of(hidden: Tensor, outer: Tensor) -> Tensor:
    return (X @ hidden[:, :INPUTS].T + hidden[:, INPUTS]).relu() @ outer.T


def objective_of(Y: Tensor) -> Relu:
    data = Data(X.numpy(), Y, dtype=torch.float64)
    return Relu(data, Layout((INPUTS, 8, Y.shape[1]), True, direct=True), SquaredError())


def form_of(hidden: Tensor) -> AbsoluteForm:
    signs, nothing = torch.ones(len(hidden)).double(), torch.zeros(INPUTS).double()
    return AbsoluteForm(hidden, signs, nothing, nothing, torch.zeros(1).double())


def known(hidden: Tensor, Y: Tensor) -> Lines:
    lines = Lines(objective_of(Y), TUNING)
    lines.add(form_of(hidden))
    return lines


def stacked(stack: Stack) -> Tensor:  # (rows, outputs)
    """Compute what a stack says of the rows."""
    sums = X @ stack.weights[:, :INPUTS].T + stack.weights[:, INPUTS]
    return sums.abs() @ stack.gains.T + X @ stack.linear.T + X.abs() @ stack.folds.T + stack.constants.T


@pytest.mark.parametrize("seed", range(3))
def test_outputs_that_read_known_lines_are_explained_and_read_no_others(seed: int) -> None:
    hidden, outer = network(seed)
    Y = outputs_of(hidden, outer)
    stack = known(torch.cat([hidden, network(seed + 50)[0]]), Y).fitted()
    torch.testing.assert_close(stacked(stack), Y, rtol=0, atol=1e-9)
    assert torch.equal(stack.gains[:, :NEURONS] != 0, outer != 0)
    assert not stack.gains[:, NEURONS:].any() and not stack.folds.any()
    for output in range(OUTPUTS):
        form = stack.form(output)
        assert form.neurons == int((outer[output] != 0).sum())


def test_an_output_that_reads_other_lines_is_not_explained() -> None:
    hidden, outer = network(0)
    outer[0], outer[1] = 1.0, 0.0
    outer[1, :2] = 1.0
    lines = known(hidden[:2], outputs_of(hidden, outer))
    assert lines.explained(lines.fitted().values).tolist()[:2] == [False, True]


def test_a_line_that_is_known_is_not_added_again_and_one_beyond_all_rows_never() -> None:
    hidden, outer = network(1)
    lines = known(hidden, outputs_of(hidden, outer))
    lines.add(form_of(-2.5 * hidden))
    far = hidden[:1].clone()
    far[0, INPUTS] = 100.0
    lines.add(form_of(far))
    assert len(lines.weights) == NEURONS


def test_inputs_without_a_negative_value_have_no_fold() -> None:
    Y = outputs_of(*network(0))
    rows = X.clone()
    rows[:, 2] = rows[:, 2].abs()
    objective = objective_of(Y)
    lines = Lines(Relu(Data(rows.numpy(), Y, dtype=torch.float64), objective.layout, objective.loss), TUNING)
    assert lines.foldable.tolist() == [True, True, False, True, True, True]


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_network_comes_back_neuron_by_neuron(seed: int, direct: bool) -> None:
    hidden, outer = network(seed)
    stack = known(hidden, outputs_of(hidden, outer)).fitted()
    found = written(stack, 1e-8, direct, False, TUNING)
    read = (outer != 0).any(0)
    size = hidden[read, :INPUTS].norm(dim=1)
    torch.testing.assert_close(found.hidden, hidden[read] / size[:, None])
    torch.testing.assert_close(found.outer, outer[:, read] * size)
    assert not found.direct.any() and not found.constants.any()


@pytest.mark.parametrize("direct", [True, False])
def test_folds_and_linear_parts_keep_their_outputs(direct: bool) -> None:
    random = np.random.default_rng(0)
    parts = [torch.from_numpy(random.standard_normal((OUTPUTS, INPUTS))) for _ in range(2)]
    parts[1][:, :3] = 0
    hidden, outer = network(2)
    hidden = hidden / hidden[:, :INPUTS].norm(dim=1, keepdim=True)
    constants = torch.from_numpy(random.standard_normal((OUTPUTS, 1)))
    stack = Stack(hidden, outer, *parts, constants, torch.zeros(OUTPUTS).double())
    found = written(stack, 0.0, direct, False, TUNING)
    sums = X @ found.hidden[:, :INPUTS].T + found.hidden[:, INPUTS]
    guess = sums.relu() @ found.outer.T + X @ found.direct.T + found.constants.T
    torch.testing.assert_close(guess, stacked(stack), rtol=0, atol=1e-11)
    assert direct or not found.direct.any()


def test_the_whole_is_within_its_budget_and_explains_the_targets() -> None:
    hidden, outer = network(0)
    Y = outputs_of(hidden, outer)
    lines = known(hidden, Y)
    budget = int((hidden != 0).sum() + (outer != 0).sum())
    joint = Joint(lines.objective, lines.objective, budget, float(lines.peaks.norm()), TUNING)
    fit = joint.network(lines.fitted())
    assert fit.nonzeros <= budget and joint.explains(fit)
    assert joint.within(fit) is fit
    fewer = Joint(lines.objective, lines.objective, budget - 5, joint.peak, TUNING)
    assert fewer.within(fit).nonzeros <= budget - 5 and not fewer.explains(fewer.within(fit))


def test_a_form_on_some_inputs_comes_back_on_all() -> None:
    features = torch.tensor([0, 2, 5])
    form = form_of(network(0)[0])
    there = on_inputs(form, features)
    back = on_all_inputs(there, features, INPUTS)
    kept = torch.zeros(INPUTS + 1, dtype=torch.bool)
    kept[torch.tensor([0, 2, 5, INPUTS])] = True
    assert torch.equal(back.weights, form.weights * kept)
    assert on_inputs(form, None) is form and on_all_inputs(form, None, INPUTS) is form
