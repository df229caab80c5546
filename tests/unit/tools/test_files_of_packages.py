"""Kernels in a file of a package that imports from beside it."""

from tlx_xdsl.tools.tlx import main

KERNEL = """
import tlx_xdsl
import tlx_xdsl.language as tl
from .parts.numbers import twice


@tlx_xdsl.jit
def doubled(x, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(x + at, twice(tl.load(x + at)))


TLX_COMPILE = {"doubled": {"signature": {"x": "*fp32"}, "constexprs": {"B": 16}}}
"""
PART = """
import tlx_xdsl
from .. import FACTOR


@tlx_xdsl.jit
def twice(x):
    return x * FACTOR
"""


def test_a_kernel_of_a_package(tmp_path, monkeypatch, capsys):
    parts = tmp_path / "outer" / "apackage" / "parts"
    parts.mkdir(parents=True)
    (parts / "__init__.py").touch()
    (parts / "numbers.py").write_text(PART)
    (parts.parent / "__init__.py").write_text("import tlx_xdsl.language as tl\nFACTOR = tl.constexpr(2)\n")
    (parts.parent / "kernel.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    file = "outer/apackage/kernel.py:doubled"
    assert main(["run", file, "--grid", "1", "--arg", "x=arange:fp32[16]", "--check", "x=x*2"]) == 0
    assert "largest error 0.0" in capsys.readouterr().out
    (parts.parent / "kernel.py").write_text("from .nowhere import twice\n")
    assert main(["compile", file]) == 1
    assert "outer/apackage/kernel.py:1:1: error: ModuleNotFoundError: No module named 'apackage.nowhere'" in (
        capsys.readouterr().err
    )


def test_a_file_without_a_package(tmp_path, monkeypatch, capsys):
    (tmp_path / "kernel.py").write_text("from .nowhere import twice\n")
    monkeypatch.chdir(tmp_path)
    assert main(["compile", "kernel.py:k"]) == 1
    said = "kernel.py:1:1: error: ImportError: attempted relative import with no known parent package"
    assert said in capsys.readouterr().err
