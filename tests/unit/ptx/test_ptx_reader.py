"""The grammar of PTX that Triton emits, and errors at their lines."""

import pytest

from tests.unit.ptx.snippets import kernel, line_of
from tlx_xdsl.ptx import PtxError
from tlx_xdsl.ptx.program import prepare
from tlx_xdsl.ptx.read.reader import read
from tlx_xdsl.ptx.read.syntax import Address, Number, Pair, Place, Register, Symbol, Vector

pytestmark = pytest.mark.quick


def instructions(body, parameters="*"):
    return read(kernel(body, parameters)).functions["test"].instructions


def test_operands():
    *_, made, _ = instructions("    @!%p1 ld.global.v2.b32 {%r1, _}, [%rd1+-8];")
    assert (made.opcode, made.negated, made.guard) == ("ld.global.v2.b32", True, Register(1))
    vector, address = made.operands
    assert isinstance(vector, Vector)
    assert vector.items[1] == Symbol("_")
    assert isinstance(address, Address)
    assert address.offset == -8


def test_coordinates_pairs_and_floats():
    body = """
    elect.sync %r1|%p1, -1;
    mov.f32 %f1, 0f3F800000;
    cp.async.bulk.prefetch.tensor.2d.L2.global [%rd0, {%r1, %r2}];"""
    *_, pair, constant, copy, _ = instructions(body)
    assert isinstance(pair.operands[0], Pair)
    assert constant.operands[1] == Number(0x3F800000, 32)
    assert isinstance(copy.operands[0], Address)
    assert isinstance(copy.operands[0].parts[0], Vector)


def test_blocks_have_names_of_their_own():
    body = """
    {
    .reg .pred done;
    again:
    setp.eq.u32 done, %r0, %r0;
    @!done bra.uni again;
    }
    {
    .reg .pred done;
    again:
    setp.eq.u32 done, %r0, %r0;
    @!done bra.uni again;
    }"""
    function = read(kernel(body)).functions["test"]
    first, second = (each for each in function.instructions if each.name == "bra")
    assert first.guard != second.guard
    targets = [function.labels[each.operands[0].name] for each in (first, second)]
    assert targets[1] - targets[0] == 2


def test_places_of_python_and_assembly():
    body = """
    .loc 1 7 3
    add.s32 %r1, %r0, 1;
    .loc 1 9 5, function_name $L__info_string0, inlined_at 1 20 2
    // begin inline asm
    .loc 1 13 5
    add.s32 %r1, %r0, 2;
    // end inline asm"""
    *_, plain, assembly, _ = instructions(body)
    assert plain.place == Place(1, 7, 3)
    # LLVM counts lines within inline assembly: they say nothing.
    assert assembly.place == Place(1, 9, 5, Place(1, 20, 2))


def all_code(text):
    """Make the code of all blocks."""
    program = prepare(read(text, "file.ptx"))
    for block in program.blocks:
        program.function_of(block.number)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("frobnicate.b32 %r1, %r2;", "the instruction 'frobnicate.b32' is not known"),
        ("add.rn.bf16x7 %r1, %r2, %r3;", "the instruction 'add.rn.bf16x7' is not known"),
        ("add.s32 %r1, %r2;", "it has 2 operands, not 3"),
        ("add.s32 %r1, %r2, %nothing;", "the name '%nothing' is not declared"),
        ("bra nowhere;", "there is no label 'nowhere'"),
        ("@%q1 bra nowhere;", "the register '%q1' is not declared"),
        ("add.s32 %r1, %r2, %rd1;", None),
        ("add.s64 %rd1, %rd2, %r1;", "the register '%r1' has 32 bits, this instruction takes 64"),
        ("ld.global.v2.b32 {%r1}, [%rd1];", "it has 1 results, not 2"),
        (".frob 3;", "the directive '.frob' is not known"),
        ("add.s32 %r1 %r2;", "expected ',' or ';', found '%r2'"),
        ("§;", "PTX has no character '§' here"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_named_with_its_line(line, message):
    text = kernel(f"    {line}")
    if message is None:
        # A wider register is taken in part, as `cvt` and stores do.
        prepare(read(text))
        return
    with pytest.raises(PtxError) as error:
        all_code(text)
    assert message in str(error.value)
    assert str(error.value).startswith(f"file.ptx:{line_of(text, line)}:")


@pytest.mark.parametrize("text", ["", "hello", ".version 8.7", "{", ".visible .entry f(", "\x00"])
def test_what_is_no_ptx(text):
    with pytest.raises(PtxError):
        prepare(read(text))
