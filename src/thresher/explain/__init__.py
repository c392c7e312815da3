"""What a network says, in ways that people can read: terms, rules, effects of inputs, shares of an answer."""

from thresher.explain.effects import Effect, effects
from thresher.explain.permutation import permutation_importance
from thresher.explain.readable import Explanation, explain
from thresher.explain.rules import Rule, rules
from thresher.explain.shapley import shapley_values

__all__ = [
    "Effect",
    "Explanation",
    "Rule",
    "effects",
    "explain",
    "permutation_importance",
    "rules",
    "shapley_values",
]
