"""A sparse network, its weights hidden in the labels it gives, and found again.

python examples/recover_planted.py
"""

from __future__ import annotations

import numpy as np

from thresher import SparseMLPRegressor
from thresher.data.planted import planted


def main() -> None:
    """Plant, recover, and compare."""
    problem = planted(n=2_000, d=30, hidden=4, budget=12, negative=0.5, seed=3)
    model = SparseMLPRegressor(budget=12, hidden=4, bias=False, random_state=0).fit(problem.X, problem.y)
    rest = np.abs(model.predict(problem.X) - problem.y).max()
    print(f"planted 12 weights, found {model.nonzeros_}; the largest error on a row is {rest:.1e}")
    print(f"inputs used: {model.get_support(indices=True).tolist()}")
    print(model.network_.formula(digits=3))
    print(model.status_)


if __name__ == "__main__":
    main()
