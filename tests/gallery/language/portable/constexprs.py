"""Values known at compile time: annotations, globals, f-strings, assertions, Python at compile time."""

# covers: tl.compile_time

import triton
import triton.language as tl

from tests.gallery.cases import Constant, case

WIDTH = tl.constexpr(64)
SCALE = tl.constexpr(0.125)


@triton.constexpr_function
def _power_of_two(n):
    result = 1
    while result < n:
        result *= 2
    return result


@triton.constexpr_function
def _log2(n):
    return n.bit_length() - 1


@triton.jit
def _activate(a, MODE: tl.constexpr):
    if MODE == "relu":
        return tl.maximum(a, 0.0)
    elif MODE == "square":
        return a * a
    else:
        return a


@case({"x": "*fp32:16", "out": "*fp32:16", "MODE": Constant("relu")}, name="activation_relu")
@case({"x": "*fp32:16", "out": "*fp32:16", "MODE": Constant("square")}, name="activation_square")
@case({"x": "*fp32:16", "out": "*fp32:16", "MODE": Constant("none")}, name="activation_none")
@triton.jit
def activation(x, out, MODE: tl.constexpr):
    """Globals that are constexpr, strings, pruned branches."""
    tl.static_assert(MODE == "relu" or MODE == "square" or MODE == "none")
    index = tl.arange(0, WIDTH)
    tl.store(out + index, _activate(tl.load(x + index) * SCALE, MODE))


@case({"x": "*fp32:16", "out": "*fp32:16", "BLOCK": 48, "EXTRA": None, "FLAG": True})
@triton.jit
def compile_time_arithmetic(x, out, BLOCK: tl.constexpr, EXTRA: tl.constexpr, FLAG: tl.constexpr):
    """Arithmetic, comparisons, None, min, max, len, constexpr functions: nothing of it is left in the IR."""
    PADDED: tl.constexpr = _power_of_two(BLOCK)
    HALF: tl.constexpr = PADDED // 2
    BITS: tl.constexpr = (1 << _log2(PADDED)) | 1
    REST: tl.constexpr = -BLOCK % 5 + 2**3 - (7 ^ 2) + (~BLOCK & 3)
    RATIO: tl.constexpr = BLOCK / 32 if FLAG and BLOCK != 0 else 0.0
    index = tl.arange(0, PADDED)
    a = tl.load(x + index, mask=index < BLOCK, other=REST)
    if EXTRA is None:
        a *= RATIO
    if EXTRA is not None:
        a += EXTRA
    if HALF > 16 and BITS < 100 and not FLAG == False:  # noqa: E712
        a += max(HALF, 8) + min(BITS, 3)
    tl.store(out + index, a + len((1, 2, 3)), mask=index < BLOCK)


@case({"x": "*fp32:16", "out": "*fp32:16", "BLOCK": 32, "NAME": Constant("tile")})
@triton.jit
def compile_time_words(x, out, BLOCK: tl.constexpr, NAME: tl.constexpr):
    """static_print, static_assert, assert of a compile-time value, f-strings."""
    tl.static_print("block of", BLOCK, f"{NAME}")
    tl.static_assert(BLOCK % 32 == 0, f"{NAME} is {BLOCK} wide")
    LABEL: tl.constexpr = f"{NAME}-{BLOCK}"
    tl.static_assert(LABEL == "tile-32")
    assert BLOCK > 0, "a block is not empty"
    index = tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index))


@case({"x": "*fp32:16", "out": "*fp32:16", "DTYPE": tl.float16, "SHAPE": (4, 8)})
@triton.jit
def types_and_shapes_as_values(x, out, DTYPE: tl.constexpr, SHAPE: tl.constexpr):
    """Types and shapes are compile-time values; attributes of values are too."""
    index = tl.arange(0, SHAPE[0])[:, None] * SHAPE[1] + tl.arange(0, SHAPE[1])[None, :]
    a = tl.load(x + index)
    b = a.to(DTYPE)
    tl.static_assert(a.dtype == tl.float32)
    tl.static_assert(a.shape[1] == 8)
    tl.static_assert(b.dtype.is_floating() and b.dtype.primitive_bitwidth == 16)
    tl.static_assert(x.dtype.is_ptr() and x.dtype.element_ty == tl.float32)
    zeros = tl.zeros(a.shape, a.dtype)
    tl.store(out + index, (a + zeros).to(out.dtype.element_ty) + b.to(tl.float32))


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "K": 3})
@triton.jit
def constant_then_changed(x, out, n, K: tl.constexpr):
    """A plain assignment of a number is a run-time value: loops and branches change it."""
    count = 0
    scale = 1.5
    big = 1 << 40
    flag = False
    for i in range(n):
        if tl.load(x + i) > K:
            count += K
            scale *= 2
            flag = True
    tl.store(out, count * scale)
    tl.store(out + 1, flag)
    tl.store(out + 2, big + count)


@triton.jit
def _pick(WHICH: tl.constexpr):
    if WHICH == 0:
        return 16
    else:
        return 32.5


@case({"out": "*fp32:16"})
@triton.jit
def constants_from_functions(out):
    """A function returns a compile-time value; tuples hold some."""
    tl.store(out, _pick(0))
    tl.store(out + 1, _pick(1))
    sizes: tl.constexpr = (16, 32)
    mixed = (sizes[1], tl.program_id(0))
    tl.store(out + tl.arange(0, sizes[0]), mixed[0] * mixed[1])
