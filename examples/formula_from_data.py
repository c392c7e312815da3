"""A formula from data: what a phone plan costs, read off a thousand bills.

The bills follow a tariff with a base price, a price for each minute beyond 100, and another for each message
beyond 20. The network that fits them is small enough to be read.

    python examples/formula_from_data.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from thresher import SparseMLPRegressor


def bills(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Draw usage, and what the tariff asks for it."""
    draw = np.random.default_rng(seed)
    usage = pd.DataFrame(
        {
            "minutes": draw.uniform(0, 300, rows).round(1),
            "messages": draw.uniform(0, 60, rows).round(),
            "photos": draw.uniform(0, 40, rows).round(),
            "age": draw.uniform(18, 80, rows).round(),
        }
    )
    price = 9 + 0.2 * np.maximum(usage["minutes"] - 100, 0) + 0.5 * np.maximum(usage["messages"] - 20, 0)
    return usage, price.to_numpy()


def main() -> None:
    """Fit, and print the formula beside the tariff."""
    usage, price = bills(1_000, seed=0)
    model = SparseMLPRegressor(budget=5, hidden=4, random_state=0).fit(usage, price)
    print("tariff:  0.2*relu(minutes - 100) + 0.5*relu(messages - 20) + 9")
    print("network:", model.network_.formula().removeprefix("y = "))
    others, truth = bills(1_000, seed=1)
    worst = np.abs(model.predict(others) - truth).max()
    print(f"{model.nonzeros_} nonzeros; on new bills the largest error is {worst:.4f}; {model.status_}")


if __name__ == "__main__":
    main()
