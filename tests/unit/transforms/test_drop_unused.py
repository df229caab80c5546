"""Removal of carried values that only compute themselves, and of nothing else."""

import pytest

from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.drop_unused import drop_unused

pytestmark = pytest.mark.quick

LOOP = """tt.func public @f(%p: !tt.ptr<i32>, %n: i32) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a, %b, %c = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0, %y = %c1, %z = %n) -> (i32, i32, i32) : i32 {{
    %x1 = arith.addi %x, %c1 : i32
    {body}
    scf.yield %x1, %y1, %z1 : i32, i32, i32
  }}
  {after}
  tt.return
}}"""


def carried(body, after):
    """The names of what the loop still carries."""
    module = parse_module(LOOP.format(body=body, after=after))
    (function,) = module.ops
    drop_unused(function)
    verify_module(module)
    loops = [op for op in function.walk() if op.name == "scf.for"]
    assert len(loops) == 1, print_module(module)
    return [argument.name_hint for argument in loops[0].body.block.args[1:]]


PLAIN = "%y1 = arith.addi %y, %y : i32\n%z1 = arith.addi %z, %c1 : i32"


@pytest.mark.parametrize(("body", "after", "expected"), [
    (PLAIN, "", []),
    (PLAIN, "tt.store %p, %b : !tt.ptr<i32>", ["y"]),
    (PLAIN, "%unused = arith.addi %a, %b : i32", []),
    (PLAIN + "\ntt.store %p, %z : !tt.ptr<i32>", "", ["z"]),
    # A value that another one takes stays with that.
    ("%y1 = arith.addi %y, %x : i32\n%z1 = arith.addi %z, %y : i32", "tt.store %p, %c : !tt.ptr<i32>", ["x", "y", "z"]),
    # Two that only take each other go together.
    ("%y1 = arith.addi %z, %c1 : i32\n%z1 = arith.addi %y, %c1 : i32", "tt.store %p, %a : !tt.ptr<i32>", ["x"]),
])  # fmt: skip
def test_what_a_loop_still_carries(body, after, expected):
    assert carried(body, after) == expected
