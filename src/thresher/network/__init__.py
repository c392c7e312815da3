"""The fitted network: what it holds, what it says, what it predicts. Needs NumPy and SciPy only."""

from thresher.network.layer import Layer
from thresher.network.network import Network

__all__ = ["Layer", "Network"]
