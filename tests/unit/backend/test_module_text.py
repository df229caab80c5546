"""The scanner of module texts: it finds the operations that the parser finds, and their places."""

from pathlib import Path

import pytest
from backend_kernels import ABORTING, VECTOR_ADD, tma_copy
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.backend.module_text import ModuleText, location_and_callers
from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.runtime.driver.compilation import Specialization, compile_text
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.tools.launch_line.loading import load_kernel

pytestmark = pytest.mark.quick

EXAMPLES = Path(__file__).parents[3] / "examples"
NOT_WRITTEN = ("builtin.module", "tt.func", "ttg.warp_specialize.partitions", "scf.yield")
"""Containers, and what the text may leave out."""


@pytest.mark.parametrize(
    "kernel", ["hopper_attention_ws.py:attention", "blackwell_gemm_ws.py:matmul", "ampere_gemm_pipelined.py:matmul"]
)
def test_it_finds_what_the_parser_finds(kernel: str):
    loaded, defaults = load_kernel(str(EXAMPLES / kernel))
    target = defaults.options.get("target", "sm_90a")
    wanted = Specialization(defaults.signature, defaults.constexprs, target, defaults.options.get("num_warps", 4))
    text = compile_text(loaded.source, wanted).ttgir
    module = ModuleText(text)
    operations = [op for op in parsed(text).walk() if op.name not in NOT_WRITTEN]
    found = [statement for statement in module.operations() if statement.name not in NOT_WRITTEN]
    assert [statement.name for statement in found] == [op.name for op in operations]
    for statement, op in zip(found, operations, strict=True):
        if not op.regions:
            assert module.place_of(statement, "t")[0] == source_location(op.location)


def parsed(text: str) -> ModuleOp:
    return parse_module(text, filename="t")


def test_each_partition_is_a_group_of_its_own():
    groups: dict[int, list[str]] = {}
    for statement in ModuleText(tma_copy()).operations():
        groups.setdefault(statement.group, []).append(statement.name)
    function, partition = groups.values()
    assert "ttg.local_load" in function
    assert function[-1] == "tt.return"
    assert partition[-1] == "ttg.warp_return"
    assert "ttng.async_tma_copy_global_to_local" in partition


def test_a_statement_without_a_location_stands_where_it_stands():
    module = ModuleText(ABORTING)
    (dot,) = [statement for statement in module.operations() if statement.name == "ttng.warp_group_dot"]
    place, callers = module.place_of(dot, "k.ttgir")
    assert place == SourceLocation("k.ttgir", dot.line + 1, 5)
    assert callers == ()
    assert module.text_of(dot).splitlines()[1].strip().startswith("!operand * !operand")


def test_the_function_and_the_module():
    module = ModuleText(VECTOR_ADD)
    assert module.place_of_function("k.ttgir") == SourceLocation("user.py", 1, 1)
    line = next(number for number, line in enumerate(VECTOR_ADD.splitlines(), 1) if line.startswith("module"))
    assert module.place_of_module("k.ttgir") == SourceLocation("k.ttgir", line, 1)
    assert ModuleText("").place_of_function("k.ttgir") is None


@pytest.mark.parametrize(
    ("location", "place", "callers"),
    [
        ('"a.py":1:2', "a.py:1:2", 0),
        ('"name"("a.py":1:2)', "a.py:1:2", 0),
        ('callsite("a.py":1:2 at callsite("b.py":3:4 at "c.py":5:6))', "a.py:1:2", 2),
        ('fused["a.py":1:2, "b.py":3:4]', "a.py:1:2", 0),
        ('callsite(fused["a.py":1:2, "b.py":3:4] at "c.py":5:6)', "a.py:1:2", 0),
    ],
)
def test_forms_of_locations(location: str, place: str, callers: int):
    found = location_and_callers(location)
    assert found is not None
    assert str(found[0]) == place
    assert len(found[1]) == callers
    assert location_and_callers("unknown") is None


def test_aliases_of_locations_are_followed_and_one_of_itself_ends():
    text = """\
module {
  tt.func public @f() {
    %a = arith.constant 1 : i32 loc(#loc3)
    %b = arith.constant 1 : i32 loc(#loc4)
    tt.return
  }
}
#loc = loc("in.py":1:2)
#loc1 = loc("out.py":3:4)
#loc3 = loc(callsite(#loc at #loc1))
#loc4 = loc(callsite(#loc4 at #loc4))
"""
    module = ModuleText(text)
    first, second, _ = module.operations()
    assert module.place_of(first, "t") == (SourceLocation("in.py", 1, 2), ("out.py:3:4: called from here",))
    assert module.place_of(second, "t") == (SourceLocation("t", 4, 5), ())
