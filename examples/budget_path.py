"""How many nonzeros are enough? A cross-validated path over budgets, and its figure.

    python examples/budget_path.py [FOLDER]

writes ``path.png`` to the folder, or to the working directory.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer

from thresher import SparseMLPClassifierCV, plot_path


def main(folder: Path) -> None:
    """Walk the path, draw it, and print what it says."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    path = SparseMLPClassifierCV([2, 5, 10, 20], hidden=4, cv=3, alpha=0.3, max_iter=50, random_state=0)
    path.fit(X, y)
    for budget, mean, error in zip(path.budgets_, path.mean_scores_, path.standard_errors_, strict=True):
        mark = " <- chosen" if budget == path.budget_ else ""
        print(f"{budget:4d} nonzeros: accuracy {mean:.3f} +- {error:.3f}{mark}")
    print(f"inputs used: {', '.join(X.columns[path.get_support()])}")
    folder.mkdir(parents=True, exist_ok=True)
    plot_path(path).savefig(folder / "path.png", dpi=150)
    print(f"wrote {folder / 'path.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
