"""Exact recovery: searches for the network that explains the targets entirely, by its shape."""
