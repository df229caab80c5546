"""The page `docs/ttl-names.md`, from what the probes do here and what tt-lang's own compiler said of them.

`python -m tests.unit.ttl.names.ttl_names_page` writes it anew.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.unit.ttl.names.ttl_probes import PROBES, Probe
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.runtime import run
from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

PAGE = Path(__file__).parents[4] / "docs" / "ttl-names.md"
VENDOR = json.loads((Path(__file__).parent / "tt_lang_1_1_1.json").read_text(encoding="utf-8"))
"""What the compiler of tt-lang 1.1.1 said: `taken`, or its message."""

_HEAD = """\
# Names of tt-lang 1.1, and what they are here

A row is a kernel of one construct, from the documentation of tt-lang 1.1, that runs on the machines here and gives
what numpy gives, or is refused with the message that stands in its place. The last column says whether the compiler of
tt-lang {version} takes the same file ({date}). `x` and `y` are blocks that were waited for, `o` is a reserved one.

The tests write this page: `python -m tests.unit.ttl.names.ttl_names_page`.
"""


@cache
def arrays() -> tuple[Any, Any]:
    """The tensors of the probes: a from 0.1 to 0.9, b around 0."""
    generator = np.random.default_rng(0)
    a = generator.uniform(0.1, 0.9, (32, 32)).astype(np.float32)
    return a, generator.standard_normal((32, 32)).astype(np.float32)


def first(axis: int, values: Any) -> Any:
    """The first column (axis 1) or row (0) of a tile, as a reduction leaves it."""
    tile = np.zeros((32, 32))
    tile[(slice(None), 0) if axis else 0] = values
    return tile


def expected(probe: Probe) -> Any:
    """The elements of the result, by numpy."""
    a, b = (each.astype(np.float64) for each in arrays())
    names = {"np": np, "a": a, "b": b, "erf": np.vectorize(math.erf), "first": first}
    return np.broadcast_to(eval(probe.expected, names), (32, 32))


@cache
def outcome(probe: Probe, machine: str) -> str | None:
    """Run a probe: None if it gives what numpy does, the message if it is refused.

    Raises AssertionError for wrong numbers, and for a message without a line of the probe.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.py"
        path.write_text(probe.source, encoding="utf-8")
        result = np.full((32, 32), np.nan, np.float32)
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                run(load_ttl_kernel(f"{path}:kernel"), *(each.copy() for each in arrays()), result, machine=machine)
        except CompilationError as error:
            if error.location is None or not error.location.line:
                raise AssertionError(f"{probe.name}: {error} has no line") from error
            return error.message
    np.testing.assert_allclose(result, expected(probe), rtol=1e-4, atol=1e-5, err_msg=probe.name)
    return None


def page(machine: str = "tensors") -> str:
    """The text of the page."""
    parts = [_HEAD.format(**VENDOR)]
    for group, probes in PROBES.items():
        rows = [f"| {_cell(each.name)} | {_here(outcome(each, machine))} | {_there(each.name)} |" for each in probes]
        parts.append("\n".join([f"## {group}\n", "| tt-lang | here | its compiler |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _here(message: str | None) -> str:
    return "yes" if message is None else f"no: {message}".replace("|", "\\|").replace("*", "\\*")


def _there(name: str) -> str:
    said = VENDOR["probes"].get(name)
    return "" if said is None else "yes" if said == "taken" else "no"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
