"""Running small kernels, and finding the line that a report must name: it ends in a comment `# here` or the like."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tlx_xdsl
from tlx_xdsl.errors import CompilationError, shown_path
from tlx_xdsl.interpreter.faults import Fault


def line_of(kernel: Any, mark: str = "here") -> tuple[str, int, str]:
    """File as reports name it, number and text of the kernel's line that is marked so."""
    lines, first = inspect.getsourcelines(kernel.source.fn)
    found = [(number, text) for number, text in enumerate(lines, first) if text.rstrip().endswith(f"# {mark}")]
    assert len(found) == 1, mark
    number, text = found[0]
    return shown_path(inspect.getfile(kernel.source.fn)), number, text


def at(kernel: Any, mark: str = "here", text: str = "tlx.") -> str:
    """`file:line:col` of where `text` begins in a marked line."""
    file, number, line = line_of(kernel, mark)
    return f"{file}:{number}:{line.index(text) + 1}"


def run(kernel: Any, *arguments: Any, grid: tuple[int, ...] = (1,), **options: Any) -> Any:
    """Run a kernel that does nothing wrong; says what it warned of."""
    return tlx_xdsl.interpret(kernel, grid, *arguments, jobs=1, **options)


def fault(kernel: Any, *arguments: Any, kind: type[CompilationError] = Fault, **options: Any) -> Any:
    """The report that a kernel ends with."""
    with pytest.raises(kind) as found:
        run(kernel, *arguments, **options)
    assert "Traceback" not in str(found.value)
    return found.value


def expect_fault(
    kernel: Any, message: str, *arguments: Any, mark: str = "here", text: str = "tlx.", **options: Any
) -> Any:
    """Check that a kernel ends with a report at its marked line, which has those words."""
    report = fault(kernel, *arguments, **options)
    assert str(report).startswith(f"{at(kernel, mark, text)}: error: "), str(report)
    assert message in report.message, report.message
    return report


def halves(*shape: int) -> np.ndarray:
    """Random numbers."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float16)
