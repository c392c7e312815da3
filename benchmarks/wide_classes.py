"""Peak memory, beyond the data, of ten classes with 50,000 inputs, 2,000 neurons and 5,000 weights.

python benchmarks/wide_classes.py            sparse input
python benchmarks/wide_classes.py dense      dense input, some minutes
"""

from __future__ import annotations

import sys

import numpy as np
import scipy.sparse
from memory import MEGABYTE, peak_during

from thresher import SparseMLPClassifier

ROWS, FEATURES, BAR = 2_000, 50_000, 250


def main() -> None:
    """Fit at two widths and print the peaks."""
    draw = np.random.default_rng(0)
    if sys.argv[1:] == ["dense"]:
        X = draw.standard_normal((ROWS, FEATURES), dtype=np.float32)
    else:
        X = scipy.sparse.random(ROWS, FEATURES, density=0.01, format="csr", dtype=np.float32, random_state=0)
    y = draw.integers(0, 10, ROWS)
    # What is loaded at first use is not the fit's.
    SparseMLPClassifier(budget=50, hidden=10, max_iter=1, random_state=0).fit(X[:200, :100], y[:200])
    for hidden in (1_000, 2_000):
        model = SparseMLPClassifier(budget=5_000, hidden=hidden, max_iter=2, random_state=0)
        peak = peak_during(lambda model=model: model.fit(X, y)) / MEGABYTE
        print(f"hidden = {hidden:,}: {peak:.0f} MB, at most {BAR}", flush=True)


if __name__ == "__main__":
    main()
