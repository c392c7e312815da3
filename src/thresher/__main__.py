"""`python -m thresher` is the command line."""

from __future__ import annotations

from thresher.cli import main

if __name__ == "__main__":
    main()
