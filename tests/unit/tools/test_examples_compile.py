"""Every example goes from its Python source to a cubin."""

from pathlib import Path

import pytest
from xdsl.dialects import scf

from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.dialects import ttg
from tlx_xdsl.dialects.base.layouts import layout_of
from tlx_xdsl.layouts.conversion.distributed import distributed_to_linear
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.tools.launch_line.loading import load_kernel

EXAMPLES = Path(__file__).parents[3] / "examples"

HOPPER = [
    "hopper_gemm_pipelined.py:matmul",
    "hopper_gemm_persistent_cooperative.py:matmul",
    "hopper_gemm_persistent_pingpong.py:matmul",
    "hopper_attention_ws.py:attention",
    "hopper_attention_pipelined.py:attention",
    "hopper_attention_pingpong.py:attention",
    "hopper_gemm_ws.py:matmul",
]


BLACKWELL = ["blackwell_gemm_ws.py:matmul", "blackwell_attention_ws.py:attention"]


def compiled(kernel):
    loaded, defaults = load_kernel(str(EXAMPLES / kernel))
    options = {name: value for name, value in defaults.options.items() if name in ("num_warps", "target")}
    wanted = Specialization(defaults.signature, defaults.constexprs, **options)
    text = compile_text(loaded.source, wanted, triton_version=INSTALLED)
    result = compile_ttgir(text.ttgir, BackendOptions(**options))
    assert result.cubin
    assert result.resources is not None
    return result


def spilled_bytes(result):
    return result.resources.spill_store_bytes, result.resources.spill_load_bytes


SPILLED = {"blackwell_attention_ws.py:attention": {"3.8": (8, 16)}}
"""Bytes a thread, stored and loaded, by Triton's version. These lie after the loop, in the correction's epilogue."""

LOOPS = (scf.ForOp, scf.WhileOp)


def conversions_in_main_loops(ttgir):
    """The layout conversions in innermost loops, of the text that goes to LLVM: those that move data, and the others.

    Around those there may be a loop over tiles, which ends with the conversions of an epilogue.
    """
    moving, free = [], []
    for op in parse_module(ttgir).walk():
        if isinstance(op, ttg.ConvertLayoutOp) and is_innermost(loop_around(op)):
            (free if stays_in_registers(op) else moving).append(op)
    return moving, free


def loop_around(op):
    while op is not None and not isinstance(op, LOOPS):
        op = op.parent_op()
    return op


def is_innermost(loop):
    return loop is not None and not any(isinstance(inner, LOOPS) for inner in loop.walk() if inner is not loop)


def stays_in_registers(op):
    """Return whether each thread has what it is to have: the same lanes and warps, and all of its registers."""
    source, target = (
        distributed_to_linear(layout_of(value.type.encoding), tuple(value.type.get_shape())).bases
        for value in (op.src, op.result)
    )

    def held(bases):
        return {basis for basis in bases if any(basis)}

    fixed = all(source[name] == target[name] for name in ("lane", "warp"))
    return fixed and held(target["register"]) <= held(source["register"])


@pytest.mark.backend
@pytest.mark.parametrize("kernel", [*HOPPER, *BLACKWELL])
def test_an_example_is_lowered_as_it_is_written(kernel):
    """No data moves between threads for the sake of layouts in a main loop, nothing spills, no wgmma is serialised."""
    result = compiled(kernel)
    moving, free = conversions_in_main_loops(result.ttgir)
    assert not moving
    # P, in the accumulator's layout, is in the registers in which the next dot wants it; a factor for each row is in
    # those of the thread that holds the row, and so is what a chain of blocks of columns was reduced to.
    assert len(free) <= (8 if "attention" in kernel else 0)
    expected = SPILLED.get(kernel, {}).get(INSTALLED[:3], (0, 0))
    assert spilled_bytes(result) <= expected
    assert ("tcgen05.mma" if kernel in BLACKWELL else "wgmma.mma_async") in result.ptx
    # ptxas C7510 and its kin: wgmma that had to be serialised.
    assert not [warning for warning in result.warnings if "C75" in str(warning)]
