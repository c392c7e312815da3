"""Linear maps that are never built: forward, adjoint in blocks, restricted to a support."""

from thresher.operators.base import Blocks, Operator, Restricted
from thresher.operators.design import Design, column_scale
from thresher.operators.gated import GatedOperator
from thresher.operators.gaussian import GaussianOperator
from thresher.operators.matrix import MatrixOperator, UnitColumns

__all__ = [
    "Blocks",
    "Design",
    "GatedOperator",
    "GaussianOperator",
    "MatrixOperator",
    "Operator",
    "Restricted",
    "UnitColumns",
    "column_scale",
]
