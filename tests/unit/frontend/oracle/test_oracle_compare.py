"""The oracle's comparison: what is equal, and that everything else is found."""

import random
import re

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue

from tests.oracle.compare import difference, difference_of_modules
from tests.oracle.effects import Effects
from tlx_xdsl.text.parser import parse_module

BASE = """
module {
  tt.func public @kernel(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %f = arith.constant 1.5 : f32
    %px = tt.addptr %x, %n : !tt.ptr<f32>, i32
    %py = tt.addptr %y, %n : !tt.ptr<f32>, i32
    %a = tt.load %px : !tt.ptr<f32>
    %b = tt.load %py : !tt.ptr<f32>
    tt.store %px, %b : !tt.ptr<f32>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %a, %k = %c2) -> (f32, i32) : i32 {
      %p = tt.addptr %y, %i : !tt.ptr<f32>, i32
      %v = tt.load %p : !tt.ptr<f32>
      %t = arith.subf %s, %v : f32
      %m = arith.addi %k, %i : i32
      scf.yield %t, %m : f32, i32
    }
    %q:2 = scf.if %c -> (f32, i32) {
      %u = arith.mulf %r#0, %f : f32
      scf.yield %u, %c1 : f32, i32
    } else {
      scf.yield %f, %r#1 : f32, i32
    }
    %w:2 = scf.while (%e = %q#1, %g = %q#0) : (i32, f32) -> (i32, f32) {
      %h = arith.cmpi slt, %e, %n : i32
      scf.condition(%h) %e, %g : i32, f32
    } do {
    ^bb0(%e2: i32, %g2: f32):
      %o = arith.addi %e2, %c2 : i32
      %z = arith.addf %g2, %f : f32
      scf.yield %o, %z : i32, f32
    }
    %pw = tt.addptr %x, %w#0 : !tt.ptr<f32>, i32
    tt.store %pw, %w#1 : !tt.ptr<f32>
    tt.store %px, %a : !tt.ptr<f32>
    cf.cond_br %c, ^bb1, ^bb2(%n, %f : i32, f32)
  ^bb1:
    cf.br ^bb2(%c1, %b : i32, f32)
  ^bb2(%d: i32, %j: f32):
    %pd = tt.addptr %y, %d : !tt.ptr<f32>, i32
    tt.store %pd, %j : !tt.ptr<f32>
    %l = tt.call @helper(%d) : (i32) -> i32
    tt.return
  }
  tt.func private @helper(%n: i32) -> i32 attributes {noinline = true} {
    %0 = arith.muli %n, %n : i32
    tt.print "n" {hex = false, isSigned = array<i32: 0>} : %0 : i32
    tt.return %0 : i32
  }
}
"""

EQUAL = {
    "names": [("%px", "%pointer"), ("%s ", "%carried "), ("%s,", "%carried,")],
    "names of private functions": [("@helper", "@another")],
    "order of values": [("    %c0 = arith.constant 0 : i32\n", ""), ("%c2 = ", "%c0 = arith.constant 0 : i32\n%c2 = ")],
    "order of reads": [
        ("    %b = tt.load %py : !tt.ptr<f32>\n", ""),
        ("    %a = tt.load", "    %b = tt.load %py : !tt.ptr<f32>\n    %a = tt.load"),
    ],
    "order of what a loop carries": [
        ("iter_args(%s = %a, %k = %c2) -> (f32, i32)", "iter_args(%k = %c2, %s = %a) -> (i32, f32)"),
        ("scf.yield %t, %m : f32, i32", "scf.yield %m, %t : i32, f32"),
        ("%r#0", "%R"),
        ("%r#1", "%r#0"),
        ("%R", "%r#1"),
    ],
    "order of a branch's results": [
        ("%q:2 = scf.if %c -> (f32, i32)", "%q:2 = scf.if %c -> (i32, f32)"),
        ("scf.yield %u, %c1 : f32, i32", "scf.yield %c1, %u : i32, f32"),
        ("scf.yield %f, %r#1 : f32, i32", "scf.yield %r#1, %f : i32, f32"),
        ("%e = %q#1, %g = %q#0", "%e = %q#0, %g = %q#1"),
    ],
    "order of a block's arguments": [
        ("^bb2(%n, %f : i32, f32)", "^bb2(%f, %n : f32, i32)"),
        ("^bb2(%c1, %b : i32, f32)", "^bb2(%b, %c1 : f32, i32)"),
        ("^bb2(%d: i32, %j: f32)", "^bb2(%j: f32, %d: i32)"),
    ],
    "an expression twice": [("%u = arith.mulf %r#0, %f", "%f2 = arith.constant 1.5 : f32\n%u = arith.mulf %r#0, %f2")],
    "an expression without a use": [("    %px =", "    %dead = arith.addi %n, %c1 : i32\n    %px =")],
    "attributes of the launch": [("module {", 'module attributes {"ttg.num-warps" = 4 : i32} {')],
}

DIFFERENT = {
    "an operand": ([("arith.subf %s, %v", "arith.subf %v, %s")], "tt.store"),
    "a commutative operand": ([("arith.addi %k, %i", "arith.addi %i, %k")], "differ"),
    "an operation": ([("arith.mulf %r", "arith.divf %r")], "mulf(scf.for#0("),
    "a constant": ([("constant 1.5", "constant 2.5")], "value = 2.5"),
    "the start of a loop": ([("scf.for %i = %c0 to", "scf.for %i = %c1 to")], "scf.for"),
    "an attribute": ([("tt.load %px :", "tt.load %px {isVolatile = true} :")], "the effects"),
    "an attribute of an effect": ([('tt.print "n"', 'tt.print "m"')], "prefix"),
    "an attribute of a function": ([("%n: i32, %c: i1", "%n: i32 {tt.divisibility = 16 : i32}, %c: i1")], "arg_attrs"),
    "the order of effects": (
        [
            ("    tt.store %px, %a : !tt.ptr<f32>\n", ""),
            ("    %pw =", "    tt.store %px, %a : !tt.ptr<f32>\n    %pw ="),
        ],
        "values differ",
    ),
    "a read before a store": (
        [
            ("    %b = tt.load %py : !tt.ptr<f32>\n    tt.store %px, %b", "    tt.store %px, %f"),
            ("    %r:2 =", "    %b = tt.load %py : !tt.ptr<f32>\n    %r:2 ="),
        ],
        "differ",
    ),
    "only the place of a read": (
        [
            ("    %a = tt.load %px : !tt.ptr<f32>\n", ""),
            ("    %r:2 =", "    %a = tt.load %px : !tt.ptr<f32>\n    %r:2 ="),
        ],
        "reads (after different effects) differ",
    ),
    "a read in a branch": (
        [("%u = arith.mulf %r#0, %f : f32", "%u = tt.load %py : !tt.ptr<f32>")],
        "values differ",
    ),
    "a missing effect": ([("    tt.store %px, %a : !tt.ptr<f32>\n", "")], "nothing"),
    "what a loop yields": ([("scf.yield %t, %m", "scf.yield %s, %m")], "differ"),
    "what a branch yields": ([("scf.yield %f, %r#1", "scf.yield %r#0, %r#1")], "differ"),
    "the condition of a loop": ([("cmpi slt, %e", "cmpi sle, %e")], "predicate"),
    "the targets of a jump": (
        [("cf.cond_br %c, ^bb1, ^bb2(%n, %f : i32, f32)", "cf.cond_br %c, ^bb2(%n, %f : i32, f32), ^bb1")],
        "differ",
    ),
    "what a jump hands on": ([("^bb2(%c1, %b", "^bb2(%c2, %b")], "differ"),
    "a callee": ([("arith.muli %n, %n", "arith.addi %n, %n")], "muli"),
    "the name of the kernel": ([("@kernel", "@other")], "public functions"),
    "crossed variables of a loop": (
        [
            (
                "iter_args(%s = %a, %k = %c2) -> (f32, i32)",
                "iter_args(%s = %a, %k = %c2, %k2 = %c2) -> (f32, i32, i32)",
            ),
            ("scf.yield %t, %m : f32, i32", "%m2 = arith.addi %k2, %k : i32\nscf.yield %t, %m2, %m : f32, i32, i32"),
            ("%r:2", "%r:3"),
        ],
        "differ",
    ),
}


def _changed(changes: list[tuple[str, str]]) -> str:
    text = BASE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("changes", EQUAL.values(), ids=EQUAL)
def test_equal(changes):
    assert difference(BASE, _changed(changes)) is None
    assert difference(_changed(changes), BASE) is None


@pytest.mark.parametrize(("changes", "words"), DIFFERENT.values(), ids=DIFFERENT)
def test_different(changes, words):
    found = difference(BASE, _changed(changes))
    assert found is not None
    assert words in found
    assert difference(_changed(changes), BASE) is not None


def test_a_difference_names_both_expressions_and_their_lines():
    def located(text: str, file: str) -> str:
        lines = text.splitlines()
        marked = (
            re.sub(r"((?:arith\.subf|tt\.store) .*)$", rf'\1 loc("{file}":{n}:1)', line) for n, line in enumerate(lines)
        )
        return "\n".join(marked)

    changed = _changed([("arith.subf %s, %v", "arith.subf %v, %s")])
    found = difference(located(BASE, "stock.py"), located(changed, "ours.py"))
    assert found is not None
    assert re.search(r"1: <s> : f32", found)
    assert re.search(r"2: load\(addptr\(<y>, <i>\)\) : f32", found)
    assert re.search(r"in operand 0 of arith.subf \[stock.py:\d+\] / \[ours.py:\d+\]", found)
    assert re.search(r"in operand 1 of tt.store \[stock.py:35\] / \[ours.py:35\]", found)


@pytest.mark.parametrize(("form", "type_"), [("{}", "f32"), ("dense<{}>", "tensor<4xf32>")])
def test_bits_of_floats_count(form, type_):
    """Zero has a sign, and two numbers that are none may differ."""

    def module(value: str) -> ModuleOp:
        constant = f"%c = arith.constant {form.format(value)} : {type_}"
        printed = f'tt.print "c" {{hex = false, isSigned = array<i32: 0>}} : %c : {type_}'
        return parse_module(f"module {{ tt.func public @f() {{ {constant} {printed} tt.return }} }}")

    values = ["0.0", "-0.0", "0x7FC00000", "0x7FC00001"]
    for first in values:
        for second in values:
            assert (difference_of_modules(module(first), module(second)) is None) == (first == second)


def test_strings_are_neither_names_nor_locations():
    printed = 'tt.print "%a" {hex = false, isSigned = array<i32: 0>} : %n : i32'
    text = f"module {{ tt.func public @f(%n: i32) {{ {printed} tt.return }} }}"
    assert difference(text, text.replace("%a", "%b")) is not None
    assert difference(text, text.replace("%a", "%a loc(#loc1)")) is not None


def _live(module, effects: Effects) -> set[Operation]:
    """The operations that an effect, a terminator or a region leads to."""
    seen: set[Operation] = set()
    pending = [op for op in module.walk() if effects.is_ordered(op) and op is not module and op.name != "tt.func"]
    while pending:
        op = pending.pop()
        if op not in seen:
            seen.add(op)
            pending += [operand.owner for operand in op.operands if isinstance(operand.owner, Operation)]
            pending += [block.last_op for region in op.regions for block in region.blocks]
    return seen


def test_every_changed_operand_is_found():
    """Each operand of each operation that matters, exchanged for another value of its type."""
    count = 0
    chosen = random.Random(4)
    original = parse_module(BASE)
    operations = list(original.walk())
    live = _live(original, Effects())
    for number, op in enumerate(operations):
        if op not in live:
            continue
        for index, operand in enumerate(op.operands):
            module = parse_module(BASE)
            target = list(module.walk())[number]
            others: list[SSAValue] = [
                value
                for other in module.walk()
                if other.parent_block() is target.parent_block() and other.is_before_in_block(target)
                for value in other.results
                if value.type == operand.type and value is not target.operands[index]
            ]
            if others:
                target.operands[index] = chosen.choice(others)
                assert difference_of_modules(original, module), (op, index)
                count += 1
    assert count > 10


def test_every_changed_integer_attribute_is_found():
    original = parse_module(BASE)
    live = _live(original, Effects())
    count = 0
    for number, op in enumerate(original.walk()):
        for name, attribute in op.properties.items():
            if op in live and isinstance(attribute, IntegerAttr):
                module = parse_module(BASE)
                target = list(module.walk())[number]
                target.properties[name] = IntegerAttr(1 - attribute.value.data & 1, attribute.type)
                assert difference_of_modules(original, module), (op, name)
                count += 1
    assert count >= 8
