"""Numbers and lists that come on the command line."""

from __future__ import annotations

from thresher.errors import ParameterError


def at_least(option: str, value: int, least: int) -> int:
    """Refuse a number that is too small.

    Examples
    --------
    >>> at_least("--rows", 300, 1)
    300
    """
    if value < least:
        raise ParameterError(f"{option} {value}, but it takes a whole number of {least} or more.")
    return value


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
    if not all(part.isascii() and part.isdigit() and int(part) >= least for part in parts):
        raise ParameterError(
            f"{option} {text!r}, but it takes whole numbers of {least} or more between commas, such as "
            f"{option} {least},{least + 1}."
        )
    return tuple(dict.fromkeys(int(part) for part in parts))


def names(text: str | None) -> tuple[str, ...] | None:
    """Read names between commas; what comes twice counts once.

    Examples
    --------
    >>> names("auto, paper")
    ('auto', 'paper')
    """
    return None if text is None else tuple(dict.fromkeys(part.strip() for part in text.split(",")))
