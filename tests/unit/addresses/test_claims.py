"""Claims about small kernels, and above all claims that must not be made."""

# covers: tlx-annotate-program-addresses

from __future__ import annotations

import pytest

from tlx_xdsl.addresses import (
    Access,
    Classification,
    LaunchFacts,
    analyse_program_addresses,
)
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

pytestmark = pytest.mark.quick

ARGUMENTS = "%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %s: i32 {tt.divisibility = 16 : i32}"


def accesses(
    body: str, facts: LaunchFacts | None = None, *, arguments: str = ARGUMENTS, rest: str = "", strict: bool = False
) -> tuple[Access, ...]:
    """The accesses of a kernel; `%x` and `%y` are its program ids, `%cN` constants."""
    constants = "\n".join(f"%c{number} = arith.constant {number} : i32" for number in (0, 1, 2, 3, 7, 8, 64, 100, 128))
    ids = "%x = tt.get_program_id x : i32\n%y = tt.get_program_id y : i32"
    text = f"tt.func public @f({arguments}) {{\n{constants}\n{ids}\n{body}\ntt.return\n}}\n{rest}"
    module = parse_module(text)
    verify_module(module)
    return analyse_program_addresses(module, facts, strict=strict).accesses


def access(offset: str, facts: LaunchFacts | None = None, **more) -> Access:
    """The claim about a load at the offset `%o`, which `offset` computes as an i32."""
    (found,) = accesses(
        f"{offset}\n%q = tt.addptr %p, %o : !tt.ptr<f32>, i32\n%v = tt.load %q : !tt.ptr<f32>", facts, **more
    )
    return found


def binary(name: str, left: str, right: str) -> str:
    return f"%o = arith.{name} {left}, {right} : i32"


# Classes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "expected", "form"),
    [
        (binary("addi", "%n", "%c7"), "PID_INDEPENDENT", "4*%n + 28"),
        (binary("muli", "%x", "%c8"), "PID_AFFINE", "32*pid_x"),
        (binary("muli", "%x", "%s"), "PID_AFFINE", "4*%s*pid_x"),
        (f"%1 = arith.muli %y, %c8 : i32\n{binary('addi', '%1', '%x')}", "PID_MULTI_AXIS", "4*pid_x + 32*pid_y"),
        (binary("divsi", "%x", "%c8"), "PID_QUASI_AFFINE", "4*(pid_x // 8)"),
        (binary("remsi", "%x", "%c8"), "PID_QUASI_AFFINE", "4*(pid_x % 8)"),
        (binary("minsi", "%x", "%n"), "PID_QUASI_AFFINE", "4*min(pid_x, %n)"),
        (binary("muli", "%x", "%x"), "PID_NONLINEAR", "4*pid_x**2"),
        (binary("muli", "%x", "%y"), "PID_NONLINEAR", "4*pid_x*pid_y"),
        (binary("xori", "%x", "%c7"), "PID_NONLINEAR", "4*xor(pid_x, 7)"),
    ],
)
def test_class_and_offset(offset: str, expected: str, form: str) -> None:
    found = access(offset)
    assert found.classification is Classification(expected)
    assert str(found.offset) == form


def test_quotients_of_what_divides_are_affine() -> None:
    found = access(f"%1 = arith.muli %x, %c128 : i32\n{binary('divsi', '%1', '%c8')}")
    assert str(found.offset) == "64*pid_x"
    found = access(f"%1 = arith.muli %x, %c128 : i32\n%2 = arith.addi %1, %c7 : i32\n{binary('remsi', '%2', '%c8')}")
    assert found.classification is Classification.PID_INDEPENDENT
    assert str(found.offset) == "28"


# Wrap-around ---------------------------------------------------------------------------------------------------------


def test_claim_holds_while_nothing_wraps() -> None:
    found = access(binary("muli", "%x", "%c128"))
    assert [str(condition) for condition in found.conditions] == ["pid_x <= 16777215"]


def test_grid_decides_conditions() -> None:
    offset = binary("muli", "%x", "%c128")
    assert access(offset, LaunchFacts(grid=(1 << 24, 1, 1))).conditions == ()
    found = access(offset, LaunchFacts(grid=((1 << 24) + 1, 1, 1)))
    assert found.classification is Classification.UNKNOWN
    assert found.reason == "the offset 'o' may wrap around in 32 bits"


def test_strict_takes_conditional_claims_back() -> None:
    assert access(binary("muli", "%x", "%c128"), strict=True).classification is Classification.UNKNOWN
    # Grids have at most 65535 programs along y.
    assert access(binary("muli", "%y", "%c128"), strict=True).classification is Classification.PID_AFFINE


def test_what_wraps_for_the_second_program_is_unknown() -> None:
    body = f"%big = arith.constant 2147483647 : i32\n%1 = arith.muli %x, %big : i32\n{binary('addi', '%1', '%c8')}"
    assert access(body).classification is Classification.UNKNOWN


def test_wrap_that_is_undone_is_none() -> None:
    # In 32 bits, x * 2^31 * 2 is 0.
    body = f"%big = arith.constant -2147483648 : i32\n%1 = arith.muli %x, %big : i32\n{binary('addi', '%1', '%1')}"
    assert access(body, LaunchFacts(grid=(1, 1, 1))).classification is not Classification.UNKNOWN
    assert access(body, LaunchFacts(grid=(5, 1, 1))).classification is Classification.UNKNOWN
    body = f"%1 = arith.addi %n, %c8 : i32\n{binary('subi', '%1', '%c8')}"
    assert access(body).conditions == ()


def test_arguments_decide_conditions() -> None:
    offset = binary("muli", "%x", "%n")
    facts = LaunchFacts(grid=(1000, 1, 1), arguments={"n": 2_000_000})
    assert access(offset, facts).conditions == ()
    facts = LaunchFacts(grid=(1000, 1, 1), arguments={"n": 3_000_000})
    assert access(offset, facts).classification is Classification.UNKNOWN


def test_negative_numerators_round_towards_zero() -> None:
    found = access(f"%1 = arith.subi %x, %c100 : i32\n{binary('divsi', '%1', '%c8')}")
    assert str(found.offset) == "4*truncdiv(pid_x - 100, 8)"
    found = access(f"%1 = arith.subi %x, %c100 : i32\n{binary('remsi', '%1', '%c8')}")
    assert str(found.offset) == "4*truncmod(pid_x - 100, 8)"


def test_argument_of_unknown_sign_makes_a_condition() -> None:
    found = access(binary("divsi", "%n", "%c8"))
    assert [str(condition) for condition in found.conditions] == ["%n >= 0"]


def test_promises_bound_ranges() -> None:
    body = (
        "%a = arith.cmpi slt, %x, %c100 : i32\nllvm.intr.assume %a : i1\n"
        "%b = arith.cmpi sge, %n, %c0 : i32\nllvm.intr.assume %b : i1\n"
        "%big = arith.constant 10000000 : i32\n%d = arith.cmpi sle, %n, %big : i32\nllvm.intr.assume %d : i1\n"
    )
    assert access(body + binary("muli", "%x", "%n")).conditions == ()
    # An assumption under a condition is none elsewhere.
    body = (
        "%a = arith.cmpi slt, %x, %c100 : i32\n%t = arith.cmpi slt, %n, %c8 : i32\n"
        "scf.if %t {\nllvm.intr.assume %a : i1\n}\n"
    )
    assert access(body + binary("muli", "%x", "%c128")).conditions != ()


# Memory --------------------------------------------------------------------------------------------------------------


def test_address_from_memory_is_unknown() -> None:
    arguments = "%p: !tt.ptr<f32>, %i: !tt.ptr<i32>"
    _, found = accesses(
        "%o = tt.load %i : !tt.ptr<i32>\n%q = tt.addptr %p, %o : !tt.ptr<f32>, i32\n%v = tt.load %q : !tt.ptr<f32>",
        arguments=arguments,
    )
    assert found.classification is Classification.UNKNOWN
    assert found.reason == "it depends on 'o', which comes from memory or is not known"
    assert found.offset is None
    assert found.base is None


@pytest.mark.parametrize(
    "source",
    [
        '%o = tt.elementwise_inline_asm "mov.u32 $0, %ctaid.x;" {constraints = "=r,r", packed_element = 1 : i32, '
        "pure = true} %n : i32 -> i32",
        "%o = tlx.cluster_cta_rank",
    ],
)
def test_what_registers_hold_is_unknown(source: str) -> None:
    assert access(source).classification is Classification.UNKNOWN


def test_constants_that_differ_between_elements_are_not_regular() -> None:
    (found,) = accesses(
        "%o = arith.constant dense<[0, 5, 7, 1]> : tensor<4xi32>\n"
        "%b = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>\n"
        "%q = tt.addptr %b, %o : tensor<4x!tt.ptr<f32>>, tensor<4xi32>\n%v = tt.load %q : tensor<4x!tt.ptr<f32>>"
    )
    assert found.classification is Classification.PID_INDEPENDENT
    assert found.dimensions[0].stride is None
    assert found.dimensions[0].constancy == 1
    assert not found.is_coalesced


def test_unsigned_arguments() -> None:
    found = access(binary("addi", "%n", "%c0"), LaunchFacts(arguments={"n": (1 << 32) - 8}))
    assert str(found.offset) == "-32"


def test_loaded_value_that_cancels_does_not_matter() -> None:
    arguments = "%p: !tt.ptr<f32>, %i: !tt.ptr<i32>"
    _, found = accesses(
        "%l = tt.load %i : !tt.ptr<i32>\n%1 = arith.addi %l, %x : i32\n%o = arith.subi %1, %l : i32\n"
        "%q = tt.addptr %p, %o : !tt.ptr<f32>, i32\n%v = tt.load %q : !tt.ptr<f32>",
        arguments=arguments,
    )
    assert str(found.offset) == "4*pid_x"


def test_one_of_two_pointers_is_unknown() -> None:
    (found,) = accesses(
        "%t = arith.cmpi slt, %x, %c3 : i32\n%q = arith.select %t, %p, %r : !tt.ptr<f32>\n"
        "%v = tt.load %q : !tt.ptr<f32>",
        arguments="%p: !tt.ptr<f32>, %r: !tt.ptr<f32>",
    )
    assert found.classification is Classification.UNKNOWN


# Control flow --------------------------------------------------------------------------------------------------------


def test_pointer_that_moves_in_a_loop() -> None:
    (found,) = accesses(
        "%b = tt.addptr %p, %x : !tt.ptr<f32>, i32\n"
        "%r = scf.for %i = %c0 to %n step %c8 iter_args(%q = %b) -> (!tt.ptr<f32>) : i32 {\n"
        "%v = tt.load %q : !tt.ptr<f32>\n%m = tt.addptr %q, %s : !tt.ptr<f32>, i32\nscf.yield %m : !tt.ptr<f32>\n}"
    )
    assert str(found.offset) == "4*pid_x + 4*%s*iteration_i"
    (term,) = found.loops
    assert str(term.stride) == "4*%s"
    assert str(term.trips) == "max(0, ((%n + 7) // 8))"
    assert found.conditional


def test_value_after_a_loop() -> None:
    found = access(
        "%r = scf.for %i = %c0 to %c7 step %c2 iter_args(%a = %x) -> (i32) : i32 {\n"
        "%b = arith.addi %a, %c8 : i32\nscf.yield %b : i32\n}\n%o = arith.addi %r, %c1 : i32"
    )
    assert str(found.offset) == "4*pid_x + 132"


def test_value_that_a_loop_changes_unevenly_depends_on_its_parts_only() -> None:
    loop = (
        "%r = scf.for %i = %c0 to %c7 step %c2 iter_args(%a = START) -> (i32) : i32 {\n"
        "%q = tt.addptr %p, %a : !tt.ptr<f32>, i32\n%v = tt.load %q : !tt.ptr<f32>\n"
        "%b = arith.muli %a, %c3 : i32\nscf.yield %b : i32\n}"
    )
    (found,) = accesses(loop.replace("START", "%n"))
    assert found.classification is Classification.PID_INDEPENDENT
    (found,) = accesses(loop.replace("START", "%x"))
    assert found.classification is Classification.PID_NONLINEAR


def test_unknown_of_an_iteration_does_not_hide_the_program() -> None:
    # Of a product's high half nothing is known but what it depends on: in the next iteration, the program.
    _, found = accesses(
        "%r:2 = scf.for %i = %c0 to %c7 step %c2 iter_args(%a = %n, %b = %x) -> (i32, i32) : i32 {\n"
        "%q1 = tt.addptr %p, %b : !tt.ptr<f32>, i32\n%v1 = tt.load %q1 : !tt.ptr<f32>\n"
        "%q = tt.addptr %p, %a : !tt.ptr<f32>, i32\n%v = tt.load %q : !tt.ptr<f32>\n"
        "%h = tt.mulhiui %b, %n : i32\n%m = arith.addi %b, %c1 : i32\nscf.yield %h, %m : i32, i32\n}"
    )
    assert found.classification is Classification.PID_NONLINEAR


def test_persistent_loop() -> None:
    (found,) = accesses(
        "%w = tt.get_num_programs x : i32\n"
        "%r = scf.while (%t = %x) : (i32) -> i32 {\n%go = arith.cmpi slt, %t, %n : i32\nscf.condition(%go) %t : i32\n"
        "} do {\n^bb0(%u: i32):\n%o = arith.muli %u, %c64 : i32\n%q = tt.addptr %p, %o : !tt.ptr<f32>, i32\n"
        "%v = tt.load %q : !tt.ptr<f32>\n%m = arith.addi %u, %w : i32\nscf.yield %m : i32\n}",
        LaunchFacts(grid=(132, 1, 1), arguments={"n": 1_000_000}),
    )
    assert found.classification is Classification.PID_AFFINE
    assert str(found.offset) == "256*pid_x + 33792*iteration_1"
    assert found.conditions == ()


def test_loop_that_wraps_around_before_its_bound() -> None:
    (found,) = accesses(
        "%most = arith.constant 2147483647 : i32\n"
        "%r = scf.while (%t = %x) : (i32) -> i32 {\n%go = arith.cmpi slt, %t, %most : i32\n"
        "scf.condition(%go) %t : i32\n"
        "} do {\n^bb0(%u: i32):\n%q = tt.addptr %p, %u : !tt.ptr<f32>, i32\n"
        "%v = tt.load %q : !tt.ptr<f32>\n%m = arith.addi %u, %c8 : i32\nscf.yield %m : i32\n}",
        LaunchFacts(grid=(132, 1, 1)),
    )
    assert found.classification is Classification.UNKNOWN


def test_calls_are_distinguished() -> None:
    rest = (
        "tt.func private @g(%p: !tt.ptr<f32>, %i: i32) -> i32 {\n%q = tt.addptr %p, %i : !tt.ptr<f32>, i32\n"
        "%v = tt.load %q : !tt.ptr<f32>\n%b = tt.bitcast %v : f32 -> i32\ntt.return %b : i32\n}"
    )
    first, second, last = accesses(
        "%a = tt.call @g(%p, %x) : (!tt.ptr<f32>, i32) -> i32\n%b = tt.call @g(%p, %c7) : (!tt.ptr<f32>, i32) -> i32\n"
        "%o = arith.subi %a, %b : i32\n%q = tt.addptr %p, %o : !tt.ptr<f32>, i32\n%v = tt.load %q : !tt.ptr<f32>",
        rest=rest,
    )
    assert str(first.offset) == "4*pid_x"
    assert str(second.offset) == "28"
    assert len(first.calls) == 1
    # The two results are not the same number, though the same operation gives them.
    assert last.classification is Classification.UNKNOWN


def test_blocks_after_an_early_return() -> None:
    body = (
        "%t = arith.cmpi sge, %x, %n : i32\ncf.cond_br %t, ^end, ^go(%x, %c8 : i32, i32)\n"
        "^go(%a: i32, %b: i32):\n%q = tt.addptr %p, %a : !tt.ptr<f32>, i32\n%v = tt.load %q : !tt.ptr<f32>\n"
        "%m = arith.addi %a, %b : i32\nAGAIN\n^end:"
    )
    (found,) = accesses(body.replace("AGAIN", "cf.br ^end"))
    assert str(found.offset) == "4*pid_x"
    assert found.conditional
    # Where it comes around again, it is another number.
    (found,) = accesses(body.replace("AGAIN", "cf.cond_br %t, ^end, ^go(%m, %b : i32, i32)"))
    assert found.classification is Classification.UNKNOWN


def test_recursion_ends() -> None:
    rest = "tt.func private @g(%i: i32) -> i32 {\n%r = tt.call @g(%i) : (i32) -> i32\ntt.return %r : i32\n}"
    found = access("%o = tt.call @g(%x) : (i32) -> i32", rest=rest)
    assert found.classification is Classification.UNKNOWN
