"""The pointer and the mask analysis, transfer function by transfer function."""

# covers: triton-to-linalg

import pytest

from tlx_xdsl.analysis.structure.analysis import Structure
from tlx_xdsl.analysis.structure.values import Linear, Mask, Wrapped
from tlx_xdsl.dialects import tt
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.rewriting import ops_of

pytestmark = pytest.mark.quick

HEAD = """tt.func @f(%n: i32, %s: i32, %c: i1, %t: tensor<8xi32>, %b: tensor<8xi1>) {
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %one = tt.make_range {start = 3 : i32, end = 4 : i32} : tensor<1xi32>
  %N = tt.splat %n : i32 -> tensor<8xi32>
  %S = tt.splat %s : i32 -> tensor<8xi32>
  %C = tt.splat %c : i1 -> tensor<8xi1>
  %two = arith.constant dense<2> : tensor<8xi32>
  %true = arith.constant dense<true> : tensor<8xi1>
  %false = arith.constant dense<false> : tensor<8xi1>
"""


def state_of(lines):
    """The state of the last value of a function that begins with `HEAD`."""
    module = parse_module(f"{HEAD}{lines}\n  tt.return\n}}")
    (function,) = ops_of(module, tt.FuncOp)
    return Structure(function).of(list(function.body.blocks[0].ops)[-2].results[0])


@pytest.mark.parametrize(("line", "base", "strides"), [
    ("%x = arith.addi %r, %N : tensor<8xi32>", "%n", ["1"]),
    ("%x = arith.subi %N, %r : tensor<8xi32>", "%n", ["-1"]),
    ("%x = arith.muli %r, %S : tensor<8xi32>", "0", ["%s"]),
    ("%x = arith.shli %r, %two : tensor<8xi32>", "0", ["4"]),
    ("%x = arith.extsi %r : tensor<8xi32> to tensor<8xi64>", "0", ["1"]),
    ("%x = arith.divsi %N, %S : tensor<8xi32>", "truncdiv(%n, %s)", ["0"]),
    ("%x = arith.select %c, %r, %N : tensor<8xi32>", "select(%c, 0, %n)", ["select(%c, 1, 0)"]),
    ("%x = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>", "0", ["0", "1"]),
    ("%x = tt.broadcast %one : tensor<1xi32> -> tensor<8xi32>", "3", ["0"]),
])  # fmt: skip
def test_what_is_linear(line, base, strides):
    state = state_of(line)
    assert isinstance(state, Linear)
    assert (str(state.base), [str(each) for each in state.strides], state.terms) == (base, strides, ())


@pytest.mark.parametrize("line", [
    "%x = arith.muli %r, %r : tensor<8xi32>",
    "%x = arith.divsi %r, %two : tensor<8xi32>",
    "%x = arith.minsi %r, %N : tensor<8xi32>",
    "%x = arith.addi %t, %r : tensor<8xi32>",
    "%x = arith.select %b, %r, %N : tensor<8xi1>, tensor<8xi32>",
])  # fmt: skip
def test_what_is_opaque_varies_along_its_dimension(line):
    assert state_of(line).opaque_dims == {0}


def test_an_opaque_value_varies_where_its_operands_do():
    state = state_of("""%e = tt.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %w = tt.broadcast %e : tensor<8x1xi32> -> tensor<8x4xi32>
  %x = arith.divsi %w, %w : tensor<8x4xi32>""")
    assert state.opaque_dims == {0}


def test_a_remainder_of_what_grows_by_1():
    state = state_of("%a = arith.addi %r, %N : tensor<8xi32>\n  %x = arith.remsi %a, %S : tensor<8xi32>")
    ((term, factor),) = state.terms
    assert isinstance(term, Wrapped)
    assert (str(term.start), str(term.modulus), term.dim, str(factor)) == ("%n", "%s", 0, "1")
    # Of what grows by 2 it is opaque, and of what is smaller than the modulus it is nothing.
    doubled = "%a = arith.muli %r, %two : tensor<8xi32>\n  %x = arith.remsi %a, %S : tensor<8xi32>"
    assert state_of(doubled).opaque_dims == {0}
    assert state_of(
        "%m = arith.constant dense<8> : tensor<8xi32>\n  %x = arith.remsi %r, %m : tensor<8xi32>"
    ) == state_of("%x = arith.addi %r, %two : tensor<8xi32>\n  %y = arith.subi %x, %two : tensor<8xi32>")


@pytest.mark.parametrize(("line", "bound"), [
    ("%x = arith.cmpi slt, %r, %N : tensor<8xi32>", (None, "sext(%n)")),
    ("%x = arith.cmpi sle, %r, %N : tensor<8xi32>", (None, "sext(%n) + 1")),
    ("%x = arith.cmpi sgt, %r, %N : tensor<8xi32>", ("sext(%n) + 1", None)),
    ("%x = arith.cmpi sge, %r, %N : tensor<8xi32>", ("sext(%n)", None)),
    ("%x = arith.cmpi sgt, %N, %r : tensor<8xi32>", (None, "sext(%n)")),
    ("%x = arith.cmpi eq, %r, %N : tensor<8xi32>", ("sext(%n)", "sext(%n) + 1")),
    ("%x = arith.cmpi ult, %r, %two : tensor<8xi32>", (None, "2")),
    ("%a = arith.muli %r, %two : tensor<8xi32>\n  %x = arith.cmpi slt, %a, %N : tensor<8xi32>",
     (None, "ceildiv(sext(%n), 2)")),
    ("%a = arith.subi %N, %r : tensor<8xi32>\n  %x = arith.cmpi slt, %a, %S : tensor<8xi32>",
     ("sext(%n) - sext(%s) + 1", None)),
    ("%a = arith.cmpi slt, %r, %N : tensor<8xi32>\n  %x = arith.xori %a, %true : tensor<8xi1>", ("sext(%n)", None)),
    ("%a = arith.cmpi slt, %r, %N : tensor<8xi32>\n  %x = arith.select %C, %a, %false : tensor<8xi1>, tensor<8xi1>",
     (None, "sext(%n)")),
])  # fmt: skip
def test_bounds_of_masks(line, bound):
    state = state_of(line)
    assert isinstance(state, Mask)
    assert not state.opaque
    (found,) = state.bounds
    assert tuple(None if each is None else str(each) for each in found) == bound


def test_a_condition_that_all_elements_share():
    state = state_of("%x = arith.cmpi slt, %N, %S : tensor<8xi32>")
    assert ([str(each) for each in state.conditions], state.varies) == (["compare <(%n, %s)"], frozenset())
    assert [str(each) for each in state_of("%x = arith.andi %C, %true : tensor<8xi1>").conditions] == ["%c"]


@pytest.mark.parametrize("line", [
    "%x = arith.cmpi ne, %r, %N : tensor<8xi32>",
    "%x = arith.cmpi ult, %r, %N : tensor<8xi32>",
    "%x = arith.ori %b, %C : tensor<8xi1>",
    "%x = arith.cmpi slt, %t, %N : tensor<8xi32>",
])  # fmt: skip
def test_masks_that_are_opaque(line):
    assert state_of(line).opaque_dims == {0}


def test_claims_are_of_what_may_wrap_around():
    start = "%a = arith.addi %r, %N : tensor<8xi32>\n  "
    assert not state_of("%x = arith.cmpi slt, %r, %N : tensor<8xi32>").claims
    (claim,) = state_of(start + "%x = arith.cmpi slt, %a, %S : tensor<8xi32>").claims
    assert (str(claim.base), claim.bits, claim.signed, claim.checkable) == ("%n", 32, True, True)
    assert len(state_of(start + "%x = arith.extsi %a : tensor<8xi32> to tensor<8xi64>").claims) == 1
    # What is truncated is exact again.
    wide = start + "%x = arith.extsi %a : tensor<8xi32> to tensor<8xi64>\n  "
    narrow = state_of(wide + "%y = arith.trunci %x : tensor<8xi64> to tensor<8xi32>")
    assert (str(narrow.base), [str(each) for each in narrow.strides]) == ("%n", ["1"])


def test_the_parts_of_a_mask_stand_in_the_order_of_the_program():
    lines = [f"%c{i} = arith.cmpi ne, %t, %{scalar} : tensor<8xi32>" for i, scalar in enumerate("rNS")]
    lines += [f"%d{i} = arith.cmpi eq, %t, %{scalar} : tensor<8xi32>" for i, scalar in enumerate("rNS")]
    parts = [line.split(" ")[0] for line in lines]
    lines += ["%and1 = arith.andi %c0, %c1 : tensor<8xi1>"]
    lines += [f"%and{i} = arith.andi %and{i - 1}, {parts[i]} : tensor<8xi1>" for i in range(2, 6)]
    state = state_of("\n".join([*lines, "%x = arith.andi %and5, %c0 : tensor<8xi1>"]))
    assert [f"%{part.value.name_hint}" for part in state.opaque] == parts
