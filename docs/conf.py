"""How the documentation is built: `make docs`, or `python -m sphinx -W docs docs/_build`."""

from __future__ import annotations

from thresher import __version__

project = "Thresher"
author = "The Thresher authors"
project_copyright = author
release = version = __version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "myst_parser"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Thresher {version}"
html_copy_source = False

myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"

# Links that lead out of docs/ work where the files are read, and tests/test_docs.py follows every one.
# Shapes such as (inputs, outputs) are words, which several classes have attributes of.
suppress_warnings = ["myst.xref_missing", "ref.python"]
