"""A sparse network at the end of a pipeline, its budget and penalty chosen by a grid search.

Text is encoded by scikit-learn on the way; the network needs no scaling, since columns are scaled inside.

    python examples/pipeline_grid_search.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from thresher import SparseMLPClassifier


def main() -> None:
    """Search, and say what was found."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    # A column of text, which says nothing about the target: the search should not need it.
    X["hospital"] = pd.Series(np.random.default_rng(0).choice(["north", "south"], size=len(X)))
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    encode = make_column_transformer((OneHotEncoder(), ["hospital"]), remainder="passthrough")
    network = SparseMLPClassifier(hidden=4, max_iter=50, random_state=0)
    pipeline = make_pipeline(encode, network)
    grid = {"sparsemlpclassifier__budget": [5, 20], "sparsemlpclassifier__alpha": [0.3, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X_train, y_train)
    best = search.best_estimator_
    names = best[:-1].get_feature_names_out()[best[-1].get_support()]
    print(f"chosen: {search.best_params_}")
    print(f"accuracy on held-out rows: {search.score(X_test, y_test):.3f} with {best[-1].nonzeros_} nonzeros")
    print("inputs used:", ", ".join(name.split("__")[1] for name in names))


if __name__ == "__main__":
    main()
