"""From conditions to the three levels of a certificate, and to a verdict in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thresher.theory.conditions import FAILS, HOLDS, UNKNOWN, Condition
from thresher.theory.dictionary import Dictionary

ON_SUPPORT, ISOLATED, IN_DICTIONARY = "unique on its support", "isolated", "unique in the dictionary"

# What proves uniqueness in a dictionary, strongest first.
DUAL = ("injective", "tropp", "fuchs")

# Conditions that ask for labels without noise; the others say something of noisy rows, too.
EXACT_ONLY = ("fits", "resolved", "remainder", "held out", *DUAL)


def levels_of(conditions: Sequence[Condition], dictionaries: Sequence[Dictionary]) -> dict[str, str]:
    """Combine conditions into levels: a level holds where all it needs holds."""
    known = {found.name: found.status for found in conditions}
    unique = _all(known, "gates", "independent", "stationary")
    levels = {ON_SUPPORT: unique, ISOLATED: _worst(unique, known["margin"])}
    for one in dictionaries:
        # Any one of them proves it; one that is not met proves nothing, neither way.
        dual = HOLDS if HOLDS in [known[f"{kind} ({one.name})"] for kind in DUAL] else UNKNOWN
        base = _all(
            known,
            "fits",
            "rows",
            "gates",
            "independent",
            "stationary",
            "resolved",
            "remainder",
            "activity",
            "separation",
            "identity",
        )
        levels[f"{IN_DICTIONARY} ({one.name})"] = HOLDS if _worst(base, dual) == HOLDS else UNKNOWN
    return levels


def _worst(*statuses: str) -> str:
    return FAILS if FAILS in statuses else UNKNOWN if UNKNOWN in statuses else HOLDS


def _all(known: dict[str, str], *names: str) -> str:
    return _worst(*(known[name] for name in names))


def verdict_on(
    conditions: Sequence[Condition],
    levels: Mapping[str, str],
    dictionaries: Sequence[Dictionary],
    outputs: int = 1,
) -> str:
    """Say in plain sentences what has been proved and what has not."""
    known = {found.name: found for found in conditions}
    said = []
    if outputs > 1:
        said.append(f"Taken as the stack of its {outputs} outputs, each with weights of its own.")
    said.append(_on_support(known, levels))
    if levels[ISOLATED] == HOLDS:
        said.append(
            "Proved: no weight outside the support would enter, so no network near it with as few nonzeros "
            "does as well."
        )
    proved = [one for one in dictionaries if levels[f"{IN_DICTIONARY} ({one.name})"] == HOLDS]
    for one in proved:
        alone = known[f"injective ({one.name})"].holds
        said.append(
            f"Proved: it fits to rounding, and over the dictionary {one.description}, no other weights give "
            f"its answers on these rows{'' if alone else ' with as small an L1 norm'}."
        )
    open_ones = [one.name for one in dictionaries if one not in proved]
    if open_ones:
        asked = ("fits", "rows", "resolved", "remainder", "activity", "separation", "identity")
        why = [name for name in asked if not known[name].holds]
        reason = (
            f" ({', '.join(why)} not shown)"
            if why
            else " (dependent columns, and neither Tropp's nor Fuchs' condition is met)"
        )
        said.append(f"Unknown: uniqueness in the dictionary {', '.join(open_ones)}{reason}.")
    if not known["fits"].holds:
        said.append(
            "On rows with noise, uniqueness in a dictionary cannot be shown: fits, resolved and remainder "
            "ask for labels without it. What the other conditions say holds for noisy rows as well."
        )
    by_norm = [one.name for one in proved if not known[f"injective ({one.name})"].holds]
    sparser = f"; that nothing sparser exists in {', '.join(by_norm)}" if by_norm else ""
    said.append(f"Not proved: anything about gates outside the dictionaries{sparser}.")
    return " ".join(said)


def _on_support(known: Mapping[str, Condition], levels: Mapping[str, str]) -> str:
    """Say what is known of other weights on the same support."""
    if levels[ON_SUPPORT] == HOLDS:
        return "Proved: with its gates and support, these weights alone have the least squared error."
    if levels[ON_SUPPORT] == UNKNOWN:
        return "Unknown: whether the weights are unique on their support."
    if known["independent"].status == FAILS:
        return "Disproved: other weights on the same support do as well."
    penalty = "" if known["fits"].holds else ", as they do where a penalty shrinks a fit to noisy rows"
    return f"Disproved: other weights on the same support have a smaller squared error{penalty}."
