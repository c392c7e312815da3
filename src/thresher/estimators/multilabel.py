"""The fit of a classifier to several labels for each row: an output for each, under the logistic loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher.errors import ParameterError
from thresher.estimators.fitting import SparseMLP, checked_weights
from thresher.estimators.inputs import target_of
from thresher.estimators.labels import indicator, names_of, refuse_class_weight
from thresher.estimators.parameters import check_parameters
from thresher.estimators.task import Rows, Settings
from thresher.objective.loss import Logistic
from thresher.objective.ranks import present


class LabelFitter(SparseMLP):
    """A classifier that can also be fitted to a table of labels."""

    def _fit_labels(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Train a network that gives the log-odds of several labels."""
        with present() as ranks:
            names = names_of(target_of(X, y))

            def checked() -> tuple[Any, np.ndarray, np.ndarray | None, Settings]:
                settings = check_parameters(self)
                refuse_class_weight(getattr(self, "class_weight", None))
                if self.loss not in ("auto", "logistic"):
                    raise ParameterError(
                        f"loss={self.loss!r} came with several labels for each row, which are fitted under "
                        "the logistic loss. Use loss='auto'."
                    )
                valid, table = self._validated(X, indicator(target_of(X, y)), numeric=False, several=True)
                return valid, table, checked_weights(sample_weight, valid), settings

            X, table, weight, settings = ranks.together(checked)
            settings = self._agreed(ranks, settings, X, table, weight)
            rows = Rows(X, table.astype(np.float64), weight, ranks=ranks.holding(len(table)))
            trained = self._train(rows, table.shape[1], Logistic(), settings)
        self.classes_, self.label_type_ = np.arange(table.shape[1]), table.dtype
        self._keep(trained, settings, link=Logistic.link, target=names)
