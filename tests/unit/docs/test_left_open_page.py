"""The table of `docs/left-open.md`: each line is run in the interpreter, natively and as PTX."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.versions import NEWEST, is_installed

PAGE = Path(__file__).parents[3] / "docs" / "left-open.md"


@dataclass(frozen=True)
class Line:
    """One line of the table: an expression, what x and y are, and what comes out."""

    expression: str
    x: str
    y: str
    here: str
    ptx: str

    def array(self, which: str) -> Any:
        """A loaded number: its type and value."""
        text = getattr(self, which) or "int32 1"
        dtype, value = text.split()
        return np.array([float(value) if dtype.startswith("float") else int(value)], dtype)

    @property
    def is_float(self) -> bool:
        return any(part in self.here for part in (".", "n"))


def lines() -> list[Line]:
    """The lines of the table under `Answers`."""
    section = PAGE.read_text(encoding="utf-8").split("## Answers", 1)[1].split("\n## ", 1)[0]
    rows = [row.strip("|").split("|") for row in section.splitlines() if row.startswith("| `")]
    return [Line(row[0].strip().strip("`"), *(cell.strip() for cell in row[1:])) for row in rows]


LINES = lines()


def shown(value: Any) -> str:
    """A result as the page has it."""
    if not isinstance(value, np.floating):
        return str(value)
    text = f"{value:.6g}"
    return text if any(part in text for part in (".", "n", "e")) else f"{text}.0"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A kernel with all lines of the table."""
    numbers = range(len(LINES))
    parameters = ", ".join(f"p{at}, q{at}, o{at}" for at in numbers)
    text = f"import tlx_xdsl\nimport tlx_xdsl.language as tl\n\n\n@tlx_xdsl.jit\ndef kernel({parameters}):\n"
    for at, line in enumerate(LINES):
        text += f"    p, x, y = p{at}, tl.load(p{at}), tl.load(q{at})\n"
        target = "tl.float64" if line.is_float else "tl.int64"
        plain = line.expression.startswith("-")
        found = f"({line.expression})" if plain else f"({line.expression}).to(tl.float32).to({target})"
        text += f"    tl.store(o{at}, {found if line.is_float or plain else f'({line.expression}).to({target})'})\n"
    path = tmp_path_factory.mktemp("left") / "left_open_lines.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("left_open_lines", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def results(kernel: Any, machine: str) -> list[str]:
    arguments: dict[str, Any] = {}
    for at, line in enumerate(LINES):
        out = np.zeros(1, np.float64 if line.is_float else np.int64)
        arguments |= {f"p{at}": line.array("x"), f"q{at}": line.array("y"), f"o{at}": out}
    if machine == "cpu":
        kernel[(1,)](**arguments)
    else:
        kernel.interpret((1,), **arguments, stage=machine)
    return [shown(arguments[f"o{at}"][0]) for at in range(len(LINES))]


def wrong(found: list[str], expected: list[str]) -> list[str]:
    return [f"{line}: {a}" for line, a, b in zip(LINES, found, expected, strict=True) if a != b]


def test_the_table_is_read():
    assert len(LINES) >= 40
    assert sum(bool(line.ptx) for line in LINES) >= 5


@pytest.mark.parametrize("machine", ["frontend", "ttgir", "cpu"])
def test_the_interpreter_and_native_code(kernel: Any, machine: str):
    if machine == "cpu":
        pytest.importorskip("llvmlite")
    assert not wrong(results(kernel, machine), [line.here for line in LINES])


@pytest.mark.backend
@pytest.mark.skipif(not is_installed(NEWEST), reason="the page names what Triton 3.9 makes")
def test_the_code_of_the_gpu(kernel: Any):
    assert not wrong(results(kernel, "ptx"), [line.ptx or line.here for line in LINES])
