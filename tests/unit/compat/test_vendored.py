"""Modules that others put below Meta's packages: what is in them is theirs, whatever their names begin with."""

import importlib
import sys
from pathlib import Path

import pytest

import tlx_xdsl.compat as compat

pytestmark = pytest.mark.backend

TEXT = '''
import triton
import triton.language as tl
import triton.language.extra.tlx as tlx

WIDTH = tl.constexpr(4)


@triton.jit
def sum(x):
    """Has the name of a function of Triton's, and is none."""
    return x * WIDTH


@triton.constexpr_function
def doubled(n):
    return 2 * n


def tripled(n):
    return 3 * n


@triton.jit
def kernel(x_ptr):
    at = x_ptr + tl.arange(0, doubled(8))
    tl.store(at, sum(tl.load(at)) + tripled(5))
    tlx.fence("gpu")


@triton.jit
def plain(x_ptr):
    tl.store(x_ptr, sum(tl.load(x_ptr)))
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("triton")
    folder = tmp_path / "tlx" / "tutorials"
    folder.mkdir(parents=True)
    (folder / "scaled.py").write_text(TEXT)
    extra = importlib.import_module("triton.language.extra")
    monkeypatch.setattr(extra, "__path__", [*extra.__path__, str(tmp_path)])
    with compat.installed():
        yield importlib.import_module("triton.language.extra.tlx.tutorials.scaled")
    assert "triton.language.extra.tlx.tutorials" not in sys.modules


def test_helpers_are_compiled_from_their_source(module):
    text = module.kernel.compile_text({"x_ptr": "*fp32"}, stage="ttir")
    assert "end = 16" in text
    assert "arith.mulf" in text
    assert "1.500000e+01" in text
    assert "tt.reduce" not in text


def test_a_kernel_without_tlx_remains_stock_s(module):
    from triton.runtime.jit import JITFunction

    assert type(module.plain) is JITFunction
    assert type(module.kernel) is not JITFunction
