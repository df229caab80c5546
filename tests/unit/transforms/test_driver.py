"""The pattern driver: locations are kept, and patterns that undo each other are stopped."""

import pytest
from xdsl.dialects.arith import AddiOp, MuliOp
from xdsl.dialects.builtin import UnknownLoc
from xdsl.pattern_rewriter import RewritePattern

from tlx_xdsl import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.driver import apply_patterns

pytestmark = pytest.mark.quick

TEXT = """
tt.func public @k(%x: i32, %y: i32, %p: !tt.ptr<i32>) {
  %0 = arith.addi %x, %y : i32 loc("kernel.py":7:3)
  tt.store %p, %0 : !tt.ptr<i32> loc("kernel.py":8:3)
  tt.return
}
"""


class DoubleInstead(RewritePattern):
    """One operation becomes two."""

    def match_and_rewrite(self, op, rewriter):
        if isinstance(op, AddiOp):
            square = MuliOp(op.lhs, op.lhs)
            rewriter.replace(op, [square, MuliOp(square.result, op.rhs)])


class Swap(RewritePattern):
    """x + y -> y + x, for ever."""

    def match_and_rewrite(self, op, rewriter):
        if isinstance(op, AddiOp):
            rewriter.replace(op, AddiOp(op.rhs, op.lhs))


def test_new_operations_stand_where_the_old_one_stood():
    module = parse_module(TEXT)
    assert apply_patterns(module, [DoubleInstead()])
    products = [op for op in module.walk() if isinstance(op, MuliOp)]
    assert len(products) == 2
    for op in products:
        assert not isinstance(op.location, UnknownLoc)
        assert (op.location.filename.data, op.location.line.data) == ("kernel.py", 7)


def test_patterns_without_an_end_are_stopped():
    module = parse_module(TEXT)
    with pytest.raises(CompilationError, match=r"do not come to an end at 'arith.addi'") as error:
        apply_patterns(module, [Swap()])
    assert str(error.value.location) == "kernel.py:7:3"


def test_nothing_to_do_changes_nothing():
    module = parse_module(TEXT)
    before = str(module)
    assert not apply_patterns(module, [])
    assert str(module) == before
