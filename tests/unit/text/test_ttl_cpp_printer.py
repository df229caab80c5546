"""`emitc` as C++: expressions with the parentheses that they need, names, statements, lines of the user's file."""

from textwrap import dedent, indent

import pytest
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.dialects.emitc import EmitC_CallOpaqueOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.cpp import cpp_profile, cpp_text, print_cpp
from tlx_xdsl.ttl.cpp.printer import Names
from tlx_xdsl.ttl.dialects.emitc import (
    AddOp,
    BitwiseAndOp,
    BitwiseOrOp,
    CastOp,
    CmpOp,
    ConditionalOp,
    DivOp,
    FuncOp,
    MulOp,
    RemOp,
    ReturnOp,
    SubOp,
)

pytestmark = pytest.mark.quick


def printed(body: str) -> str:
    """The statements of a function."""
    text = "emitc.func @kernel_main() {\n" + indent(dedent(body), "  ") + "\n  emitc.return\n}"
    first, *lines, last = cpp_text(parse_module(text), lines=False).splitlines()
    assert (first, last) == ("void kernel_main() {", "}")
    return dedent("\n".join(lines))


OPERATORS = {op.OPERATOR: op for op in (AddOp, SubOp, MulOp, DivOp, RemOp, BitwiseAndOp, BitwiseOrOp)}
Tree = str | tuple[object, ...]


def built(tree: Tree, ops: list[Operation], names: dict[str, SSAValue]) -> SSAValue:
    """The value of a tree of operators, as operations."""
    if isinstance(tree, str):
        return names[tree]
    operator, *operands = tree
    values = [built(each, ops, names) for each in operands]  # type: ignore[arg-type]
    match operator:
        case "cast":
            op = CastOp(values[0], i64)
        case "?":
            op = ConditionalOp(*values, i32)
        case "<":
            op = CmpOp("<", *values, i1)
        case _:
            op = OPERATORS[operator](*values, i32)  # type: ignore[index]
    ops.append(op)
    return op.results[0]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (("*", ("+", "a", "b"), "c"), "(a + b) * c"),
        (("+", "c", ("*", "a", "b")), "c + a * b"),
        (("+", "c", ("+", "a", "b")), "c + a + b"),
        (("+", "c", ("-", "a", "b")), "c + a - b"),
        (("-", "c", ("-", "a", "b")), "c - (a - b)"),
        (("-", ("-", "a", "b"), "c"), "a - b - c"),
        (("/", "c", ("*", "a", "b")), "c / (a * b)"),
        (("*", "c", ("/", "a", "b")), "c * (a / b)"),
        (("%", ("/", "a", "b"), "c"), "a / b % c"),
        (("|", ("&", "a", "b"), "c"), "(a & b) | c"),
        (("&", ("+", "a", "b"), "c"), "(a + b) & c"),
        (("<", ("+", "a", "b"), "c"), "a + b < c"),
        (("&", ("<", "a", "b"), ("<", "b", "c")), "(a < b) & (b < c)"),
        (("?", ("<", "a", "b"), "b", "c"), "a < b ? b : c"),
        (("+", ("?", "a", "b", "c"), "a"), "(a ? b : c) + a"),
        (("+", ("cast", ("+", "a", "b")), "c"), "(int64_t)(a + b) + c"),
        (("cast", ("+", "a", "b")), "a + b"),
    ],
)
def test_expressions(tree: Tree, expected: str) -> None:
    """Print an expression as an argument; a parameter converts integers itself."""
    ops: list[Operation] = []
    names: dict[str, SSAValue] = {}
    for name in "abc":
        ops.append(EmitC_CallOpaqueOp(f"get_{name}", [], [i32]))
        names[name] = ops[-1].results[0]
        names[name].name_hint = name
    ops.append(EmitC_CallOpaqueOp("keep", [built(tree, ops, names)], []))
    text = cpp_text(FuncOp("f", Region(Block([*ops, ReturnOp()]))))
    assert f"  keep({expected});" in text.splitlines()


def test_a_value_with_two_uses_has_a_name() -> None:
    assert printed("""
        %l1 = emitc.call_opaque "get_write_ptr"() {args = [0 : i32]} : () -> ui32
        %page = "emitc.constant"() <{value = 4096 : i32}> : () -> i32
        %next = emitc.add %l1, %page : (ui32, i32) -> ui32
        emitc.call_opaque "use"(%next, %next) : (ui32, ui32) -> ()
        %once = emitc.add %next, %page : (ui32, i32) -> ui32
        emitc.call_opaque "use"(%once, %page) : (ui32, i32) -> ()
    """) == dedent("""\
        const uint32_t l1 = get_write_ptr(0);
        const uint32_t next = l1 + 4096;
        use(next, next);
        use(next + 4096, 4096);""")


def test_statements() -> None:
    assert printed("""
        %0 = "emitc.constant"() <{value = 0 : index}> : () -> !emitc.size_t
        %3 = "emitc.constant"() <{value = 3 : index}> : () -> !emitc.size_t
        %1 = "emitc.constant"() <{value = 1 : index}> : () -> !emitc.size_t
        %sum = "emitc.variable"() : () -> !emitc.lvalue<i32>
        emitc.for %i = %0 to %3 step %1 : !emitc.size_t {
          %c = emitc.cmp "==" %i, %0 : (!emitc.size_t, !emitc.size_t) -> i1
          emitc.if %c {
            emitc.call_opaque "f"() {template_args = [#emitc.opaque<"A::B">, 2 : i32], args = [1.5 : f32]} : () -> ()
          } else {
            %old = emitc.load %sum : !emitc.lvalue<i32> -> i32
            %n = emitc.cast %i : !emitc.size_t to i32
            %new = emitc.add %old, %n : (i32, i32) -> i32
            emitc.assign %new, %sum : i32, !emitc.lvalue<i32>
          }
        }
        emitc.verbatim "// done"
    """) == dedent("""\
        int32_t sum;
        for (size_t i = 0; i < 3; i += 1) {
          if (i == 0) {
            f<A::B, 2>(1.5f);
          } else {
            const int32_t old = sum;
            sum = old + (int32_t)i;
          }
        }
        // done""")


def test_the_bound_of_a_loop_that_is_a_choice() -> None:
    """C++ would read it as a choice of the comparison without parentheses."""
    assert "i < (n < 2 ? n : 2);" in printed("""
        %0 = "emitc.constant"() <{value = 0 : index}> : () -> !emitc.size_t
        %2 = "emitc.constant"() <{value = 2 : index}> : () -> !emitc.size_t
        %n = emitc.call_opaque "f"() : () -> !emitc.size_t
        %c = emitc.cmp "<" %n, %2 : (!emitc.size_t, !emitc.size_t) -> i1
        %m = emitc.conditional %c, %n, %2 : (i1, !emitc.size_t, !emitc.size_t) -> !emitc.size_t
        emitc.for %i = %0 to %m step %2 : !emitc.size_t {
          emitc.call_opaque "g"(%i) : (!emitc.size_t) -> ()
        }
    """)


def test_files_and_lines() -> None:
    text = """
        emitc.file "a.cpp" {
          emitc.include <"cstdint">
          emitc.include "api/compute/common.h"
          emitc.func @kernel_main() {
            emitc.call_opaque "f"() : () -> () loc("add.py":7:1)
            emitc.call_opaque "g"() : () -> () loc("add.py":8:1)
            emitc.call_opaque "h"() : () -> () loc("add.py":8:5)
            emitc.return
          }
        }
        emitc.file "b.cpp" {
          emitc.verbatim "// nothing"
        }
    """
    files = print_cpp(parse_module(text))
    assert files["b.cpp"] == "// nothing\n"
    assert files["a.cpp"] == dedent("""\
        #include <cstdint>
        #include "api/compute/common.h"
        void kernel_main() {
        #line 7 "add.py"
          f();
          g();
        #line 8 "add.py"
          h();
        }
        """)
    assert "#line" not in print_cpp(parse_module(text), lines=False)["a.cpp"]


def test_names() -> None:
    names = Names(["cb_wait_front"])
    given = [
        names.new(hint, "v")
        for hint in ("a", "a", None, "for", "cb_wait_front", "3x", "_x", "x__y", "size", "ä", "MAIN")
    ]
    assert given == ["a", "a_1", "v", "v_1", "cb_wait_front_1", "v_2", "v_3", "v_4", "size", "v_5", "MAIN_1"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("-0.0 : f32", "-0.0f"),
        ("0.1 : f32", "0.1f"),
        ("1.0e+30 : f32", "1e+30f"),
        ("0x7F800000 : f32", "__builtin_inff()"),
    ],
)
def test_numbers(value: str, expected: str) -> None:
    assert f"f({expected});" in printed(f'emitc.call_opaque "f"() {{args = [{value}]}} : () -> ()')


def test_what_is_not_emitc() -> None:
    with pytest.raises(
        CompilationError, match=r"expected an operation of emitc, found arith.constant: run convert-ttkernel"
    ):
        printed("%0 = arith.constant 1 : i32")


def test_unknown_profile() -> None:
    with pytest.raises(InputError, match=r"expected one of the profiles 0\.81, 2025-12, 0\.81-objects, found '0\.54'"):
        cpp_profile("0.54")
