"""`tlx compile` and `tlx explain` with the target linalg, as a user types them."""

# covers: tlx compile, tlx explain, triton-to-linalg

from pathlib import Path

import numpy as np
import pytest

from tlx_xdsl import interpret_text
from tlx_xdsl.cpu.linalg.triton_to_linalg import linalg_pipeline
from tlx_xdsl.tools.tlx import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "hopper_gemm_ws.py"

KERNEL = """\
import tlx_xdsl
import tlx_xdsl.language as tl

TLX_COMPILE = {"scale": {"signature": {"x": "*fp32", "at": "*i32", "out": "*fp32", "n": "i32"}}}


@tlx_xdsl.jit
def scale(x, at, out, n):
    index = tl.program_id(0) * 64 + tl.arange(0, 64)
    inside = index < n
    picked = tl.load(at + index, mask=inside, other=0)
    tl.store(out + index, tl.load(x + picked, mask=inside) * 2, mask=inside)
"""


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    return f"{path}:scale"


BARRIER = """\
import tlx_xdsl
import tlx_xdsl.language as tl

TLX_COMPILE = {"turn": {"signature": {"x": "*i32"}}}


@tlx_xdsl.jit
def turn(x):
    index = tl.arange(0, 64)
    values = tl.load(x + index)
    tl.debug_barrier()
    tl.store(x + 63 - index, values)
    tl.debug_barrier()
    tl.store(x + index, tl.load(x + index) * 2)
"""


def test_a_program_needs_no_barrier_of_its_threads(tmp_path, capsys):
    path, x = tmp_path / "barrier.py", np.arange(64, dtype=np.int32)
    path.write_text(BARRIER)
    assert main(["compile", f"{path}:turn", "--target", "linalg", "-o", "-"]) == 0
    text = capsys.readouterr().out
    assert "ttg.barrier" not in text
    interpret_text(text, 1, [x])
    np.testing.assert_array_equal(x, 126 - 2 * np.arange(64))


@pytest.mark.parametrize("version", ["19", "newest"])
def test_the_printed_module_gives_the_numbers(kernel, capsys, version):
    assert main(["compile", kernel, "--target", "linalg", "--mlir-version", version, "-o", "-"]) == 0
    text, remarks = capsys.readouterr()
    assert "memref<64xf32> to tensor" in text or version == "19"
    assert "kernel.py:12:27: remark: 'tt.load' is unstructured: along dimension 0 its address is" in remarks
    x, at, out = (
        np.arange(100, dtype=np.float32),
        np.arange(100, dtype=np.int32)[::-1].copy(),
        np.zeros(100, np.float32),
    )
    interpret_text(text, 2, [x, at, out, 100])
    np.testing.assert_array_equal(out, 2 * x[::-1])


def test_the_module_after_each_pass_is_a_file(kernel, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["compile", kernel, "--target", "linalg", "-o", str(folder), "--print-after-all"]) == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "scale.00-frontend.mlir"
    assert names[-1] == "scale.linalg.mlir"
    assert len(names) == len(linalg_pipeline()) + 2


def test_an_explanation_of_each_access(kernel, capsys):
    assert main(["explain", kernel, "--target", "linalg"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 1)[1] for line in lines if not line.startswith(" ")] == [
        "tt.load is structured",
        "tt.load is unstructured",
        "tt.store is structured",
    ]
    assert "    elements  %x + %picked[i0]" in lines


def test_what_is_no_plain_triton_is_refused_at_its_line(capsys):
    assert main(["compile", f"{EXAMPLE}:matmul", "--target", "linalg", "-o", "-"]) == 1
    error = capsys.readouterr().err
    assert "'tlx.storage_alias_spec' cannot be lowered to linalg: it is no operation of plain Triton" in error
    assert "storage = tlx.storage_alias_spec" in error


def test_options_of_gpus_are_refused(kernel, capsys):
    assert main(["compile", kernel, "--target", "linalg", "--emit", "ptx"]) == 1
    assert "--emit: with --target linalg there is text for MLIR alone" in capsys.readouterr().err
