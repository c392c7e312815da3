"""What is minimised: losses, rows, where weights can be, and the sums over rows that solvers ask for."""
