"""A network as one C file, compiled and compared with Python.

    python examples/export_to_c.py

needs a C compiler (``cc``) for the comparison, and says so where there is none.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_diabetes

from thresher import SparseMLPRegressor

MAIN = """
#include <stdio.h>
int main(void) {
    float in[10], out[1];
    for (;;) {
        for (int i = 0; i < 10; i++) if (scanf("%f", &in[i]) != 1) return 0;
        diabetes_predict(in, out);
        printf("%.9g\\n", out[0]);
    }
}
"""


def main() -> None:
    """Fit, export, compile, compare."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = SparseMLPRegressor(budget=8, hidden=4, random_state=0).fit(X, y)
    source = model.network_.to_c(name="diabetes")
    print(f"{model.nonzeros_} nonzeros, {len(source):,} characters of C")
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler is at hand, so nothing is compared")
        return
    with TemporaryDirectory() as folder:
        (Path(folder) / "diabetes.c").write_text(source + MAIN)
        program = Path(folder) / "diabetes"
        subprocess.run([compiler, "-std=c99", "-O2", "-o", program, f"{program}.c", "-lm"], check=True)
        rows = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in X)
        done = subprocess.run([program], input=rows, capture_output=True, text=True, check=True)
    answers = np.array(done.stdout.split(), dtype=float)
    worst = np.abs(answers - model.predict(X)).max()
    print(f"the largest difference from Python on {len(X)} rows is {worst:.1e}")


if __name__ == "__main__":
    main()
