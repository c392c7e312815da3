"""Solvers: each is init, step and stop, run by one loop."""
