"""Numbers and lists that come on the command line."""

from __future__ import annotations

import math
from difflib import get_close_matches

from thresher.errors import ParameterError

# The seeds that scikit-learn takes end here.
LARGEST_SEED = 2**32 - 1

MOST_DIGITS = 18


def whole_number(option: str, text: str, least: int, most: int | None = None) -> int:
    """Read a whole number.

    Examples
    --------
    >>> whole_number("--rows", "300", least=1)
    300
    """
    if not _is_whole(text, least):
        raise ParameterError(f"{option} {text[:40]!r}, but it takes a whole number of {least} or more.")
    if most is not None and int(text) > most:
        raise ParameterError(f"{option} {text}, but it takes a whole number of {least} to {most:,}.")
    return int(text)


def whole_numbers(option: str, text: str | None, least: int = 1) -> tuple[int, ...] | None:
    """Read whole numbers between commas; what comes twice counts once.

    Examples
    --------
    >>> whole_numbers("--seeds", "0, 2,2", least=0)
    (0, 2)
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(_is_whole(part, least) for part in parts):
        raise ParameterError(
            f"{option} {text!r}, but it takes whole numbers of {least} or more between commas, such as "
            f"{option} {least},{least + 1}."
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


def share_of(option: str, text: str, whole: float) -> float:
    """Read a number above 0 and of at most `whole`.

    Examples
    --------
    >>> share_of("--coverage", "90", 100.0)
    90.0
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= whole:
        raise ParameterError(f"{option} {text!r}, but it takes a number above 0 and of at most {whole:g}.")
    return value


def names(text: str | None) -> tuple[str, ...] | None:
    """Read names between commas; what comes twice counts once.

    Examples
    --------
    >>> names("auto, paper")
    ('auto', 'paper')
    """
    return None if text is None else tuple(dict.fromkeys(part.strip() for part in text.split(",")))


def pairs(option: str, texts: list[str]) -> dict[str, str]:
    """Read texts such as ``name=value``; a name may hold an equals sign.

    Examples
    --------
    >>> pairs("--as", ["sold=date", "a=b=text"])
    {'sold': 'date', 'a=b': 'text'}
    """
    found = dict[str, str]()
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign or not name.strip():
            raise ParameterError(
                f"{option} {text!r}, but it takes a name and a value, as in {option} sold=date."
            )
        found[name.strip()] = value.strip()
    return found


def one_of_two(option: str, text: str | None, other: str, other_text: str | None) -> str | None:
    """Take the value of an option that has two names.

    Examples
    --------
    >>> one_of_two("--methods", None, "--solvers", "auto")
    'auto'
    """
    if text is not None and other_text is not None:
        raise ParameterError(f"{option} and {other} are the same. Use one of them.")
    return text if text is not None else other_text


def widths(option: str, text: str) -> tuple[int, ...]:
    """Read the widths of layers between commas; equal ones stay.

    Examples
    --------
    >>> widths("--hidden", "50,50")
    (50, 50)
    """
    return tuple(whole_number(option, part.strip(), least=1) for part in text.split(","))


def number(option: str, text: str) -> float:
    """Read a number of 0 or more.

    Examples
    --------
    >>> number("--alpha", "0.3")
    0.3
    """
    value = _real(text)
    if not 0 <= value < math.inf:
        raise ParameterError(f"{option} {text!r}, but it takes a number of 0 or more.")
    return value


def share(option: str, text: str) -> float:
    """Read a share of 0 or more and less than 1.

    Examples
    --------
    >>> share("--test-share", "0.25")
    0.25
    """
    value = _real(text)
    if not 0 <= value < 1:
        raise ParameterError(f"{option} {text!r}, but it takes a number of 0 or more and less than 1.")
    return value


def percent(option: str, text: str) -> float:
    """Read a percentage between 1 and 100 as a share.

    Examples
    --------
    >>> percent("--interval", "90")
    0.9
    """
    value = _real(text.removesuffix("%"))
    if not 1 <= value < 100:
        raise ParameterError(f"{option} {text!r}, but it takes a percentage from 1 to below 100, such as 90.")
    return value / 100


def one_of(option: str, text: str, allowed: tuple[str, ...]) -> str:
    """Read one of several words.

    Examples
    --------
    >>> one_of("--missing", "drop", ("error", "drop"))
    'drop'
    """
    if text not in allowed:
        close = get_close_matches(text, allowed, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ParameterError(f"{option} {text!r}, but it takes one of {', '.join(allowed)}.{hint}")
    return text


def _real(text: str) -> float:
    """Give the number that a text says, NaN if it says none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _is_whole(text: str, least: int) -> bool:
    # Nobody means a number of more digits, and Python reads 4,300 of them at most.
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS and int(text) >= least
