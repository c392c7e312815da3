"""Theory that runs: patterns, assumptions, spectra, the guarantee, and certificates."""
