"""Kernels in one line, compiled by stock Triton's frontend and by ours, and compared after stock's passes."""

from __future__ import annotations

import atexit
import functools
import inspect
import re
from pathlib import Path

import pytest

from tests.oracle import loading, ours
from tests.oracle.compare import difference
from tests.oracle.stock import Stock
from tests.unit.frontend.kernels import compile_source
from tests.versions import NEWEST, why_not_installed
from tlx_xdsl import CompilationError

_HEADER = """\
import triton
import triton.language as tl

from tests.gallery.cases import case

"""


@functools.cache
def _stock() -> Stock:
    stock = Stock()
    atexit.register(stock.close)
    return stock


def source_of(signature: dict[str, str], body: str, *, decorators: str = "", helper: str = "") -> str:
    """The source of the kernel `kernel` with these parameters and this body; `;;` separates statements."""
    lines = [f"    {line}" for line in body.replace(";; ", "\n").splitlines()]
    return "\n".join([helper, decorators, f"def kernel({', '.join(signature)}):", *lines, ""])


def assert_as_stock(tmp_path: Path, signature: dict[str, str], body: str, *, helper: str = "") -> None:
    """Check that our frontend's IR equals stock's after stock's passes; skip where stock is not the reference."""
    if reason := why_not_installed(NEWEST, "the language is that of"):
        pytest.skip(reason)
    decorators = f"@case({signature!r})\n@triton.jit"
    helper = inspect.cleandoc(helper)
    path = tmp_path / "kernels.py"
    path.write_text(_HEADER + source_of(signature, body, decorators=decorators, helper=helper))
    expected = _stock().kernel(path, "kernel")
    assert not expected.error, f"stock refuses the kernel: {expected.error}"
    found = _stock().passes(ours.text(loading.load(path, ours=True)["kernel"]))
    assert not found.error, f"stock refuses our text: {found.error}"
    assert (different := difference(expected.final, found.final)) is None, different


def assert_fault(tmp_path: Path, signature: dict[str, str], body: str, message: str, at: str) -> None:
    """Check that the body's last line is refused with a message, and the caret stands at the text `at` in it."""
    source = source_of(signature, body, decorators="@tlx_xdsl.jit")
    with pytest.raises(CompilationError, match=re.escape(message)) as error:
        compile_source(tmp_path, source, signature)
    # The file starts with four lines of imports.
    line = source.splitlines()[-1]
    assert (error.value.location.line, error.value.location.column) == (
        4 + len(source.splitlines()),
        line.index(at) + 1,
    )
    assert "\n" not in error.value.message
