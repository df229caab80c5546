"""The table of element types: its columns agree with each other, and with the libraries whose names it has."""

import ctypes
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType

from tlx_xdsl.dialects.base.tensors import attribute_of, element_bits, element_type_of
from tlx_xdsl.dialects.tt.enums import ScaleDotElemType
from tlx_xdsl.element_types import (
    BY_FORMAT,
    BY_NAME,
    BY_SPELLING,
    BY_TENSOR_MAP,
    ELEMENT_TYPES,
    PTX_TYPES,
    SCALARS,
    SPELLINGS,
    TRITON_TYPES,
    ElementType,
    tcgen05_types,
)
from tlx_xdsl.numerics.arrays import is_float, numpy_type
from tlx_xdsl.runtime.driver.host_values import numpy_dtype
from tlx_xdsl.runtime.launch.parameters import read_tensor_map_format
from tlx_xdsl.runtime.launch.tensor_descriptor import dtype_name

ROOT = Path(__file__).parents[2]
NARROW_FLOATS = [each for each in ELEMENT_TYPES if each.kind == "f" and each.mlir != "i8" and each.bits <= 16]
OF_KERNELS = [each for each in TRITON_TYPES if not each.is_amd]


def label(each: ElementType) -> str:
    """The name of a row in the names of tests."""
    return str(each.library or each.name)


def rows(*, given: str) -> Any:
    """The rows that have a column, as parameters of a test."""
    return pytest.mark.parametrize("each", [each for each in ELEMENT_TYPES if getattr(each, given)], ids=label)


def test_names_are_of_one_type_each():
    for column in ("name", "library", "ptx", "tensor_map", "tcgen05", "scaled", "libdevice", "runtime"):
        given = [value for each in ELEMENT_TYPES if (value := getattr(each, column)) is not None]
        assert len(set(given)) == len(given), column
    names = [
        name
        for each in OF_KERNELS
        for name in {each.spelling, each.exported, each.library, each.runtime, *each.aliases} - {None}
    ]
    assert len(SPELLINGS) == len(set(names)) == len(names)


# numpy, torch and Python ---------------------------------------------------------------------------------------------


@rows(given="library")
def test_numpy_has_the_same_kind_and_width(each: ElementType):
    dtype = numpy_type(each)
    assert dtype.name == each.library
    assert dtype.itemsize == each.bytes
    assert is_float(dtype) == (each.kind == "f")
    if each.kind != "f" and each.bits >= 8:
        assert (dtype.kind, 8 * dtype.itemsize) == (each.kind, each.bits)


def test_bytes_hold_what_no_library_has():
    assert [each.name for each in ELEMENT_TYPES if each.library is None] == ["fp8e4b15"]
    assert numpy_type(BY_NAME["fp8e4b15"]) == np.uint8


@pytest.mark.parametrize("each", [each for each in ELEMENT_TYPES if each.kind == "f" and each.library], ids=label)
def test_the_format_of_a_float_is_that_of_its_library(each: ElementType):
    info = cast(Any, ml_dtypes.finfo)(numpy_type(each))
    assert (info.bits, info.nmant) == (each.bits, each.mantissa)
    # The smallest normal number has the exponent 1.
    assert info.minexp == 1 - each.bias
    if each in NARROW_FLOATS:
        assert each.largest == float(info.max)


@pytest.mark.parametrize("each", NARROW_FLOATS, ids=label)
def test_codes_of_what_is_no_finite_number(each: ElementType):
    codes = np.array([each.largest_code, each.overflow_code, each.nan_code], f"u{each.bytes}")
    largest, overflow, nan = codes.view(numpy_type(each)).astype(np.float32)
    assert np.isfinite(largest)
    assert not np.isfinite(overflow)
    assert np.isnan(nan)


@pytest.mark.parametrize("each", OF_KERNELS, ids=lambda each: each.name)
def test_names_of_libraries_lead_back(each: ElementType):
    for name in (each.spelling, each.exported, f"tl.{each.exported}"):
        assert dtype_name(name) == each.spelling
    if each.library is not None:
        assert dtype_name(f"torch.{each.library}") == dtype_name(numpy_type(each)) == each.spelling
    assert numpy_dtype(each.spelling) == numpy_type(each)
    assert BY_SPELLING[each.spelling] is each


@pytest.mark.parametrize("name", ["fp8e4b8", "float8_e5m2fnuz", "float8_e4m3", "f8E4M3FN", "int4", "e4m3", "void"])
def test_kernels_have_no_other_types(name: str):
    assert dtype_name(name) is None


def test_torch_has_the_types():
    torch = pytest.importorskip("torch")
    for each in TRITON_TYPES:
        if each.library is not None:
            found = getattr(torch, each.library)
            assert found.itemsize == each.bytes
            assert dtype_name(found) == (None if each.is_amd else each.spelling)


@rows(given="letter")
def test_python_packs_as_many_bytes(each: ElementType):
    assert struct.calcsize(f"<{each.letter}") == each.bytes


@rows(given="c")
def test_c_has_as_many_bytes(each: ElementType):
    assert ctypes.sizeof(getattr(ctypes, f"c_{str(each.c).removesuffix('_t')}")) == each.bytes


def test_scalars_of_signatures():
    usual = "i1 u1 i8 u8 i16 u16 i32 u32 i64 u64 fp16 bf16 fp32 f32 fp64"
    assert " ".join(SCALARS) == usual
    assert SCALARS["u1"] is SCALARS["i1"]
    assert SCALARS["f32"] is SCALARS["fp32"]


# Triton --------------------------------------------------------------------------------------------------------------


def test_triton_has_the_same_types():
    tl: Any = pytest.importorskip("triton.language")
    stock = tl.dtype
    assert {*stock.SINT_TYPES, *stock.UINT_TYPES, *stock.FP_TYPES} == BY_NAME.keys()
    assert [each.name for each in TRITON_TYPES if each.kind == "f"] == stock.FP_TYPES
    for name, each in BY_NAME.items():
        theirs = stock(name)
        assert theirs.primitive_bitwidth == each.bits
        assert theirs.is_floating() == (each.kind == "f")
        assert theirs.is_int_signed() == (each.kind == "i")
        assert getattr(tl, each.exported) == theirs
        if each.kind == "f":
            assert (theirs.fp_mantissa_width, theirs.exponent_bias) == (each.mantissa, each.bias)


# MLIR ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", ELEMENT_TYPES, ids=label)
def test_mlir_has_the_type(each: ElementType):
    attribute = attribute_of(each)
    assert str(attribute) == each.mlir
    assert element_bits(attribute) == (8 if each.mlir == "i8" else each.bits)
    is_held_by_integers = each.mlir == "i8" or (each.kind == "u" and each.bits > 1)
    assert element_type_of(attribute) is (BY_NAME[f"int{8 * each.bytes}"] if is_held_by_integers else each)


def test_integers_of_mlir_are_signed():
    assert element_type_of(IntegerType(8)) is BY_NAME["int8"]
    assert element_type_of(IntegerType(1)) is BY_NAME["int1"]
    assert element_type_of(IntegerType(7)) is None


def test_operands_of_scaled_products():
    assert BY_FORMAT.keys() == {kind.keyword for kind in ScaleDotElemType}


# PTX -----------------------------------------------------------------------------------------------------------------


def test_types_of_ptx_say_their_width():
    for name, (element, count) in PTX_TYPES.items():
        digits = {"bf16": 16, "e4m3": 8, "e5m2": 8, "tf32": 32, "pred": 1}
        base, _, packed = name.partition("x")
        assert element.bits == (digits.get(base) or int(base[1:])), name
        assert count == int(packed or 1), name


def test_types_of_tensor_maps_are_those_of_the_driver():
    names = {"TFLOAT32": "FLOAT32", "TFLOAT32_FTZ": "FLOAT32", "FLOAT32_FTZ": "FLOAT32"}
    for number, each in BY_TENSOR_MAP.items():
        meta = {"swizzle": 0, "elem_size": each.bytes, "elem_type": number, "block_size": [8], "fp4_padded": False}
        found = read_tensor_map_format(meta, "here").data_type.name
        assert names.get(found, found) == str(each.library).upper()


def test_types_of_tensor_cores():
    """PTX ISA, "Instruction descriptor", the table of `.kind::tf32`, `.kind::f16`, `.kind::f8f6f4` and `.kind::i8`."""
    found = {kind: {code: each.ptx for code, each in tcgen05_types(kind).items()} for kind in ("f16", "tf32", "i8")}
    assert found == {"f16": {0: "f16", 1: "bf16"}, "tf32": {2: "f32"}, "i8": {0: "u8", 1: "s8"}}
    assert {code: each.ptx for code, each in tcgen05_types("f8f6f4").items()} == {0: "e4m3", 1: "e5m2"}


# Imports -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["tlx_xdsl.element_types", "tlx_xdsl.language"])
def test_no_library_is_loaded_for_the_table(module: str):
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=120, check=True
    )
    assert {"numpy", "ml_dtypes", "torch", "xdsl"} & set(json.loads(done.stdout)) == set()
