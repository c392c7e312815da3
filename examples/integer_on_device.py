"""From images to whole numbers: a digit classifier rounded to four bits, as C for a microcontroller.

    python examples/integer_on_device.py

needs a C compiler (``cc``) for the comparison, and says so where there is none.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_digits

from thresher import SparseMLPClassifier


def main() -> None:
    """Fit, round, export, compile, compare."""
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 1200), slice(1200, None)
    model = SparseMLPClassifier(budget=200, hidden=20, random_state=0).fit(X[train], y[train])
    network = model.network_.quantise(X[train], weights="int4", activation_bits=8, inputs="uint8")
    print(network.describe())
    before, after = (100 * (one.predict(X[test]) == y[test]).mean() for one in (model, network))
    print(f"accuracy {before:.1f} % in floating point, {after:.1f} % in whole numbers")
    files = network.to_c_files("digits", X[test])
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler is at hand, so nothing is compared")
        return
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        subprocess.run([compiler, "-O2", "-o", "check", "digits.c", "digits_test.c"], cwd=folder, check=True)
        wrong = subprocess.run([f"{folder}/check"], check=False).returncode
    print(f"outputs of C and of Python on {len(X[test])} rows: {'some differ' if wrong else 'all equal'}")


if __name__ == "__main__":
    main()
