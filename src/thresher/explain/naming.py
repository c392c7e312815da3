"""What inputs are called in sentences: their names, units and the values of the columns they come from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from thresher.network.formula import in_brackets, input_names, printable
from thresher.network.structure import Structure

UNIT = re.compile(r"(.*\S)\s*[\[(]\s*([^\[\]()]+?)\s*[\])]")


@dataclass(frozen=True)
class Named:
    """An input in words.

    Attributes
    ----------
    name : str
        As it stands in a formula.
    label : str
        The same without its unit.
    plain : str
        The label as it is read, without the brackets of formulas.
    unit : str
        Empty where none is told.
    value : str, optional
        The text that a column holds where this input is 1.
    """

    name: str
    label: str
    plain: str
    unit: str = ""
    value: str | None = None

    @property
    def after(self) -> str:
        """Give what follows a number of this input."""
        return f" {self.unit}" if self.unit else ""


def named_inputs(network: Structure, names: Sequence[str] | None = None) -> list[Named]:
    """Name the inputs that are read: units as in "temperature [K]" go to thresholds, where labels stay apart.

    Where the details tell how a table was encoded, an input of a column of text is "colour is red".
    """
    called = input_names(network, names)
    known = _values(network) if names is None else {}
    found = []
    raw = [called(column) for column in network.inputs_used().tolist()]
    split = [UNIT.fullmatch(name) for name in raw]
    labels = Counter(name if part is None else part[1] for name, part in zip(raw, split, strict=True))
    for column, name, part in zip(network.inputs_used().tolist(), raw, split, strict=True):
        shown = in_brackets(name)
        if column in known:
            owner, value = known[column]
            text = f"{in_brackets(owner)} is {printable(value)}"
            read = f"{printable(owner)} is {printable(value)}"
            found.append(Named(f"({text})", text, read, value=value))
        elif part is not None and labels[part[1]] == 1:
            found.append(Named(shown, in_brackets(part[1]), printable(part[1]), printable(part[2])))
        else:
            found.append(Named(shown, shown, printable(name)))
    return found


def _values(network: Structure) -> dict[int, tuple[str, str]]:
    """Tell which inputs stand for a value of a column of text, as the details and their names say."""
    table = network.details.get("table")
    columns = table.get("columns") if isinstance(table, dict) else None
    if not isinstance(columns, list) or network.features is None:
        return {}
    places = {name: place for place, name in enumerate(network.features)}
    found = {}
    for column in columns:
        values = column.get("values") if isinstance(column, dict) else None
        for value in values if isinstance(values, list) else ():
            name = f"{column.get('name')}={value}"
            if name in places:
                found[places[name]] = str(column.get("name")), str(value)
    return found
