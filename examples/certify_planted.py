"""Is a network that was found the one that was planted? A certificate says what can be checked on the data.

python examples/certify_planted.py
"""

from __future__ import annotations

from thresher import SparseMLPRegressor, certify
from thresher.data.planted import planted


def main() -> None:
    """Plant, recover, certify; then ask the same of a network that is too small."""
    problem = planted(n=2_000, d=20, hidden=3, budget=9, negative=0.5, seed=0)
    for budget in (9, 6):
        model = SparseMLPRegressor(budget=budget, hidden=3, bias=False, random_state=0)
        model.fit(problem.X, problem.y)
        print(f"budget {budget}: {model.nonzeros_} nonzeros, {model.status_.name}")
        print(certify(model.network_, problem.X, problem.y))


if __name__ == "__main__":
    main()
