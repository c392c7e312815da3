"""Numbers and lists that come on the command line."""

from __future__ import annotations

from thresher.errors import ParameterError


def whole_number(option: str, text: str, least: int) -> int:
    """Read a whole number.

    Examples
    --------
    >>> whole_number("--rows", "300", least=1)
    300
    """
    if not _is_whole(text, least):
        raise ParameterError(f"{option} {text!r}, but it takes a whole number of {least} or more.")
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


def names(text: str | None) -> tuple[str, ...] | None:
    """Read names between commas; what comes twice counts once.

    Examples
    --------
    >>> names("auto, paper")
    ('auto', 'paper')
    """
    return None if text is None else tuple(dict.fromkeys(part.strip() for part in text.split(",")))


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


def _is_whole(text: str, least: int) -> bool:
    return text.isascii() and text.isdigit() and int(text) >= least
