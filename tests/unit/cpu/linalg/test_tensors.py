"""`linalg-lower-tensors` keeps the numbers: functions and kernels in the interpreter, before and after.

Bits are equal, but where the order of operations on floats is up to the compiler (sums, scans, products with scales);
there, units in the last place are given.
"""

# covers: linalg-lower-tensors

import ml_dtypes
import numpy as np
import pytest

from tests.oracle import ours
from tests.unit import volume
from tests.unit.cpu.linalg.functions import assert_same, before_and_after, lowered
from tests.unit.interpreter.oracle import checking, running, test_oracle_by_value
from tlx_xdsl.cpu.linalg.lower_tensors import LowerTensorsPass
from tlx_xdsl.dialects.base import as_tensor, is_pointer, scalar_type
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.text.verify import verify_module

pytestmark = pytest.mark.quick

# Operations -----------------------------------------------------------------------------------------------------------

TYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
}  # fmt: skip


def values(element, *shape, seed=0):
    """Numbers of all magnitudes: any bits, and of floats both zeros, infinities, NaN and the largest numbers."""
    kind, rng = np.dtype(TYPES[element]), np.random.default_rng(seed)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    count = int(np.prod(shape))
    made = rng.integers(0, 256, (count, kind.itemsize)).astype(np.uint8).view(kind).reshape(count)
    if element[0] != "i":
        limits = ml_dtypes.finfo(kind)
        edges = [0.0, -0.0, np.inf, -np.inf, np.nan, float(limits.max), float(limits.min), 1.5, -448.0, 1e-3]
        with np.errstate(all="ignore"):
            made[: min(count, len(edges))] = np.array(edges[:count]).astype(kind)
    return made.reshape(shape)


def function(body, *types, result):
    """A function of `%0`, `%1`, ... with those types, whose body computes `%r`."""
    arguments = ", ".join(f"%{number}: {type_}" for number, type_ in enumerate(types))
    return f"tt.func public @f({arguments}) -> {result} {{\n{body}\ntt.return %r : {result}\n}}"


BINARY = {
    "i1": "arith.addi arith.andi arith.xori arith.maxsi arith.minui arith.shrsi arith.shli",
    "i8": "arith.muli arith.divsi arith.remui arith.maxui arith.minsi arith.shrsi arith.shrui tt.mulhiui",
    "i32": "arith.subi arith.ceildivsi arith.floordivsi arith.divui tt.mulhiui arith.shli arith.ori math.ipowi",
    "i64": "tt.mulhiui arith.divsi arith.minui",
    "f16": "arith.addf arith.divf arith.remf tt.precise_divf",
    "bf16": "arith.mulf arith.maxnumf arith.minimumf math.copysign",
    "f32": "arith.maximumf arith.minimumf arith.maxnumf arith.minnumf arith.subf tt.precise_divf tt.approx_divf",
    "f64": "arith.addf math.atan2 tt.precise_divf",
}
SHAPES = ((), (1,), (1, 8), (4, 8))


@pytest.mark.parametrize("element", BINARY)
def test_binary_operations(element):
    for name in BINARY[element].split():
        for shape in SHAPES:
            type_ = f"tensor<{'x'.join([*map(str, shape), element])}>"
            text = function(f"%r = {name} %0, %1 : {type_}", type_, type_, result=type_)
            assert_same(*before_and_after(text, values(element, *shape), values(element, *shape, seed=1)))


DIVISIONS = ("divsi", "remsi", "divui", "remui", "ceildivsi", "ceildivui", "floordivsi")


def dividends_and_divisors(element):
    """Integers of which some are divided by 0, and the smallest one by -1."""
    a, b = values(element, 64), values(element, 64, seed=1)
    b[:8], b[8:16] = 0, -1
    a[:2] = a[8:12] = np.iinfo(a.dtype).min
    return a, b


@pytest.mark.parametrize("element", ["i8", "i32", "i64"])
@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions(name, element):
    type_ = f"tensor<64x{element}>"
    text = function(f"%r = arith.{name} %0, %1 : {type_}", type_, type_, result=type_)
    assert_same(*before_and_after(text, *dividends_and_divisors(element)))


@pytest.mark.parametrize("divisor", [-1, 0, 3])
def test_divisions_by_a_constant(divisor):
    body = f"%c = arith.constant dense<{divisor}> : tensor<64xi32>\n%r = arith.divsi %0, %c : tensor<64xi32>"
    text = function(body, "tensor<64xi32>", result="tensor<64xi32>")
    assert_same(*before_and_after(text, dividends_and_divisors("i32")[0]))


@pytest.mark.parametrize("predicate", ["slt", "ule", "sgt", "uge", "eq"])
@pytest.mark.parametrize("element", ["i1", "i16", "i64"])
def test_comparisons_of_integers(predicate, element):
    type_ = f"tensor<16x{element}>"
    text = function(f"%r = arith.cmpi {predicate}, %0, %1 : {type_}", type_, type_, result="tensor<16xi1>")
    assert_same(*before_and_after(text, values(element, 16), values(element, 16, seed=1)))


@pytest.mark.parametrize("predicate", ["olt", "one", "ueq", "uge", "ord", "uno", "false", "true"])
def test_comparisons_of_floats(predicate):
    text = function(
        f"%r = arith.cmpf {predicate}, %0, %1 : tensor<16xf32>", *["tensor<16xf32>"] * 2, result="tensor<16xi1>"
    )
    assert_same(*before_and_after(text, values("f32", 16), values("f32", 16, seed=1)))


CASTS = [
    ("arith.extsi", "i1", "i32", "to"), ("arith.extui", "i1", "i8", "to"), ("arith.trunci", "i64", "i1", "to"),
    ("arith.sitofp", "i64", "bf16", "to"), ("arith.uitofp", "i8", "f16", "to"), ("arith.fptosi", "f32", "i8", "to"),
    ("arith.fptoui", "f16", "i1", "to"), ("arith.fptosi", "f64", "i64", "to"), ("arith.truncf", "f64", "f16", "to"),
    ("arith.extf", "bf16", "f64", "to"), ("tt.bitcast", "f16", "bf16", "->"), ("tt.bitcast", "f64", "i64", "->"),
    ("tt.bitcast", "i8", "f8E4M3FN", "->"), ("tt.bitcast", "i8", "i8", "->"),
]  # fmt: skip
CONVERSIONS = [
    ("f32", "f8E5M2", "rtne"), ("f32", "f8E4M3FN", "rtne"), ("f16", "f8E5M2", "rtne"), ("bf16", "f8E4M3FN", "rtne"),
    ("f64", "f8E4M3FN", "rtne"), ("f32", "bf16", "rtz"), ("f32", "f16", "rtz"), ("f64", "f32", "rtz"),
    ("f32", "f8E5M2", "rtz"), ("f32", "f8E4M3FN", "rtz"), ("f64", "bf16", "rtz"),
    ("f32", "f16", "rtne"), ("f8E5M2", "f8E4M3FN", "rtne"), ("f8E4M3FN", "f16", None), ("f8E5M2", "f32", None),
    ("f16", "bf16", "rtne"), ("bf16", "f16", "rtne"), ("f16", "f16", None),
]  # fmt: skip


@pytest.mark.parametrize("cast", CASTS, ids=lambda cast: "-".join(cast[:3]))
def test_casts(cast):
    name, source, target, word = cast
    types = [f"tensor<64x{element}>" for element in (source, target)]
    text = function(f"%r = {name} %0 : {types[0]} {word} {types[1]}", types[0], result=types[1])
    assert_same(*before_and_after(text, values(source, 64)))


@pytest.mark.parametrize("conversion", CONVERSIONS, ids=lambda each: "-".join(map(str, each)))
def test_conversions_of_floats(conversion):
    source, target, mode = conversion
    types = [f"tensor<128x{element}>" for element in (source, target)]
    rounding = "" if mode is None else f", rounding = {mode}"
    text = function(f"%r = tt.fp_to_fp %0{rounding} : {types[0]} -> {types[1]}", types[0], result=types[1])
    assert_same(*before_and_after(text, values(source, 128)))


DEVICE = {
    "f32 f32": "sinf erff rsqrtf roundf rintf cbrtf fast_expf expm1f fabsf sqrtf frcp_rn saturatef j0f frsqrt_rn",
    "f64 f64": "tan log1p erf floor nearbyint tgamma",
    "f32 i32": "isnanf isinff finitef signbitf float_as_int float2int_rz",
    "f64 i32": "isnand isinfd isfinited",
    "i32 i32": "clz popc abs brev ffs",
    "i64 i32": "clzll popcll",
    "f32 f32 f32": "powf atan2f fmodf copysignf fadd_rn fmul_rz fast_fdividef fast_powf hypotf nextafterf",
    "f32 i32 f32": "powif ldexpf",
    "f32 f32 f32 f32": "fmaf fmaf_rn",
    "i32 i32 i32": "mulhi umulhi mul24",
    "i64 i64 i64": "mul64hi umul64hi",
}


@pytest.mark.parametrize("elements", DEVICE)
def test_device_functions(elements):
    for name in DEVICE[elements].split():
        types = [f"tensor<16x{element}>" for element in elements.split()]
        settings = f'{{libname = "", libpath = "", pure = true, symbol = "__nv_{name}"}}'
        operands = ", ".join(f"%{number}" for number in range(len(types) - 1))
        body = f"%r = tt.extern_elementwise {operands} {settings} : ({', '.join(types[:-1])}) -> {types[-1]}"
        arguments = [values(element, 16, seed=seed) for seed, element in enumerate(elements.split()[:-1])]
        assert_same(*before_and_after(function(body, *types[:-1], result=types[-1]), *arguments))


# Reductions, scans and products --------------------------------------------------------------------------------------

REDUCED = {
    "i1": "arith.andi arith.ori arith.xori arith.maxsi arith.minsi arith.maxui arith.minui",
    "i8": "arith.addi arith.muli arith.minui arith.maxsi", "i64": "arith.minsi arith.maxui arith.addi arith.andi",
    "f16": "arith.maxnumf arith.minimumf", "bf16": "arith.maximumf", "f64": "arith.minnumf",
    "f32": "arith.maximumf arith.maxnumf arith.minnumf",
}  # fmt: skip


@pytest.mark.parametrize("element", REDUCED)
def test_reductions_without_an_order(element):
    for name in REDUCED[element].split():
        for shape, axis in (((8,), 0), ((1,), 0), ((4, 8), 0), ((4, 8), 1), ((8, 1), 1), ((2, 4, 8), 1)):
            type_ = f"tensor<{'x'.join([*map(str, shape), element])}>"
            left = [str(size) for dim, size in enumerate(shape) if dim != axis]
            result = f"tensor<{'x'.join([*left, element])}>" if left else element
            body = f"""%r = "tt.reduce"(%0) <{{axis = {axis} : i32}}> ({{
              ^bb0(%a: {element}, %b: {element}):
                %c = {name} %a, %b : {element}
                tt.reduce.return %c : {element}
              }}) : ({type_}) -> {result}"""
            assert_same(*before_and_after(function(body, type_, result=result), values(element, *shape)))


@pytest.mark.parametrize("name", ["maxnumf", "minnumf", "maximumf"])
def test_a_row_of_nan_reduces_to_nan(name):
    body = f"""%r = "tt.reduce"(%0) <{{axis = 0 : i32}}> ({{
      ^bb0(%a: f32, %b: f32):
        %c = arith.{name} %a, %b : f32
        tt.reduce.return %c : f32
      }}) : (tensor<4xf32>) -> f32"""
    _, (after,) = before_and_after(function(body, "tensor<4xf32>", result="f32"), np.full(4, np.nan, np.float32))
    assert np.isnan(after)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_narrow_sums_are_rounded_once(element):
    body = f"""%r = "tt.reduce"(%0) <{{axis = 1 : i32}}> ({{
      ^bb0(%a: {element}, %b: {element}):
        %c = arith.addf %a, %b : {element}
        tt.reduce.return %c : {element}
      }}) : (tensor<4x64x{element}>) -> tensor<4x{element}>"""
    given = np.random.default_rng(0).integers(-64, 64, (4, 64)).astype(TYPES[element]) / TYPES[element](8)
    text = function(body, f"tensor<4x64x{element}>", result=f"tensor<4x{element}>")
    _, (after,) = before_and_after(text, given)
    # Sums of few bits are exact in f32.
    np.testing.assert_array_equal(after, given.astype(np.float32).sum(1).astype(TYPES[element]))


SCAN = """%r, %s = "tt.scan"(%0, %1) <{{axis = {axis} : i32, reverse = {reverse}}}> ({{
  ^bb0(%a: i32, %f: f32, %b: i32, %g: f32):
    %c = arith.muli %a, %b : i32
    %d = arith.addi %c, %b : i32
    %e = arith.maximumf %f, %g : f32
    tt.scan.return %c, %e : i32, f32
  }}) : ({types}) -> ({types})"""


@pytest.mark.parametrize("reverse", ["true", "false"])
@pytest.mark.parametrize(("shape", "axis"), [((8,), 0), ((4, 8), 0), ((4, 8), 1), ((4, 1), 1), ((2, 4, 2), 1)])
def test_scans(shape, axis, reverse):
    types = [f"tensor<{'x'.join([*map(str, shape), element])}>" for element in ("i32", "f32")]
    body = SCAN.format(axis=axis, reverse=reverse, types=", ".join(types))
    for result in ("r", "s"):
        text = function(body, *types, result=types["rs".index(result)]).replace("tt.return %r", f"tt.return %{result}")
        assert_same(*before_and_after(text, values("i32", *shape), values("f32", *shape)))


@pytest.mark.parametrize(("element", "bins"), [("i1", 2), ("i8", 16), ("i8", 256), ("i32", 8), ("i64", 1)])
def test_histograms(element, bins):
    types = [f"tensor<32x{element}>", "tensor<32xi1>"]
    numbers = np.random.default_rng(0).integers(-2, bins + 2, 32).astype(TYPES[element])
    given = [numbers, values("i1", 32)]
    for operands, count in (("%0", 1), ("%0, %1", 2)):
        body = f"%r = tt.histogram {operands} : {types[0]} -> tensor<{bins}xi32>"
        assert_same(*before_and_after(function(body, *types[:count], result=f"tensor<{bins}xi32>"), *given[:count]))


SHAPED = {
    "tt.splat %0 : tensor<f32> -> RESULT": ("f32", "4xf32"),
    "tt.reshape %0 : SOURCE -> RESULT": ("1x4x1x2xf32", "2x1x4xf32"),
    "tt.reshape %0 : SOURCE -> RESULT  ": ("4x1x2xf32", "8x1xf32"),
    "tt.reshape %0 : SOURCE -> RESULT {}": ("1xf32", "1x1x1xf32"),
    "tt.reshape %0 : SOURCE -> RESULT { }": ("4x1xf32", "1x4xf32"),
    "tt.trans %0 {order = array<i32: 2, 0, 1>} : SOURCE -> RESULT": ("2x4x8xi8", "8x2x4xi8"),
    "tt.broadcast %0 : SOURCE -> RESULT": ("1x4x1xi1", "2x4x8xi1"),
    "tt.broadcast %0 : SOURCE -> RESULT {}": ("1x4xi1", "1x4xi1"),
    "tt.cat %0, %0 : SOURCE -> RESULT": ("2x4xf8E5M2", "4x4xf8E5M2"),
    "tt.join %0, %0 : SOURCE -> RESULT": ("f16", "2xf16"),
    "arith.select %c, %0, %0 : RESULT": ("4xi1", "4xi1"),
}


@pytest.mark.parametrize("form", SHAPED)
def test_shapes(form):
    source, result = (f"tensor<{shape}>" for shape in SHAPED[form])
    *shape, element = SHAPED[form][0].split("x")
    body = f"%c = arith.constant true\n%r = {form}".replace("SOURCE", source).replace("RESULT", result)
    body = body.replace(" {}", "").replace(" { }", "")
    assert_same(*before_and_after(function(body, source, result=result), values(element, *map(int, shape))))


CONSTANTS = ["1.5 f8E5M2", "448.0 f8E4M3FN", "-0.0 bf16", "0x7C00 f16", "true i1", "-9223372036854775808 i64", "255 i8"]


@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants(constant):
    number, element = constant.split()
    for shape in ("", "4x", "4x2x"):
        type_ = f"tensor<{shape}{element}>"
        assert_same(*before_and_after(function(f"%r = arith.constant dense<{number}> : {type_}", result=type_)))


BODY = """%r = "tt.reduce"(%0) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %m = tt.clampf %a, %b, %1, propagateNan = all : f32
    %e = tt.extern_elementwise %m {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (f32) -> f32
    %c = arith.cmpf olt, %a, %b : f32
    %i = scf.if %c -> (f32) {
      %q = tt.precise_sqrt %m : f32
      scf.yield %q : f32
    } else {
      scf.yield %e : f32
    }
    tt.reduce.return %i : f32
  }) : (tensor<2xf32>) -> f32"""


def test_regions_with_control_flow_captures_and_scalar_operations_of_tt():
    text = function(BODY, "tensor<2xf32>", "f32", result="f32")
    for given in ([0.5, 0.7], [0.7, 0.5]):
        assert_same(*before_and_after(text, np.array(given, np.float32), np.float32(2)))


DOTS = [
    ("f16", "f32", "ieee"), ("bf16", "f32", "tf32"), ("f16", "f16", "ieee"), ("f32", "f32", "tf32"),
    ("f32", "f32", "tf32x3"), ("f32", "f32", "bf16x3"), ("f32", "f32", "bf16x6"), ("f32", "f32", "ieee"),
    ("f64", "f64", "ieee"), ("i8", "i32", "tf32"), ("f8E5M2", "f32", "tf32"), ("f8E4M3FN", "f16", "ieee"),
]  # fmt: skip


@pytest.mark.parametrize("batch", ["", "2x"])
@pytest.mark.parametrize("dot", DOTS, ids="-".join)
def test_dots(dot, batch):
    element, accumulator, precision = dot
    rng, many = np.random.default_rng(0), [2] if batch else []
    types = [
        f"tensor<{batch}16x32x{element}>",
        f"tensor<{batch}32x16x{element}>",
        f"tensor<{batch}16x16x{accumulator}>",
    ]
    body = f"%r = tt.dot %0, %1, %2, inputPrecision = {precision} : {types[0]} * {types[1]} -> {types[2]}"
    shapes = [(*many, 16, 32), (*many, 32, 16), (*many, 16, 16)]
    given = [
        (rng.standard_normal(shape) * 8).astype(TYPES[kind])
        for shape, kind in zip(shapes, (element, element, accumulator), strict=True)
    ]
    assert_same(*before_and_after(function(body, *types, result=types[2]), *given))


SCALED = [("e2m1", "i8", "e4m3", "i8"), ("e4m3", "f8E4M3FN", "e5m2", "f8E5M2"), ("e2m3", "i8", "e3m2", "i8"),
          ("bf16", "bf16", "e2m1", "i8"), ("fp16", "f16", "fp16", "f16")]  # fmt: skip


@pytest.mark.parametrize("accumulator", ["f32", "bf16"])
@pytest.mark.parametrize("packs", ["true", "false"])
@pytest.mark.parametrize("kinds", SCALED, ids="-".join)
def test_scaled_dots_within_rounding(kinds, packs, accumulator):
    a_kind, a_type, b_kind, b_type = kinds
    along_k = packs == "true"
    a = [16, 64] if a_kind != "e2m1" else [16, 32] if along_k else [8, 64]
    b = [64, 16] if b_kind != "e2m1" else [32, 16] if along_k else [64, 8]
    shapes = [a, b, [16, 16], [16, 2], [16, 2]]
    elements = [a_type, b_type, accumulator, "i8", "i8"]
    types = [f"tensor<{'x'.join(map(str, shape))}x{element}>" for shape, element in zip(shapes, elements, strict=True)]
    body = (
        f"%r = tt.dot_scaled %0 scale %3, %1 scale %4, %2 lhs = {a_kind} rhs = {b_kind} {{fastMath = false, "
        f"lhs_k_pack = {packs}, rhs_k_pack = {packs}}} : {types[0]}, {types[3]} * {types[1]}, {types[4]} -> {types[2]}"
    )
    rng = np.random.default_rng(0)

    def small(element, shape, kind):
        # Codes without NaN and infinity, in which all bits occur; those of 6 bits are the low ones of a byte.
        if element == "i8":
            bits = 0xBB if kind == "e4m3" else 0x3F if kind in ("e2m3", "e3m2") else 0xFF
            return (rng.integers(0, 256, shape) & bits).astype(np.uint8).view(np.int8)
        return rng.standard_normal(shape).astype(TYPES[element])

    given = [small(*each) for each in zip(elements[:3], shapes[:3], (a_kind, b_kind, accumulator), strict=True)]
    scales = [rng.integers(124, 131, (16, 2)).astype(np.uint8).view(np.int8) for _ in range(2)]
    (before,), (after,) = before_and_after(function(body, *types, result=types[2]), *given, *scales)
    have, want = after.astype(np.float64), before.astype(np.float64)
    # One rounding for each of 64 products in f32, and the last one.
    limit = np.abs(want).max() * (2**-17 if accumulator == "f32" else 2**-8)
    assert np.isfinite(want).all()
    np.testing.assert_allclose(have, want, atol=limit, rtol=0)


def test_scales_of_nan_and_the_smallest_power_of_two():
    types = ["tensor<16x32xf16>", "tensor<32x16xf16>", "tensor<16x16xf32>", "tensor<16x1xi8>"]
    body = (
        f"%r = tt.dot_scaled %0 scale %3, %1, %2 lhs = fp16 rhs = fp16 {{fastMath = false}} : "
        f"{types[0]}, {types[3]} * {types[1]} -> {types[2]}"
    )
    scales = np.array([0, 255, 1, 254] * 4, np.uint8).view(np.int8).reshape(16, 1)
    ones = [np.ones((16, 32), np.float16), np.eye(32, 16, dtype=np.float16), np.zeros((16, 16), np.float32)]
    assert_same(*before_and_after(function(body, *types, result=types[2]), *ones, scales))


# What is left, and what is refused -----------------------------------------------------------------------------------


def leftovers(module):
    """Operations on tensors of numbers that the pass should have replaced, in a module that it was run on."""
    for op in module.walk():
        types = (*op.operand_types, *op.result_types)
        if any(is_pointer(scalar_type(type_)) for type_ in types):
            continue
        if op.name.startswith(("arith.", "math.")) and any(as_tensor(type_) is not None for type_ in types):
            # Elements that differ stay a constant.
            if op.name != "arith.constant":
                yield op.name
        elif op.name.startswith("tt.") and op.name not in LEFT:
            yield op.name


LEFT = {
    "tt.func", "tt.call", "tt.return", "tt.get_program_id", "tt.get_num_programs", "tt.load", "tt.store", "tt.assert",
    "tt.print", "tt.atomic_rmw", "tt.atomic_cas", "tt.make_tensor_descriptor", "tt.descriptor_load",
    "tt.descriptor_store", "tt.descriptor_reduce", "tt.descriptor_gather", "tt.descriptor_scatter", "tt.addptr",
    "tt.atomic_poll", "tt.make_tensor_ptr", "tt.advance",
}  # fmt: skip
"""Memory, pointers, functions, and what reports: other passes lower them."""

REFUSED = {"inline_assembly": "tt.elementwise_inline_asm", "cuda_functions": "tt.elementwise_inline_asm"}
"""Kernels of the gallery that have no lowering, and why."""
UNORDERED = {"combining_functions": "reduces with a function that is not associative, whose order is anyone's choice"}
"""Kernels whose numbers differ."""


def in_linalg(name):
    """A kernel of the gallery after the pass."""
    module = ours.launchable(running.cases()[name], capability=running.CAPABILITIES.get(name, 90))
    LowerTensorsPass().run(module)
    verify_module(module)
    return module


LOWERED = [name for name in running.cases() if name not in REFUSED]


@pytest.mark.parametrize("name", LOWERED if volume.is_full() else [*LOWERED[::3], *UNORDERED])
@pytest.mark.filterwarnings("ignore:tl.softmax")
def test_kernels_of_the_gallery_keep_their_numbers(name, monkeypatch):
    assert test_oracle_by_value.REFERENCES
    module = in_linalg(name)
    assert sorted(leftovers(module)) == []
    plan = make_plan(module)
    monkeypatch.setattr(running, "plan_of", lambda _kernel, _stage: plan)
    for check in checking.CHECKS.get(name, ()):
        if name in UNORDERED:
            with pytest.raises(AssertionError, match="store 0 to out"):
                checking.run_check(check, 0, "linalg")
        else:
            checking.run_check(check, 0, "linalg")


@pytest.mark.parametrize("name", REFUSED)
def test_kernels_that_are_refused(name):
    with pytest.raises(CompilationError, match=f"'{REFUSED[name]}' cannot be lowered to linalg") as caught:
        in_linalg(name)
    assert caught.value.location is not None


def test_tf32_may_be_left_to_the_hardware():
    types = ["tensor<16x16xf32>"] * 3
    body = f"%r = tt.dot %0, %1, %2, inputPrecision = tf32 : {types[0]} * {types[1]} -> {types[2]}"
    names = [op.name for op in lowered(function(body, *types, result=types[2]), truncates_tf32=False).walk()]
    assert "linalg.generic" not in names
    assert "linalg.matmul" in names
