"""Names that C and Python accept, and texts made safe to stand in C source."""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Collection
from typing import Any

import numpy as np

from thresher.errors import ParameterError

# C99 promises to tell external names apart by 31 characters, and the longest ending takes 8.
LONGEST = 48


def checked_name(name: str) -> str:
    """Return a name that may begin the names of functions and tables, or say why it may not.

    Examples
    --------
    >>> checked_name("digits_1")
    'digits_1'
    """
    # A leading underscore is reserved in C.
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or len(name) > LONGEST:
        raise ParameterError(
            f"name={name!r}, but a name has at most {LONGEST} letters a to z, digits and underscores, the "
            f"first of them a letter: try {suggested_name(name)!r}."
        )
    return name


def suggested_name(text: str) -> str:
    """Turn any text, such as the name of a file, into a name that is allowed.

    Examples
    --------
    >>> suggested_name("my model-2.1"), suggested_name("1st"), suggested_name("...")
    ('my_model_2_1', 'network_1st', 'network')
    """
    joined = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    joined = joined if joined[:1].isalpha() or not joined else f"network_{joined}"
    return joined[:LONGEST].rstrip("_") or "network"


def python_name(name: str, taken: Collection[str]) -> str:
    """Return a checked name as it may be used in Python, beside names that are taken.

    Examples
    --------
    >>> python_name("digits", {"max"}), python_name("lambda", {"max"}), python_name("max", {"max"})
    ('digits', 'lambda_', 'max_')
    """
    checked = checked_name(name)
    return f"{checked}_" if keyword.iskeyword(checked) or checked in taken else checked


def c_string(text: str) -> str:
    """Write a text as a string literal of C, its bytes those of UTF-8.

    Octal escapes have three digits at most, so that none swallows what follows; question marks are escaped
    because two of them can begin a trigraph.

    Examples
    --------
    >>> print(c_string('no "quotes"?'))
    "no \\"quotes\\"\\?"
    """
    special = {ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
    coded = text.encode("utf-8", errors="surrogatepass")
    return '"' + "".join(special.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in coded) + '"'


def c_comment(text: str) -> str:
    """Write a text so that it can stand in a comment of C: quoted, in ASCII, and unable to end the comment.

    Examples
    --------
    >>> print(c_comment("a */ b"))
    "a * / b"
    """
    quoted = json.dumps(text)
    for pair in ("*/", "/*", "??"):
        # Twice, since "**//" holds another pair once the first is parted.
        quoted = quoted.replace(pair, " ".join(pair)).replace(pair, " ".join(pair))
    return quoted


def plain_labels(classes: np.ndarray) -> list[Any]:
    """Return labels as plain values; what is no string, truth value or finite number becomes its text.

    Examples
    --------
    >>> plain_labels(np.array(["no", 1, None], dtype=object))
    ['no', 1, 'None']
    """

    def plain(label: Any) -> Any:
        simple = type(label) in (str, bool, int) or (type(label) is float and math.isfinite(label))
        return label if simple else str(label)

    return [plain(label) for label in classes.tolist()]
