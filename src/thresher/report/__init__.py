"""What experiments look like: figures, written whole or not at all."""
