"""Netlists are evaluated as their cells are defined, for all rows at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from thresher.hardware.netlist import run_netlist
from thresher.hardware.tools import ToolError


def written(folder: Path, ports: dict, cells: dict) -> Path:
    made = {"modules": {"top": {"ports": ports, "cells": cells}}}
    (folder / "cells.json").write_text(json.dumps(made))
    return folder / "cells.json"


def cell(kind: str, outputs: str, parameters: dict | None = None, **joined: list) -> dict:
    directions = {name: "output" if name in outputs.split() else "input" for name in joined}
    return {
        "type": kind,
        "connections": joined,
        "port_directions": directions,
        "parameters": parameters or {},
    }


@pytest.mark.parametrize("size", range(1, 7))
def test_tables_hold_any_function(size: int, tmp_path: Path) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        content = rng.integers(0, 2, 2**size) if seed else np.zeros(2**size, dtype=int)
        init = "".join(map(str, content[::-1]))
        inputs = {f"I{i}": [2 + i] for i in range(size)}
        ports = {
            "x": {"direction": "input", "bits": list(range(2, 2 + size))},
            "y": {"direction": "output", "bits": [99]},
        }
        path = written(tmp_path, ports, {"t": cell(f"LUT{size}", "O", {"INIT": init}, O=[99], **inputs)})
        numbers = rng.integers(0, 2**size, 77)
        assert (run_netlist(path, "top", {"x": numbers})["y"] == content[numbers]).all()


def test_a_chain_of_carries_adds_whatever_its_order(tmp_path: Path) -> None:
    a, b, half, total = ([*range(start, start + 4)] for start in (2, 10, 20, 30))
    xor = {f"t{i}": cell("LUT2", "O", {"INIT": "0110"}, O=[half[i]], I0=[a[i]], I1=[b[i]]) for i in range(4)}
    carry = cell("CARRY4", "O CO", CI=["0"], CYINIT=["1"], S=half, DI=a, O=total, CO=[40, 41, 42, 43])
    held = cell("FDRE", "Q", D=[43], Q=[50], C=["0"], R=["0"], CE=["1"])
    reset = cell("FDRE", "Q", D=["1"], Q=[51], C=["0"], R=[a[0]])
    ports = {
        "a": {"direction": "input", "bits": a},
        "b": {"direction": "input", "bits": b},
        "s": {"direction": "output", "bits": [*total, 50]},
        "r": {"direction": "output", "bits": [51]},
    }
    path = written(tmp_path, ports, {"held": held, "reset": reset, "carry": carry, **xor})
    one, two = (part.ravel() for part in np.mgrid[:16, :16])
    found = run_netlist(path, "top", {"a": one, "b": two})
    assert (found["s"] == one + two + 1).all()
    assert (found["r"] == 1 - one % 2).all()


def test_cells_that_are_not_known_are_named(tmp_path: Path) -> None:
    ports = {"x": {"direction": "input", "bits": [2]}}
    path = written(tmp_path, ports, {"m": cell("DSP48E1", "P", P=[3], A=[2])})
    with pytest.raises(ToolError, match="a cell DSP48E1"):
        run_netlist(path, "top", {"x": np.zeros(3, dtype=np.int64)})
