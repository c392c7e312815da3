"""Networks of whole numbers for devices without floating point: what they are, and how one is made."""

from __future__ import annotations

from thresher.integer.coding import InputCoding
from thresher.integer.network import IntegerLayer, IntegerNetwork

__all__ = ["InputCoding", "IntegerLayer", "IntegerNetwork"]
