"""Reasons for layouts are true: each step is a tie that the module has, and the end is what it claims to be."""

import argparse
from pathlib import Path

import pytest
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from tlx_xdsl.analysis.layout_reasons import LayoutReasons, hints_of, layout_of_value
from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tt, ttng
from tlx_xdsl.dialects.base.operation import num_warps_of
from tlx_xdsl.dialects.base.tensors import shape_of_tensor, tensor_type
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.layouts.distributed import default_blocked_layout
from tlx_xdsl.runtime.driver.compilation import compile_text
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.tools.commands import compile as compile_command
from tlx_xdsl.tools.launch_line.request import read
from tlx_xdsl.tools.launch_line.specialization import specialization_of

EXAMPLES = Path(__file__).parents[3] / "examples"


def compiled(path: str, name: str):
    """The modules after the frontend and after the last pass."""
    parser = argparse.ArgumentParser()
    compile_command.add_arguments(parser)
    request = read(parser.parse_args([f"{path}:{name}"]))
    texts: list[str] = []
    compile_text(request.source, specialization_of(request), verify=False, on_stage=lambda _, text: texts.append(text))
    return parse_module(texts[0]), parse_module(texts[-1])


def functions(module):
    return [op for op in module.walk() if isinstance(op, tt.FuncOp)]


def tensors(func):
    for op in func.walk():
        yield from (value for value in op.results if isinstance(value.type, TensorType))
        for region in op.regions:
            for block in region.blocks:
                yield from (value for value in block.args if isinstance(value.type, TensorType))


def tied(one, other, classes: ValueClasses) -> bool:
    """Return whether an operation has both values, or both are names of one value."""
    mine = {one.owner, *(use.operation for use in one.uses)}
    theirs = {other.owner, *(use.operation for use in other.uses)}
    return bool({op for op in mine & theirs if isinstance(op, Operation)}) or other in classes.members(one)


def check_end(words: str, value, hints) -> str:
    """Check what the last step says of `value`; the kind of reason."""
    owner, encoding = value.owner, tensor_type(value.type).encoding
    users = [use.operation for use in value.uses]
    if words.startswith("the program asks"):
        assert encoding in hints
        return "request"
    if words.startswith("the accumulator"):
        assert isinstance(owner, ttng.WarpGroupDotOp)
        return "accumulator"
    if words.startswith("operand"):
        assert any(isinstance(op, ttng.WarpGroupDotOp | tt.DotOp) for op in users)
        return "operand"
    if words.startswith("tcgen05.ld"):
        assert isinstance(owner, ttng.TMEMLoadOp)
        return "tcgen05"
    if words.startswith("tcgen05.st"):
        assert any(isinstance(op, ttng.TMEMStoreOp | ttng.TMEMAllocOp) for op in users)
        return "tcgen05"
    if words.startswith("the default"):
        first = owner if isinstance(owner, Operation) else owner.first_op
        assert layout_of_value(value) == default_blocked_layout(shape_of_tensor(value.type), num_warps_of(first))
        return "default"
    assert words.startswith("chosen for '")
    assert words.split("'")[1] in {op.name for op in (owner, *users) if isinstance(op, Operation)}
    return "access"


@pytest.mark.parametrize(
    ("file", "name", "kinds"),
    [
        ("hopper_attention_ws.py", "attention", {"accumulator", "operand", "default"}),
        ("hopper_gemm_pipelined.py", "matmul", {"accumulator", "access"}),
        ("blackwell_gemm_ws.py", "matmul", {"tcgen05"}),
    ],
)
def test_every_tensor_has_a_true_reason(file: str, name: str, kinds: set[str]):
    before, module = compiled(str(EXAMPLES / file), name)
    hints, found = hints_of(before), set()
    for func in functions(module):
        reasons, classes = LayoutReasons(func, hints), ValueClasses.of(func, TensorType)
        for value in tensors(func):
            if layout_of_value(value) is None:
                continue
            at = value
            *steps, end = reasons.of(value)
            for step in steps:
                assert tied(at, step.value, classes), step.words
                at = step.value
            assert end.value is None
            found.add(check_end(end.words, at, hints))
    assert kinds <= found


HEADER = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#other = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!acc = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
"""


def chain(body: str, name: str) -> list[str]:
    body = body.replace("ASYNC", "{inputPrecision = 0 : i32, isAsync = true} : !tile * !tile -> !acc")
    module = parse_module(f"{HEADER}tt.func @f(%n: i32, %a: !tile, %b: !tile) {{\n{body}\ntt.return\n}}\n}}\n")
    (func,) = functions(module)
    value = next(value for op in func.walk() for value in op.results if value.name_hint == name)
    return [step.words for step in LayoutReasons(func, {}).of(value)]


def test_an_accumulator_is_followed_through_loop_and_wait():
    body = """\
  %zero = arith.constant dense<0.0> : !acc
  %yes = arith.constant true
  %sum = scf.for %i = %n to %n step %n iter_args(%carried = %zero) -> (!acc) : i32 {
    %dot = ttng.warp_group_dot %a, %b, %carried, %yes ASYNC loc("k.py":7:1)
    %done = ttng.warp_group_dot_wait %dot {pendings = 0 : i32} : !acc loc("k.py":8:1)
    scf.yield %done : !acc
  } loc("k.py":6:1)
  %half = "tt.reduce"(%sum) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (!acc) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>> loc("k.py":9:1)"""
    end = "the accumulator of the dot at line 7: wgmma leaves it so in registers"
    assert chain(body, "dot") == [end]
    assert chain(body, "done") == ["passed on by the wait at line 8:", end]
    carried = "carried by the loop at line 6:"
    assert chain(body, "zero") in (
        [carried, "accumulated to by the dot at line 7:", end],
        [carried, "passed on by the wait at line 8:", end],
    )
    assert chain(body, "half")[0] == "reduced by 'tt.reduce' at line 9:"
    assert chain(body, "half")[-1] == end


def test_the_default_is_reported():
    body = """\
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #blocked>
  %sum = arith.addf %zero, %zero : tensor<64x64xf32, #blocked>"""
    assert chain(body, "sum") == ["it stands so in the module"]
    ours = body.replace(
        "#blocked",
        "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>",
    )
    assert chain(ours, "sum") == ["the default for 4 warps: nothing asked for another"]


def test_a_buffer_lists_its_accesses():
    body = """\
  %one = ttg.local_alloc : () -> !tile
  %zero = arith.constant dense<0.0> : !acc
  %yes = arith.constant true
  %other = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #other, #smem, mutable>
  %dot = ttng.warp_group_dot %one, %one, %zero, %yes ASYNC loc("k.py":7:1)"""
    assert chain(body, "one") == [
        "the default for a buffer of 64x64 elements of 16 bits",
        "wgmma reads A, line 7",
        "wgmma reads B, line 7",
    ]
    assert chain(body, "other") == ["not the default: what accesses it wants this layout"]


def test_what_has_no_layout_has_no_reason():
    with pytest.raises(ValueError, match="has no layout, it is of type i1"):
        chain("%yes = arith.constant true", "yes")


def test_views_lead_to_the_buffer():
    ring = "!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>"
    body = f"%ring = ttg.local_alloc : () -> {ring}\n%tile = ttg.memdesc_index %ring[%i] : {ring} -> !tile\n"
    module = parse_module(f"{HEADER}tt.func @f(%i: i32) {{\n{body}tt.return\n}}\n}}\n")
    (func,) = functions(module)
    tile = next(op.results[0] for op in func.walk() if op.name == "ttg.memdesc_index")
    assert isinstance(tile.type, MemDescType)
    first, second = LayoutReasons(func, {}).of(tile)
    assert (first.words, first.value.name_hint) == ("a view of", "ring")
    assert second.words == "the default for a buffer of 2x64x64 elements of 16 bits"


def test_the_program_s_own_hints_are_reported():
    body = """\
  %mine = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #tlx.user_layout<#other>, #smem, mutable> loc("k.py":3:1)
  %ours = ttg.local_alloc : () -> !tile loc("k.py":4:1)
  %x = arith.constant dense<0.0> : tensor<64x64xf32>
  %pinned = tlx.require_layout %x {pin} : tensor<64x64xf32> -> tensor<64x64xf32, #blocked> loc("k.py":5:1)
  %hint = tlx.require_layout %x : tensor<64x64xf32> -> tensor<64x64xf32, #mma> loc("k.py":6:1)"""
    frontend = parse_module(f"{HEADER}tt.func @f() {{\n{body}\ntt.return\n}}\n}}\n")
    hints = hints_of(frontend)
    assert [place.line for place in hints.values()] == [3, 5]
    later = parse_module(
        f"{HEADER}tt.func @f(%x: tensor<64x64xf32, #blocked>) {{\n"
        "%mine = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #other, #smem, mutable>\ntt.return\n}\n}\n"
    )
    (func,) = functions(later)
    for value, line in ((func.body.block.args[0], 5), (next(iter(func.body.block.ops)).results[0], 3)):
        (step,) = LayoutReasons(func, hints).of(value)
        assert step.words == f"the program asks for this layout, line {line}"
