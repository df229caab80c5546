"""Text that is made to hurt: each is refused at its place, in little time and memory."""

import re
import time

import pytest

from tlx_xdsl import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import ascii_name

pytestmark = pytest.mark.quick

TMEM = "#c = #ttng.tensor_memory_encoding<blockM = 128, blockN = {}, colStride = 1>\nmodule attributes {{x = #c}} {{}}"
SHARED = (
    "#s = #ttg.nvmma_shared<{{swizzlingByteWidth = {}, transposed = false, elementBitWidth = {}}}>\n"
    "module attributes {{x = #s}} {{}}"
)
BLOCKED = "#ttg.blocked<{sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]}>"


def bomb(kind: str, levels: int) -> str:
    lines = ["#a0 = [1, 1]" if kind == "#" else "!a0 = tuple<i32>"]
    lines += [
        f"#a{n} = [#a{n - 1}, #a{n - 1}]" if kind == "#" else f"!a{n} = tuple<!a{n - 1}, !a{n - 1}>"
        for n in range(1, levels)
    ]
    return "\n".join(lines) + f"\nmodule attributes {{x = {kind}a{levels - 1}}} {{}}"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (bomb("#", 40), 17, "the aliases of this text stand for more than"),
        (bomb("!", 40), None, "the aliases of this text stand for more than"),
        ("#a = #a\nmodule attributes {x = #a} {}", 2, "the alias '#a' is part of its own definition"),
        ("#a = [#b]\n#b = [#a]\nmodule {}", None, "is part of its own definition"),
        ("module {" * 2000 + "}" * 2000, 1, "nested too deeply"),
        ("module attributes {x = " + "[" * 3000 + "]" * 3000 + "} {}", 1, "nested too deeply"),
        ("%0 = arith.constant dense<0> : tensor<1099511627776xi32>", 1, "a dense literal has at most 16,777,216"),
        ("%0 = arith.constant 1 : i99999999999", 1, "an integer has at most 16,777,215 bits"),
        ("module attributes {x = array<i128: 24>} {}", 1, "xDSL can't read this"),
        (TMEM.format("nan"), 1, "the parameter 'blockN' of 'ttng.tensor_memory_encoding' must be an integer"),
        (TMEM.format("true"), 1, "must be an integer"),
        (SHARED.format("nan", 16), 1, "the parameter 'swizzlingByteWidth' of 'ttg.nvmma_shared' must be an integer"),
        (SHARED.format(128, BLOCKED), 1, "the parameter 'elementBitWidth' of 'ttg.nvmma_shared' must be an integer"),
        (
            "#p = #ttg.padded_shared<[64:+4] {order = [3], shape = [256]}>\nmodule {}",
            1,
            "name each of the 1 dimensions once",
        ),
        ("#p = #ttg.padded_shared<[64:+4] {order = [0], shape = [x]}>\nmodule {}", 1, "must be a list of integers"),
    ],
)
def test_located_refusals(text, line, message):
    before = time.process_time()
    with pytest.raises(CompilationError) as caught:
        parse_module(text, filename="hostile.mlir")
    assert time.process_time() - before < 5
    assert message in caught.value.message
    assert caught.value.location is not None
    assert line in (None, caught.value.location.line)


def test_a_chain_of_aliases_is_no_bomb():
    chain = ['#l0 = loc("f.py":1:1)', *(f"#l{n} = loc(callsite(#l{n - 1} at #l0))" for n in range(1, 60))]
    text = "\n".join(chain) + "\nmodule {\n" + "".join(f"%{n} = arith.constant 1 : i32 loc(#l59)\n" for n in range(200))
    module = parse_module(text + "}", filename="chain.mlir")
    assert print_module(module).count("callsite") == 59


def test_a_module_without_a_line_of_its_own_begins_where_the_text_does():
    module = parse_module("tt.func @f() { tt.return }", filename="f.mlir")
    assert re.search(r'loc\("f\.mlir":1:1\)', print_module(module))


@pytest.mark.parametrize(
    ("name", "printed"), [("größe", "grC3B6C39Fe"), ("a b", "a_b"), ("数", "E695B0"), ("plain.$-_9", "plain.$-_9")]
)
def test_names_are_those_of_mlir(name, printed):
    assert ascii_name(name) == printed


def test_names_of_values_can_be_read_again():
    module = parse_module("tt.func @f(%x: i32, %y: i32) { tt.return }")
    arguments = next(iter(module.body.block.ops)).regions[0].block.args
    for argument in arguments:
        argument.name_hint = "größe"
    text = print_module(module)
    assert "%grC3B6C39Fe: i32" in text
    assert "%grC3B6C39Fe_1: i32" in text
    assert print_module(parse_module(text)) == text


def test_the_same_text_of_a_type_is_the_same_type():
    text = (
        "#b = #ttg.blocked<{sizePerThread=[1], threadsPerWarp=[32], warpsPerCTA=[4], order=[0]}>\n"
        "tt.func @f(%x: tensor<8xi32, #b>, %y: tensor<8xi32, #b>, %z: tensor<8xi32 , #b>, %p: !tt.ptr<f32>) {\n"
        "  %0 = arith.addi %x, %y : tensor<8xi32, #b> // a comment\n"
        "  %1:2 = \"test.op\"(%0) : (tensor<8xi32, #b>) -> (tensor<8xi32>, !tt.ptr<f32>)\n  tt.return\n}"
    )  # fmt: skip
    from tlx_xdsl.dialects.registry import make_context

    context = make_context()
    context.allow_unregistered = True
    function = next(iter(parse_module(text, context=context).body.block.ops))
    first, second, third, _ = (argument.type for argument in function.regions[0].block.args)
    assert first is second
    assert first == third
