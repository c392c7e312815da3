"""scikit-learn's face: regressors and classifiers whose networks hold at most `budget` nonzeros."""

from thresher.estimators.cv import SparseMLPClassifierCV, SparseMLPRegressorCV
from thresher.estimators.mlp import SparseMLPClassifier, SparseMLPRegressor

__all__ = ["SparseMLPClassifier", "SparseMLPClassifierCV", "SparseMLPRegressor", "SparseMLPRegressorCV"]
