"""Traps of xDSL 0.74 and 0.75 that we close: each test here fails with xDSL's own parser, printer, arith or driver."""

import math
import re
import time

import pytest
from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, TensorType, UnknownLoc, f16, f32, i1

from tlx_xdsl import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

pytestmark = pytest.mark.quick


def only(module, name):
    (op,) = [op for op in module.walk() if op.name == name]
    return op


def in_function(body, arguments="%x: tensor<4xf32>, %i: tensor<4xi32>, %c: tensor<4xi1>"):
    return f"tt.func @k({arguments}) {{\n{body}\ntt.return\n}}\n"


# --- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("literal", "element", "bits"),
    [
        ("0xFF800000", f32, 0xFF800000),
        ("0x7F800000", f32, 0x7F800000),
        ("0x7FC00001", f32, 0x7FC00001),
        ("0xFC00", f16, 0xFC00),
    ],
)
def test_hexadecimal_floats_are_bit_patterns(literal, element, bits):
    module = parse_module(in_function(f"%0 = arith.constant dense<{literal}> : tensor<4x{element}>"))
    data = only(module, "arith.constant").value.data.data
    size = element.compile_time_size
    assert data == bits.to_bytes(size, "little") * 4
    assert only(parse_module(print_module(module)), "arith.constant").value.data.data == data


def test_hexadecimal_floats_stand_beside_numbers():
    module = parse_module(in_function("%0 = arith.constant dense<[1.0, 0xFF800000, -2.5, 0.0]> : tensor<4xf32>"))
    assert list(only(module, "arith.constant").value.iter_values()) == [1.0, -math.inf, -2.5, 0.0]


# --- arith on tensors -----------------------------------------------------------------------------------------------


def test_a_comparison_of_tensors_is_a_tensor():
    module = parse_module(in_function("%0 = arith.cmpi slt, %i, %i : tensor<4xi32>"))
    verify_module(module)
    assert only(module, "arith.cmpi").results[0].type == TensorType(i1, [4])
    module = parse_module(in_function("%0 = arith.cmpf olt, %x, %x : tensor<4xf32>"))
    assert only(module, "arith.cmpf").results[0].type == TensorType(i1, [4])


@pytest.mark.parametrize(
    "operation",
    [
        "arith.select %c, %x, %x : tensor<4xi1>, tensor<4xf32>",
        "arith.extsi %i : tensor<4xi32> to tensor<4xi64>",
        "arith.extui %c : tensor<4xi1> to tensor<4xi32>",
        "arith.trunci %i : tensor<4xi32> to tensor<4xi8>",
        "arith.sitofp %i : tensor<4xi32> to tensor<4xf32>",
        "arith.uitofp %i : tensor<4xi32> to tensor<4xf32>",
        "arith.fptosi %x : tensor<4xf32> to tensor<4xi32>",
        "arith.fptoui %x : tensor<4xf32> to tensor<4xi32>",
        "arith.remf %x, %x : tensor<4xf32>",
    ],
)
def test_operations_take_tensors(operation):
    module = parse_module(in_function(f"%0 = {operation}"))
    verify_module(module)
    assert operation in print_module(module, locations=False)


# --- locations ------------------------------------------------------------------------------------------------------


def test_a_location_alias_may_follow_its_use():
    module = parse_module(in_function("%0 = arith.addf %x, %x : tensor<4xf32> loc(#a)") + '#a = loc("k.py":3:4)\n')
    location = only(module, "arith.addf").location
    assert isinstance(location, FileLineColLoc)
    assert (location.filename.data, location.line.data, location.column.data) == ("k.py", 3, 4)


@pytest.mark.parametrize(
    "location",
    ['fused<"pass">["a.py":1:2, "b.py":3:4]', '"a.py":1:2 to :9', '"a.py":1:2 to 5:6', '"name"("a.py":1:2)'],
)
def test_every_kind_of_location_is_read_and_written(location):
    text = print_module(parse_module(in_function(f"%0 = arith.addf %x, %x : tensor<4xf32> loc({location})")))
    flat = re.sub(r"#loc\d*", lambda use: re.search(rf"^{use[0]} = loc\((.*)\)$", text, re.MULTILINE)[1], location)
    assert flat == location
    again = parse_module(text)
    assert print_module(again) == text
    assert isinstance(only(again, "arith.addf").location, FusedLoc) == location.startswith("fused")


def test_an_operation_without_a_location_has_its_place_in_the_text():
    module = parse_module(in_function("%0 = arith.addf %x, %x : tensor<4xf32>"), filename="k.mlir")
    location = only(module, "arith.addf").location
    assert (location.filename.data, location.line.data, location.column.data) == ("k.mlir", 2, 6)
    module = parse_module(in_function("%0 = arith.addf %x, %x : tensor<4xf32> loc(unknown)"))
    assert isinstance(only(module, "arith.addf").location, UnknownLoc)


# --- verification and names -----------------------------------------------------------------------------------------


def test_a_value_used_before_it_is_defined_is_found():
    early = "%1 = arith.addf %0, %x : tensor<4xf32>"
    module = parse_module(in_function(f"{early}\n%0 = arith.addf %x, %x : tensor<4xf32>"))
    with pytest.raises(CompilationError, match="used where it is not defined"):
        verify_module(module)


def test_a_value_of_a_branch_is_not_visible_in_its_sibling():
    text = """
tt.func @k(%c: i1, %x: i32) {
  cf.cond_br %c, ^a, ^b
^a:
  %0 = arith.addi %x, %x : i32
  tt.return
^b:
  %1 = arith.addi %0, %x : i32
  tt.return
}
"""
    with pytest.raises(CompilationError, match="used where it is not defined"):
        verify_module(parse_module(text))


def test_names_with_numbers_stay_apart():
    body = "\n".join(f"%{name} = arith.addf %x, %x : tensor<4xf32>" for name in ("a_1_2", "a", "a_1", "a_2_1", "a_2"))
    text = print_module(parse_module(in_function(body)), locations=False)
    names = re.findall(r"^\s*(%\w+) = arith.addf", text, re.MULTILINE)
    assert len(set(names)) == 5
    assert print_module(parse_module(text), locations=False) == text


# --- bad input ------------------------------------------------------------------------------------------------------


def test_a_string_that_is_not_closed_is_refused_at_once():
    start = time.thread_time()
    with pytest.raises(CompilationError):
        parse_module('tt.func @k() { tt.return loc("' + "a" * 200 + "\n}")
    assert time.thread_time() - start < 5


def test_the_first_token_is_refused_where_it_stands():
    with pytest.raises(CompilationError, match="Expected suffix identifier") as error:
        parse_module("# no alias", filename="k.mlir", first_line=3)
    assert str(error.value.location) == "k.mlir:3:1"


def test_an_unknown_operation_is_named_where_it_stands():
    with pytest.raises(CompilationError, match=r"unknown operation 'tt.retrun', did you mean 'tt.return'\?") as error:
        parse_module("tt.func @k() {\n  tt.retrun\n}", filename="k.mlir")
    assert str(error.value.location) == "k.mlir:2:3"


# --- old generic forms ----------------------------------------------------------------------------------------------

WARP_SPECIALIZE_3_6 = """
tt.func @k(%x: i32) {
  "ttg.warp_specialize"(%x) <{partitionNumWarps = array<i32: 4>}> ({
    "ttg.warp_yield"() : () -> ()
  }, {
    "ttg.warp_specialize.partitions"() ({
    ^bb0(%y: i32):
      "ttg.warp_return"() : () -> ()
    }) : () -> ()
  }) : (i32) -> ()
  tt.return
}
"""


def test_the_generic_warp_specialize_of_triton_3_6_is_read():
    module = parse_module(WARP_SPECIALIZE_3_6)
    verify_module(module)
    assert "ttg.warp_specialize(%x)" in print_module(module, locations=False)
    assert '"ttg.warp_specialize.partitions"(%x)' in print_module(module, locations=False, generic=True)
