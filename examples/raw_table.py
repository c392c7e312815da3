"""From a raw table with text and gaps to a model, in Python: what `thresher fit` does, step by step.

python examples/raw_table.py
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from thresher import SparseMLPRegressor
from thresher.data.prepared import prepare
from thresher.data.tables import read_table


def write_table(path: Path) -> None:
    """Write bicycles and their prices, with a gap in every twentieth row."""
    draw = np.random.default_rng(0)
    lines = ["weight,frame,gears,price"]
    for row in range(400):
        weight, frame, gears = (
            draw.uniform(7, 16),
            draw.choice(["steel", "carbon", "aluminium"]),
            draw.integers(1, 12),
        )
        price = 600 + 150 * max(12 - weight, 0) + (900 if frame == "carbon" else 0) + 20 * gears
        lines.append(f"{'' if row % 20 == 0 else f'{weight:.2f}'},{frame},{gears},{price:.2f}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Read, prepare, fit, and show the formula."""
    with TemporaryDirectory() as folder:
        write_table(Path(folder) / "bicycles.csv")
        table = read_table(Path(folder) / "bicycles.csv")
    ready = prepare(table, "price", missing="mean", seed=0)
    print(f"{ready.task}: {ready.why}; inputs {', '.join(ready.encoding.features)}")
    model = SparseMLPRegressor(budget=6, hidden=4, random_state=0).fit(ready.X, ready.y)
    print(
        f"R2 on held-out rows: {model.score(ready.X_test, ready.y_test):.3f} with {model.nonzeros_} nonzeros"
    )
    print(model.network_.formula(names=ready.encoding.features).replace("y = ", "price = "))


if __name__ == "__main__":
    main()
