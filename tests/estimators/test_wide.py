"""Width without weight: fits, predictions and files whose cost does not grow with the number of columns."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from thresher import Network, SparseMLPClassifier, SparseMLPRegressor
from thresher.errors import MemoryLimitError, ParameterError
from thresher.solvers.iht import IHT

ROWS, WIDTH, MEGABYTE = 4000, 10**9, 2**20
PLANTED = np.array([123_456_789, 987_654_321])


def problem(width: int = WIDTH, seed: int = 0) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Draw rows of thirty columns among very many, and whether one of two planted ones is there alone."""
    draw = np.random.default_rng(seed)
    holds = draw.random((ROWS, 2)) < 0.4
    row, which = np.nonzero(holds)
    noise = draw.integers(0, width, (ROWS, 30))
    rows = np.concatenate([np.repeat(np.arange(ROWS), 30), row])
    columns = np.concatenate([noise.ravel(), PLANTED[which] % width])
    X = scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(ROWS, width))
    # SciPy turns coordinates into rows without a number for each column.
    return X.tocsr(), (holds[:, 0] ^ holds[:, 1]).astype(int)


@pytest.fixture(scope="module")
def fitted() -> tuple[SparseMLPClassifier, scipy.sparse.csr_array, np.ndarray]:
    X, y = problem()
    tracemalloc.start()
    model = SparseMLPClassifier(budget=12, hidden=100, max_iter=6, memory_limit="8MB", random_state=0)
    model.fit(X, y)
    # A single byte for each column would be 954 MB.
    assert tracemalloc.get_traced_memory()[1] < 40 * MEGABYTE
    tracemalloc.stop()
    return model, X, y


def test_planted_columns_among_a_billion_are_found_and_named(fitted: Any) -> None:
    model, *_ = fitted
    X_new, y_new = problem(seed=1)
    assert model.score(X_new, y_new) > 0.97
    used = model.get_support(indices=True)
    assert set(PLANTED) <= set(used.tolist())
    assert model.network_.inputs == model.n_features_in_ == WIDTH
    described = model.network_.describe()
    assert all(f"x{column}" in described for column in PLANTED)
    assert f"x{PLANTED[0]}" in model.network_.formula()


def test_a_wide_network_is_looked_at_in_memory_that_does_not_know_its_width(
    fitted: Any, tmp_path: Path
) -> None:
    model, X, _ = fitted
    network, path = model.network_, tmp_path / "wide.thresher"
    tracemalloc.start()
    scores = network.decision_function(X)
    network.save(path)
    loaded = Network.load(path)
    model.get_support(indices=True), network.describe(), network.describe(X[:50]), network.to_json()
    network.to_python(), network.to_c(), network.latex(), network.plot()
    assert tracemalloc.get_traced_memory()[1] < 40 * MEGABYTE
    tracemalloc.stop()
    assert loaded.equals(network)
    assert np.array_equal(loaded.decision_function(X), scores)
    assert path.stat().st_size < 10_000


def test_python_source_reads_the_columns_it_names(fitted: Any) -> None:
    model, X, _ = fitted
    namespace: dict[str, Any] = {}
    exec(model.network_.to_python(), namespace)
    first = X[:20].tocoo()
    rows: list[Any] = [dict.fromkeys(model.get_support(indices=True).tolist(), 0.0) for _ in range(20)]
    for row, column, value in zip(first.row, first.col, first.data, strict=True):
        rows[row][int(column)] = float(value)
    assert [namespace["predict"](row) for row in rows] == model.predict(X[:20]).tolist()


def test_columns_that_no_row_holds_change_nothing() -> None:
    X, y = problem()
    wider = scipy.sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr), shape=(ROWS, 10 * WIDTH))
    settings: dict[str, Any] = {"budget": 8, "hidden": 4, "random_state": 0, "max_iter": 1}
    one, two = (SparseMLPClassifier(**settings).fit(rows[:300], y[:300]) for rows in (X, wider))
    assert np.array_equal(one.get_support(indices=True), two.get_support(indices=True))
    assert np.array_equal(one.decision_function(X), two.decision_function(wider))


@pytest.mark.parametrize("solver", ["auto", "paper"])
def test_a_fit_goes_on_from_a_wide_network(solver: str) -> None:
    X, y = problem()
    settings: dict[str, Any] = {"hidden": 5, "random_state": 0, "max_iter": 2, "solver": solver}
    model = SparseMLPRegressor(budget=12, warm_start=True, **settings).fit(X[:600], y[:600])
    before = set(model.get_support(indices=True).tolist())
    model.fit(X[600:1200], y[600:1200])
    assert model.nonzeros_ <= 12
    assert before
    assert model.network_.inputs == WIDTH


def test_parts_of_wide_rows_can_be_learned_one_after_another() -> None:
    X, y = problem()
    model = SparseMLPClassifier(budget=20, hidden=5, random_state=0)
    for part in (slice(0, 600), slice(600, 1200)):
        model.partial_fit(X[part], y[part], classes=[0, 1])
    assert model.nonzeros_ <= 20
    assert model.network_.inputs == WIDTH


@pytest.mark.parametrize(
    "settings",
    [{"solver": "paper"}, {"solver": "paper", "batch_size": 300}, {"solver": IHT()}, {"hidden": (6, 3)}],
    ids=["paper", "minibatches", "iht", "layerwise"],
)
def test_thresholding_never_makes_sparse_rows_dense(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = scipy.sparse.random_array((900, 3000), density=0.004, format="csr", rng=np.random.default_rng(0))
    y = np.maximum(0, X[:, :30].sum(1))
    made: list[tuple[int, ...]] = []
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array):
        was = kind.toarray
        monkeypatch.setattr(
            kind, "toarray", lambda self, *a, was=was: made.append(self.shape) or was(self, *a)
        )
    model = SparseMLPRegressor(
        budget=40, **{"hidden": 6, "max_iter": 3, "solver": "paper", "memory_limit": "1MB", **settings}
    )
    model.fit(X, y)
    assert model.nonzeros_ <= 40
    assert all(columns < 100 for _, columns in made)


def test_more_places_than_64_bits_number_are_refused_in_a_sentence() -> None:
    X, y = problem(2**60)
    with pytest.raises(MemoryLimitError, match=r"positions end at .* Use a smaller hidden"):
        SparseMLPClassifier(budget=5, hidden=100).fit(X, y)


@pytest.mark.parametrize("screen", [0, -0.1, 1.5, "0.1", True])
def test_a_share_that_is_none_is_refused(screen: Any) -> None:
    with pytest.raises(ParameterError, match=f"screen={screen!r}"):
        SparseMLPRegressor(screen=screen).fit(np.eye(4), np.arange(4.0))


def test_solvers_that_sweep_everything_refuse_to_screen() -> None:
    with pytest.raises(ParameterError, match="screen came"):
        SparseMLPRegressor(screen=0.1, solver="paper").fit(np.eye(4), np.arange(4.0))


def few_rows_of_many_inputs() -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    y = np.arange(150) % 6
    return draw.standard_normal((150, 200)) + 4.0 * (np.arange(200) == y[:, None]), y


def test_the_penalty_is_chosen_on_rows_held_out_where_inputs_outnumber_rows() -> None:
    X, y = few_rows_of_many_inputs()
    settings: dict[str, Any] = {"budget": 30, "hidden": 4, "max_iter": 5, "random_state": 0}
    model = SparseMLPClassifier(**settings).fit(X, y)
    ways = [record["way"] for record in model.history_]
    assert "penalty" in ways
    assert ways.index("penalty") < ways.index("training")
    assert model.nonzeros_ <= 30
    for narrower in ({"alpha": 1.0}, {"max_iter": 4}):
        other = SparseMLPClassifier(**{**settings, **narrower}).fit(X, y)
        assert "penalty" not in [record["way"] for record in other.history_]
    tall = SparseMLPClassifier(**settings).fit(X[:, :100], y)
    assert "penalty" not in [record["way"] for record in tall.history_]


def test_a_fit_that_is_stopped_while_a_penalty_is_chosen_has_a_network() -> None:
    X, y = few_rows_of_many_inputs()
    stop = SparseMLPClassifier(
        budget=30, hidden=4, max_iter=10, random_state=0, callback=lambda record: record["way"] == "penalty"
    )
    stop.fit(X, y)
    assert stop.status_.name == "callback"
    assert 0 < stop.nonzeros_ <= 30
