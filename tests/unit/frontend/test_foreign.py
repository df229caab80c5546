"""Objects of stock Triton in kernels: taken for ours by their qualified names."""

import sys
import textwrap

import pytest

pytest.importorskip("triton", reason="needs stock Triton's language")

from tests.unit.frontend.kernels import compile_source
from tlx_xdsl import CompilationError
from tlx_xdsl.tools.tlx import main

SIGNATURE = {"out": "*fp32", "n": "i32"}

KERNEL = """
import typing
import {library} as lib
import {language} as tl
from {language} import float32

SCALE = tl.constexpr(3)

class Pair(typing.NamedTuple):
    first: object
    second: object

@lib.constexpr_function
def half(size):
    return size // 2

@lib.jit
def scaled(x, factor: tl.constexpr = 2):
    return x * factor + SCALE

@lib.jit
def kernel(out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, half(BLOCK))
    values = tl.full((half(BLOCK),), 1.5, dtype=float32)
    pair = Pair(scaled(values), tl.cdiv(n, BLOCK))
    for _ in tl.range(0, pair.second, num_stages=2):
        values += pair.first
    tl.store(out + offsets, values, mask=offsets < n)
"""


def text(tmp_path, library: str, language: str) -> str:
    source = KERNEL.format(library=library, language=language)
    return compile_source(tmp_path, source, SIGNATURE, BLOCK=64)


@pytest.mark.backend
def test_real_objects_give_the_same_ir(tmp_path):
    ours = text(tmp_path, "tlx_xdsl", "tlx_xdsl.language")
    assert "tt.num_stages" in ours
    assert text(tmp_path, "triton", "triton.language") == ours


@pytest.mark.backend
def test_decorated_kernels_are_seen_through(tmp_path):
    source = KERNEL.format(library="triton", language="triton.language")
    source += "\nkernel = lib.heuristics({'BLOCK': lambda args: 64})(kernel)\n"
    assert compile_source(tmp_path, source, SIGNATURE, BLOCK=64) == text(tmp_path, "triton", "triton.language")


@pytest.mark.backend
def test_the_compile_command_takes_a_stock_kernel(tmp_path, capsys):
    path = tmp_path / "stock.py"
    path.write_text(
        textwrap.dedent("""\
        import triton
        import triton.language as tl

        @triton.jit
        def copy(x, out, N: tl.constexpr):
            index = tl.arange(0, N)
            tl.store(out + index, tl.load(x + index))
        """)
    )
    arguments = ["--signature", "x=*fp32", "--signature", "out=*fp32", "--constexpr", "N=128"]
    assert main(["compile", f"{path}:copy", *arguments, "--emit", "ttir", "-o", str(tmp_path / "out")]) == 0, (
        capsys.readouterr().err
    )
    assert "tt.load" in (tmp_path / "out" / "copy.ttir").read_text()


@pytest.mark.backend
def test_what_we_do_not_have_is_named(tmp_path):
    source = """
import triton.language as stock

def _made_up():
    pass

_made_up.__module__ = "triton.language.core"
_made_up.__name__ = "made_up"

@tlx_xdsl.jit
def kernel(out, n):
    _made_up()
"""
    with pytest.raises(CompilationError, match=r"tlx_xdsl does not have triton\.language\.core\.made_up"):
        compile_source(tmp_path, source, SIGNATURE)


def test_the_frontend_does_not_import_triton():
    code = (
        "import sys, tlx_xdsl.frontend.compile, tlx_xdsl.language.tlx\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('triton', 'torch')]"
    )
    import subprocess

    subprocess.run([sys.executable, "-c", code], check=True)
