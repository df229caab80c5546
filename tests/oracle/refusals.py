"""Statements with which stock Triton 3.9 refuses a kernel, and what we do about each.

Each `raise` and `assert` of the four files that read kernels has an entry under the function that it stands in, in
their order there: an input that triggers it and that we refuse, too; one that we take on purpose, with the reason; or
the reason why no input of ours reaches it. `tests/unit/frontend/test_refusals.py` gives each input to both, and counts
the statements of the installed Triton: what a new version adds has no entry.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refused:
    """An input that both refuse."""

    condition: str
    body: str
    """The body of a kernel with the parameters of `PARAMETERS`, or with `host` a program of Python."""
    host: bool = False


@dataclass(frozen=True)
class Taken:
    """An input that stock refuses and that we take."""

    condition: str
    body: str
    why: str


@dataclass(frozen=True)
class Elsewhere:
    """A statement that no kernel of ours reaches, and why."""

    why: str


PARAMETERS = {
    "x": "*fp32", "p": "*i32", "h": "*fp16", "b": "*bf16", "q": "*i8", "r": "*kfp32", "n": "i32", "f": "fp32",
    "u": "u32", "w": "i64", "e": "*fp64",
}  # fmt: skip

HELPERS = """
from triton.language.core import _aggregate as aggregate


class NoAggregate:
    pass


@aggregate
class Pair:
    a: tl.tensor
    b: tl.constexpr


@aggregate
class Unfinished:
    a: tl.tensor

    @triton.constexpr_function
    def __init__(self, a):
        pass


@aggregate
class Surplus:
    a: tl.tensor

    @triton.constexpr_function
    def __init__(self, a):
        self.a = a
        self.c = a


GLOBAL = 3


@triton.jit
def same(v):
    return v


@triton.jit
def two(v, w):
    return v, w


@triton.jit
def sum_of(v, w):
    return v + w


@triton.jit
def first_of_types(v):
    if v > 3:
        return v
    return v > 3


@triton.jit
def two_or_three(v):
    if v > 3:
        return v, v
    return v, v, v


@triton.jit(noinline=True)
def apart(v):
    return v


@triton.jit
def wrong(v):
    return v + nowhere


@triton.jit
def mixed(v, w):
    return v, w.to(tl.float32)


@triton.jit
def mixed_pairs(a, c, d, g):
    return a, c.to(tl.float32)


@triton.jit
def with_inner(v):
    def inner(a):
        return a
    return inner(v)
"""

INVARIANT = "an invariant of stock's own objects, which no input breaks"
ABSTRACT = "a method that stock's classes override"
FIRST = "never reached: a check before it refuses all inputs that would"
TARGETS = "of back ends that lack something that NVIDIA's has"
SANITIZE = "an invariant of stock's overflow checks, whose operands were unified before"
RERAISE = "raises again what another statement raised"
PRELOAD = "of specialisations that a hook has recorded, which our kernels inherit from Triton's class"
LAUNCH = "of Triton's launches, which our kernels inherit; a launch on the CPU has messages of its own"

I = "i = tl.arange(0, 32);; "  # noqa: E741
M = "m = tl.load(h + tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]);; "
D = "d = tl.make_tensor_descriptor(h, [64, 64], [64, 1], [16, 16]);; "
G = "d = tl.make_tensor_descriptor(h, [64, 64], [64, 1], [1, 16]);; i = tl.arange(0, 8);; "
S = "s = tl.load(q + tl.arange(0, 32)).to(tl.uint8, bitcast=True)[:, None];; "


def _cannot(symbol: str) -> Refused:
    return Refused(f"'{symbol}' of what it does not exist for", f"v = x {symbol} x")


SEMANTIC: dict[str, list[Refused | Taken | Elsewhere]] = {
    "program_id": [Refused("an axis beyond 2", "v = tl.program_id(3)")],
    "num_programs": [Refused("an axis beyond 2", "v = tl.num_programs(3)")],
    "integer_promote_impl": [Elsewhere(INVARIANT)],
    "computation_type_impl": [
        Refused("a type that is neither integer nor float", "v = tl.clamp(x, x, x)"),
        Refused("a division of integers that differ in their sign", "v = n // u"),
    ],
    "to_tensor": [Refused("a text as a number", "tl.store(x, 'text')")],
    "to_tensor_type": [
        Refused("an integer beyond 64 bits", f"v = {1 << 70};; v = v + n"),
        Elsewhere("of the types of returned constants, which are numbers by then"),
    ],
    "check_ptr_type_impl": [
        Refused("pointers of different types", "v = tl.where(n > 0, x, p)"),
        Refused("a pointer and a float", "v = x + f"),
        Refused("a number where a pointer is", "v = tl.where(n > 0, x, f)"),
    ],
    "_cast_to_computation_type": [
        Refused("a negative number and an unsigned one", "v = u + -1"),
        Refused("a number that the other's type can't hold", "v = n.to(tl.int8) + 1000"),
    ],
    "binary_op_sanitize_overflow_impl": [Elsewhere(SANITIZE), Elsewhere(SANITIZE)],
    "add": [Refused("a sum of pointers", "v = x + x"), Elsewhere(FIRST)],
    "sub": [Refused("a difference of a number and a pointer", "v = n - x")],
    "mul": [_cannot("*")],
    "truediv": [_cannot("/")],
    "floordiv": [Refused("'//' of floats", "v = f // f")],
    "fdiv": [
        Refused("approximate and IEEE at once", "v = tl.fdiv(f, f, ieee_rounding=True, approx=True)"),
        Refused("integers", "v = tl.fdiv(n, n)"),
        Refused("an approximate division of fp64", "v = tl.fdiv(f.to(tl.float64), f.to(tl.float64), approx=True)"),
    ],
    "mod": [Refused("'%' of integers that differ in their sign", "v = n % u"), _cannot("%")],
    "minimum": [
        Refused("a propagation of NaN that there is not", "v = tl.minimum(f, f, propagate_nan=3)"),
        Refused("a minimum of pointers", "v = tl.minimum(x, x)"),
    ],
    "maximum": [
        Refused("a propagation of NaN that there is not", "v = tl.maximum(f, f, propagate_nan=3)"),
        Refused("a maximum of pointers", "v = tl.maximum(x, x)"),
    ],
    "clamp": [Refused("pointers between bounds", "v = tl.clamp(x, x, x)")],
    "bitwise_op_type_checking_impl": [Refused("bits of a float", "v = f & 3")],
    "minus": [Refused("a negated pointer", "v = -x")],
    "invert": [Refused("the complement of a float", "v = ~f")],
    "greater_than": [Refused("pointers that are ordered", "v = x > x")],
    "greater_equal": [Refused("pointers that are ordered", "v = x >= x")],
    "less_than": [Refused("pointers that are ordered", "v = x < x")],
    "less_equal": [Refused("pointers that are ordered", "v = x <= x")],
    "equal": [Refused("pointers that are compared", "v = x == x")],
    "not_equal": [Refused("pointers that are compared", "v = x != x")],
    "arange": [
        Refused("a bound of run time", "v = tl.arange(0, n)"),
        Refused("a bound beyond 32 bits", f"v = tl.arange({1 << 32}, {(1 << 32) + 32})"),
        Refused("an empty range", "v = tl.arange(8, 8)"),
        Refused("a size that is no power of two", "v = tl.arange(0, 33)"),
    ],
    "scalar_constant": [Refused("no type for a number", "v = tl.full((4,), 3, None)")],
    "make_scalar": [Refused("a block as the value of a block", f"{I}v = tl.full((32,), i, tl.int32)")],
    "splat": [Elsewhere(FIRST)],
    "reshape": [Refused("another number of elements", f"{I}v = tl.reshape(i, (64,))")],
    "expand_dims": [Elsewhere(FIRST)],
    "cat": [
        Elsewhere("never reached: `tl.cat` asks for it with leave to reorder alone"),
        Refused("two dimensions with leave to reorder", f"{M}v = tl.cat(m, m, can_reorder=True)"),
    ],
    "split": [
        Refused("a scalar in halves", "v, k = tl.split(n)"),
        Refused("a last dimension that is not 2", f"{I}v, k = tl.split(i)"),
    ],
    "permute": [
        Refused("too few dimensions", f"{M}v = tl.permute(m, (0,))"),
        Refused("a dimension twice", f"{M}v = tl.permute(m, (0, 0))"),
    ],
    "broadcast_impl_shape": [
        Refused("another rank", f"{I}v = tl.broadcast_to(i, (32, 32))"),
        Refused("a size that is not 1", f"{I}v = tl.broadcast_to(i, (64,))"),
    ],
    "broadcast_impl_value": [
        Elsewhere(INVARIANT),
        Refused("sizes that do not broadcast", f"{I}v = i + tl.arange(0, 64)"),
    ],
    "_str_to_rounding_mode": [
        Refused("a rounding that there is not", "v = f.to(tl.float16, fp_downcast_rounding='up')")
    ],
    "bitcast": [Refused("bits of another number", "v = n.to(tl.int64, bitcast=True)")],
    "cast": [
        Refused("a rounding of no truncation", "v = f.to(tl.float64, fp_downcast_rounding='rtz')"),
        Elsewhere(TARGETS),
        Refused("a float as a pointer", "v = f.to(tl.pointer_type(tl.float32))"),
    ],
    "_str_to_load_cache_modifier": [Refused("an unknown modifier", "v = tl.load(x, cache_modifier='.zz')")],
    "_str_to_store_cache_modifier": [Refused("an unknown modifier", "tl.store(x, 1, cache_modifier='.ca')")],
    "_str_to_eviction_policy": [Refused("an unknown policy", "v = tl.load(x, eviction_policy='soon')")],
    "_str_to_padding_option": [
        Refused(
            "an unknown padding",
            "v = tl.make_tensor_descriptor(h, [64, 64], [64, 1], [16, 16], padding_option='one')",
        )
    ],
    "_str_to_sem": [Refused("an unknown order", "tl.atomic_add(x, 1, sem='later')")],
    "_str_to_scope": [Refused("an unknown scope", "tl.atomic_add(x, 1, scope='all')")],
    "load": [
        Refused("no pointer", "v = tl.load(n)"),
        Refused("a value for what is masked, without a mask", "v = tl.load(x, other=1.0)"),
        Refused("a mask of blocks for a scalar", f"{I}v = tl.load(x, mask=i > 3)"),
        Refused("a block for what is masked of a scalar", f"{I}v = tl.load(x, mask=n > 3, other=i)"),
    ],
    "descriptor_load": [
        Refused("no descriptor", "v = tl.load_tensor_descriptor(x, [0, 0])"),
        Refused("too few offsets", f"{D}v = d.load([0])"),
    ],
    "validate_store_like": [
        Refused("no descriptor", f"{M}tl.store_tensor_descriptor(x, [0, 0], m)"),
        Refused("too few offsets", f"{D}d.store([0], d.load([0, 0]))"),
        Refused("a block of another shape", f"{D}{M}d.store([0, 0], m)"),
    ],
    "descriptor_atomic_add": [
        Refused(
            "a type that TMA does not add",
            "d = tl.make_tensor_descriptor(e, [64, 64], [64, 1], [16, 16]);; d.atomic_add([0, 0], d.load([0, 0]))",
        )
    ],
    "_descriptor_atomic_min_max_supported": [
        Refused(
            "a type of which TMA finds no minimum",
            "d = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [16, 16]);; d.atomic_min([0, 0], d.load([0, 0]))",
        ),
        Elsewhere("of GPUs before Hopper, which have no TMA"),
    ],
    "descriptor_atomic_and": [Refused("bits of floats", f"{D}d.atomic_and([0, 0], d.load([0, 0]))")],
    "descriptor_atomic_or": [Refused("bits of floats", f"{D}d.atomic_or([0, 0], d.load([0, 0]))")],
    "descriptor_atomic_xor": [Refused("bits of floats", f"{D}d.atomic_xor([0, 0], d.load([0, 0]))")],
    "descriptor_gather": [
        Elsewhere("a method of descriptors"),
        Elsewhere("no argument of the method"),
        Elsewhere("no argument of the method"),
        Refused(
            "a descriptor of one dimension",
            "d = tl.make_tensor_descriptor(h, [64], [1], [16]);; v = d.gather(tl.arange(0, 8), 0)",
        ),
        Refused("blocks of many rows", f"{D}v = d.gather(tl.arange(0, 8), 0)"),
        Refused("rows in two dimensions", f"{G}v = d.gather(i[:, None], 0)"),
        Refused("rows of 64 bits", f"{G}v = d.gather(i.to(tl.int64), 0)"),
        Refused("too few rows", f"{G}v = d.gather(tl.arange(0, 4), 0)"),
        Refused(
            "too few columns",
            "d = tl.make_tensor_descriptor(h, [64, 64], [64, 1], [1, 8]);; v = d.gather(tl.arange(0, 8), 0)",
        ),
    ],
    "descriptor_scatter": [
        Elsewhere("a method of descriptors"),
        Refused(
            "a descriptor of one dimension",
            f"{M}d = tl.make_tensor_descriptor(h, [64], [1], [16]);; d.scatter(m, tl.arange(0, 8), 0)",
        ),
        Refused("blocks of many rows", f"{D}d.scatter(d.load([0, 0]), tl.arange(0, 16), 0)"),
        Refused("rows in two dimensions", f"{G}d.scatter(d.gather(i, 0), i[:, None], 0)"),
        Refused("rows of 64 bits", f"{G}d.scatter(d.gather(i, 0), i.to(tl.int64), 0)"),
        Refused("too few rows", f"{G}d.scatter(d.gather(i, 0), tl.arange(0, 4), 0)"),
        Refused(
            "too few columns",
            "d = tl.make_tensor_descriptor(h, [64, 64], [64, 1], [1, 8]);; "
            "d.scatter(tl.full((8, 8), 0, tl.float16), tl.arange(0, 8), 0)",
        ),
    ],
    "_broadcast_ptr_val_mask": [
        Refused(
            "a value of more elements than pointers", f"{I}tl.store(x + i[:, None], tl.full((32, 32), 1.0, tl.float32))"
        )
    ],
    "store": [
        Refused("memory that is only read", "tl.store(r, 1.0)"),
        Refused("no pointer", "tl.store(n, 1)"),
        Refused("a block in one place", f"{I}tl.store(p, i)"),
        Refused("a mask of blocks for a scalar", f"{I}tl.store(p, 1, mask=i > 3)"),
        Refused("a mask of numbers", f"{I}tl.store(p + i, i, mask=i)"),
    ],
    "_validate_atomic_load_store_element_type": [Elsewhere("of pointers in memory, of which stock's process dies")],
    "_validate_atomic_rmw_element_type": [
        Refused("fp16 of what is not added", "tl.atomic_max(h, tl.load(h))"),
        Refused("bf16 of what is not added", "tl.atomic_max(b, tl.load(b))"),
        Refused("8 bits", "tl.atomic_add(q, tl.load(q))"),
    ],
    "_atomic_typechecking_impl": [
        Refused("no pointer", "tl.atomic_add(n, 1)"),
        Refused("memory that is only read", "tl.atomic_add(r, 1.0)"),
        Refused("a block in one place", f"{I}tl.atomic_add(p, i)"),
        Refused("a mask of blocks for a scalar", f"{I}tl.atomic_add(p, 1, mask=i > 3)"),
        Refused("a mask of numbers", f"{I}tl.atomic_add(p + i, i, mask=i)"),
    ],
    "atomic_load": [Refused("an order of stores", "v = tl.atomic_load(p, sem='release')")],
    "atomic_store": [Refused("an order of loads", "tl.atomic_store(p, 1, sem='acquire')")],
    "atomic_poll": [
        Refused("a negative time", "v = tl.atomic_poll(p, 1, timeout_ns=-1)"),
        Refused("no pointer", "v = tl.atomic_poll(n, 1)"),
        Refused("8 bits", "v = tl.atomic_poll(q, 1)"),
        Refused("an order of stores", "v = tl.atomic_poll(p, 1, sem='release')"),
        Refused("times of elements", f"{I}v = tl.atomic_poll(p, 1, timeout_ns=i)"),
    ],
    "atomic_cas": [Refused("8 bits", "v = tl.atomic_cas(q, tl.load(q), tl.load(q))")],
    "atomic_max": [Elsewhere(FIRST)],
    "atomic_min": [Elsewhere(FIRST)],
    "_str_to_dot_input_precision": [Refused("an unknown precision", f"{M}v = tl.dot(m, m, input_precision='best')")],
    "dot": [
        Refused("scalars", "v = tl.dot(n, n)"),
        Refused("32-bit integers", f"{M}v = tl.dot(m.to(tl.int32), m)"),
        Refused("32-bit integers on the right", f"{M}v = tl.dot(m, m.to(tl.int32))"),
        Refused("two types", f"{M}v = tl.dot(m, m.to(tl.float32))"),
        Refused("rows", f"{I}v = tl.dot(i.to(tl.float16), i.to(tl.float16))"),
        Refused("sizes that do not fit", f"{M}v = tl.dot(m, tl.full((64, 32), 0, tl.float16))"),
        Elsewhere(TARGETS),
        Refused(
            "a sum over too few elements",
            f"{M}v = tl.dot(tl.full((32, 4), 0, tl.float16), tl.full((4, 32), 0, tl.float16))",
        ),
        Refused("unsigned bytes", f"{M}v = tl.dot(m.to(tl.uint8), m.to(tl.uint8))"),
        Refused("a sum in bf16", f"{M}v = tl.dot(m, m, tl.zeros((32, 32), tl.bfloat16))"),
        Refused("an accumulator of another shape", f"{M}v = tl.dot(m, m, tl.zeros((32, 64), tl.float32))"),
        Refused(
            "an accumulator of another type",
            f"{M}v = tl.dot(m, m, tl.zeros((32, 32), tl.float16), out_dtype=tl.float32)",
        ),
        Refused(
            "more imprecise sums than elements",
            f"{M}v = tl.dot(m.to(tl.float8e5), m.to(tl.float8e5), max_num_imprecise_acc=64)",
        ),
    ],
    "_str_to_fp_type": [Refused("an unknown format", f"{M}{S}v = tl.dot_scaled(m, s, 'e9m9', m, s, 'bf16')")],
    "_bitcast_to_fp_type": [
        Elsewhere(FIRST),
        Refused("fp4 that is not packed", f"{M}{S}v = tl.dot_scaled(m, s, 'e2m1', m, s, 'bf16')"),
        Refused("bytes of another size", f"{M}{S}v = tl.dot_scaled(m, s, 'e4m3', m, s, 'bf16')"),
    ],
    "verify_scaled_shape": [
        Elsewhere("of Gluon's products; ours refuses such scales for `tl.dot_scaled`"),
        Elsewhere("of Gluon's products; ours refuses such scales for `tl.dot_scaled`"),
    ],
    "dot_scaled": [
        Refused("scalars", "v = tl.dot_scaled(n, None, 'fp16', n, None, 'fp16')"),
        Refused("rows", f"{I}v = tl.load(h + i);; v = tl.dot_scaled(v, None, 'fp16', v, None, 'fp16')"),
        Elsewhere(FIRST),
        Elsewhere(FIRST),
        Refused(
            "fp16 that is packed along its rows",
            f"{M}v = tl.dot_scaled(m, None, 'fp16', m, None, 'fp16', lhs_k_pack=False)",
        ),
        Refused(
            "fp16 that is packed along its columns",
            f"{M}v = tl.dot_scaled(m, None, 'fp16', m, None, 'fp16', rhs_k_pack=False)",
        ),
        Refused(
            "sums over different sizes",
            f"{M}v = tl.dot_scaled(m, None, 'fp16', tl.full((64, 32), 0, tl.float16), None, 'fp16')",
        ),
        Refused(
            "an accumulator of another shape",
            f"{M}v = tl.dot_scaled(m, None, 'fp16', m, None, 'fp16', tl.zeros((32, 64), tl.float32))",
        ),
        Refused(
            "an accumulator of another type",
            f"{M}v = tl.dot_scaled(m, None, 'fp16', m, None, 'fp16', tl.zeros((32, 32), tl.float16))",
        ),
    ],
    "reduction": [
        Refused("an axis that there is not", f"{I}v = tl.reduce(i, 3, sum_of)"),
        Refused("blocks of different shapes", f"{I}v = tl.reduce((i, tl.arange(0, 64)), 0, two)"),
        Refused("a function that returns another type", f"{I}v, k = tl.reduce((i, i), 0, mixed_pairs)"),
    ],
    "associative_scan": [
        Refused("an axis that there is not", f"{I}v = tl.associative_scan(i, 3, sum_of)"),
        Refused("blocks of different shapes", f"{I}v = tl.associative_scan((i, tl.arange(0, 64)), 0, two)"),
        Refused("a function that returns another type", f"{I}v, k = tl.associative_scan((i, i), 0, mixed_pairs)"),
    ],
    "gather": [
        Refused("indices that are floats", f"{I}v = tl.gather(i, i.to(tl.float32), 0)"),
        Refused("indices of another rank", f"{I}v = tl.gather(i, i[:, None], 0)"),
        Refused("an axis that there is not", f"{I}v = tl.gather(i, i, 3)"),
        Refused("indices of another size", f"{M}v = tl.gather(m, tl.full((32, 64), 0, tl.int32), 0)"),
    ],
    "map_elementwise": [Refused("no values", "v = tl.map_elementwise(same)"), Elsewhere(INVARIANT)],
    "histogram": [
        Refused("two dimensions", f"{M}v = tl.histogram(m.to(tl.int32), 32)"),
        Refused("8 bits", f"{I}v = tl.histogram(i.to(tl.int8), 32)"),
        Refused("a mask of numbers", f"{I}v = tl.histogram(i, 32, mask=i)"),
    ],
    "multiple_of": [Refused("a number too many", f"{I}v = tl.multiple_of(i, [8, 8])")],
    "max_contiguous": [Refused("a number too many", f"{I}v = tl.max_contiguous(i, [8, 8])")],
    "max_constancy": [Refused("a number too many", f"{I}v = tl.max_constancy(i, [8, 8])")],
    "_convert_elem_to_ir_value": [
        Elsewhere("of block pointers, which stock has no more"),
        Refused("an offset beyond 32 bits", f"{D}v = d.load([{1 << 31}, 0])"),
        Refused("a block as an offset", f"{D}v = d.load([tl.arange(0, 8), 0])"),
        Refused("a float as an offset", f"{D}v = d.load([f, 0])"),
        Refused("an offset of 64 bits", f"{D}v = d.load([w, 0])"),
        Refused("a text as an offset", f"{D}v = d.load(['a', 0])"),
    ],
    "_check_tensor_descriptor_alignment_static": [
        Refused(
            "rows that are no multiple of 16 bytes apart",
            "v = tl.make_tensor_descriptor(h, [64, 60], [60, 1], [16, 16])",
        )
    ],
    "make_tensor_descriptor": [
        Refused("six dimensions", "v = tl.make_tensor_descriptor(h, [8] * 6, [8] * 5 + [1], [8] * 6)"),
        Refused("a stride too few", "v = tl.make_tensor_descriptor(h, [64, 64], [1], [16, 16])"),
        Refused("a size of the block too few", "v = tl.make_tensor_descriptor(h, [64, 64], [64, 1], [16])"),
        Refused("no pointer", "v = tl.make_tensor_descriptor(n, [64, 64], [64, 1], [16, 16])"),
        Refused("rows of less than 16 bytes", "v = tl.make_tensor_descriptor(h, [64, 64], [64, 1], [16, 4])"),
        Refused(
            "elements that do not lie side by side", "v = tl.make_tensor_descriptor(h, [64, 64], [64, 8], [16, 16])"
        ),
        Refused("a block of pointers", f"{I}v = tl.make_tensor_descriptor(h + i, [64, 64], [64, 1], [16, 16])"),
        Refused(
            "NaN for integers", "v = tl.make_tensor_descriptor(p, [64, 64], [64, 1], [16, 16], padding_option='nan')"
        ),
    ],
}
"""Of `language/semantic.py`, by the methods of its class."""

CORE: dict[str, list[Refused | Taken | Elsewhere]] = {
    "builtin.wrapper": [Refused("a function of the language outside of kernels", "tl.program_id(0)", host=True)],
    "base_value._set_name": [Elsewhere(ABSTRACT)],
    "base_value._flatten_ir": [Elsewhere(ABSTRACT)],
    "base_type.__eq__": [Elsewhere(ABSTRACT)],
    "base_type._unflatten_ir": [Elsewhere(ABSTRACT)],
    "base_type.mangle": [Elsewhere(ABSTRACT)],
    "base_type._flatten_ir_types": [Elsewhere(ABSTRACT)],
    "dtype.__init__": [
        Refused("a type that there is not", "tl.dtype('int7')", host=True),
        Elsewhere(INVARIANT),
    ],
    "dtype.kind": [Elsewhere(INVARIANT)],
    "dtype.get_int_max_value": [Refused("the largest float", "tl.float32.get_int_max_value()", host=True)],
    "dtype.get_int_min_value": [Refused("the smallest float", "tl.float32.get_int_min_value()", host=True)],
    "dtype.is_void": [Elsewhere("an attribute that ours does not have")],
    "dtype.to_ir": [
        Refused("a float of 8 bits that the GPU lacks", "v = n.to(tl.float8e4b8)"),
        Elsewhere(INVARIANT),
    ],
    "dtype.with_element_ty": [Elsewhere(INVARIANT)],
    "pointer_type.__init__": [Refused("a pointer to no type", "tl.pointer_type(5)", host=True)],
    "block_type.__init__": [
        Refused("a shape that is no tuple", "tl.block_type(tl.int32, 5)", host=True),
        Refused("no dimension", "tl.block_type(tl.int32, [])", host=True),
    ],
    "get_int_dtype": [Refused("integers of 7 bits", "tl.core.get_int_dtype(7, True)", host=True)],
    "tensor.__getitem__": [
        Refused("too many indices", f"{I}v = i[:, :]"),
        Refused("an index that is a number", f"{I}v = i[3]"),
    ],
    "tensor.T": [Elsewhere(INVARIANT)],
    "tuple.__getitem__": [Refused("an index of run time", "v = (n, f)[n]")],
    "tuple.__getattr__": [Refused("an attribute that there is not", "v = (n, f).a")],
    "tuple._setitem": [Elsewhere("an assignment to an item, which both refuse before")],
    "tuple.__mul__": [Refused("a number of copies of run time", "v = (n, f) * n")],
    "tensor_descriptor_base.gather": [Refused("an offset too many", f"{G}v = d.gather(i, 0, 0)")],
    "tensor_descriptor_base.scatter": [Refused("an offset too many", f"{G}d.scatter(d.gather(i, 0), i, 0, 0)")],
    "_resolve_aggregate_fields": [
        Refused("a base that is no aggregate", "@aggregate\nclass Child(NoAggregate):\n    a: tl.tensor", host=True)
    ],
    "_aggregate.init": [
        Refused("a field too many", "v = Pair(n, 2, 3)"),
        Refused("a field twice", "v = Pair(n, 2, a=n)"),
        Refused("a field too few", "v = Pair(n)"),
        Refused("a field that there is not", "v = Pair(n, 2, c=3)"),
    ],
    "_aggregate.aggregate_value.__new__": [Refused("a field that `__init__` leaves out", "v = Unfinished(n)")],
    "_aggregate.aggregate_value.__setattr__": [
        Refused("a field that is not declared", "v = Surplus(n)"),
        Refused("a field of another class", "v = Pair(n, n)"),
        Refused("a field of a finished one", "v = Pair(n, 2);; v.a = n"),
    ],
    "aggregate_replace": [
        Refused("no aggregate", "v = tl.aggregate_replace(n, a=n)"),
        Refused("a field that there is not", "v = tl.aggregate_replace(Pair(n, 2), c=n)"),
    ],
    "trans": [Refused("one dimension", f"{I}v = tl.trans(i)")],
    "cat": [
        Refused("different ranks", f"{I}v = tl.cat(i, i[:, None], dim=0)"),
        Refused("different sizes", f"{I}v = tl.cat(i, tl.arange(0, 64), dim=0)"),
    ],
    "_unsplat": [Refused("a block of many as a number", f"{I}v = i.item()")],
    "_wrap_axis": [Refused("an axis that there is not", f"{I}v = tl.expand_dims(i, 3)")],
    "expand_dims": [Refused("an axis twice", f"{I}v = tl.expand_dims(i, (1, 1))")],
    "dot": [
        Refused("two precisions", f"{M}v = tl.dot(m, m, input_precision='tf32', allow_tf32=True)"),
        Refused("different ranks", f"{M}v = tl.dot(m, m[None, :, :])"),
        Refused(
            "different batches",
            f"{M}v = tl.dot(tl.full((2, 32, 32), 0, tl.float16), tl.full((4, 32, 32), 0, tl.float16))",
        ),
        Refused("sums over different sizes", f"{M}v = tl.dot(m, tl.full((16, 32), 0, tl.float16))"),
        Refused("an accumulator of another shape", f"{M}v = tl.dot(m, m, tl.zeros((16, 32), tl.float32))"),
        Elsewhere(INVARIANT),
    ],
    "dot_scaled": [
        Refused("a sum in fp16", f"{M}v = tl.dot_scaled(m, None, 'fp16', m, None, 'fp16', out_dtype=tl.float16)")
    ],
    "_CachePolicy.__post_init__": [
        Refused("a modifier that is no text", "v = tl.load(x, cache_modifier=3)"),
        Refused("a policy that is no text", "v = tl.load(x, eviction_policy=3)"),
        Elsewhere("of `cache_policy`, which ours does not have: its own test below"),
        Elsewhere("of `cache_policy`, which ours does not have"),
    ],
    "_normalize_cache_policy": [
        Elsewhere("of `cache_policy`, which ours does not have"),
        Elsewhere("of `cache_policy`, which ours does not have"),
    ],
    "make_block_ptr": [
        Taken(
            "block pointers",
            "v = tl.make_block_ptr(x, (64, 64), (64, 1), (0, 0), (16, 16), (1, 0))",
            "ours keeps them for kernels of earlier versions",
        )
    ],
    "advance": [
        Taken(
            "block pointers",
            "v = tl.make_block_ptr(x, (64, 64), (64, 1), (0, 0), (16, 16), (1, 0));; v = tl.advance(v, (0, 16))",
            "ours keeps them for kernels of earlier versions",
        )
    ],
    "map_elementwise": [
        Refused("no elements at a time", f"{I}v = tl.map_elementwise(same, i, pack=0)"),
        Refused("two types of one result", f"{I}v = tl.map_elementwise(mixed, i, pack=2)"),
    ],
    "multiple_of": [
        Refused("a number of run time", f"{I}v = tl.multiple_of(i, [n])"),
        Refused("a float", f"{I}v = tl.multiple_of(i, [8.0])"),
    ],
    "max_contiguous": [
        Refused("a number of run time", f"{I}v = tl.max_contiguous(i, [n])"),
        Refused("a float", f"{I}v = tl.max_contiguous(i, [8.0])"),
    ],
    "max_constancy": [
        Refused("a number of run time", f"{I}v = tl.max_constancy(i, [n])"),
        Refused("a float", f"{I}v = tl.max_constancy(i, [8.0])"),
    ],
    "device_print": [
        Refused("no text first", "tl.device_print(n)"),
        Refused("a text beyond ASCII", "tl.device_print('grün', n)"),
    ],
    "static_range.__init__": [
        Refused("a first value of run time", "for v in tl.static_range(n, 8):\n    pass"),
        Refused("a step of run time", "for v in tl.static_range(0, 8, n):\n    pass"),
        Refused("a limit of run time", "for v in tl.static_range(n):\n    pass"),
    ],
    "static_range.__iter__": [Refused("a loop outside of kernels", "for v in tl.static_range(3): pass", host=True)],
    "static_range.__next__": [Elsewhere("never reached: `__iter__` refuses")],
    "range.__iter__": [Refused("a loop outside of kernels", "for v in tl.range(3): pass", host=True)],
    "range.__next__": [Elsewhere("never reached: `__iter__` refuses")],
    "dispatch": [Elsewhere("of libraries in LLVM's bitcode, whose functions ours has in a table")] * 3,
    "builtin_max": [
        Refused("a propagation of NaN", "v = max(1, 2, propagate_nan=tl.PropagateNan.ALL)"),
        Taken("NaN", "v = max(float('nan'), 1.0)", "ours does as Python does at compile time"),
        Taken("a negative zero", "v = max(-0.0, 1.0)", "ours does as Python does at compile time"),
        Refused("one value", "v = max(n)"),
    ],
    "builtin_min": [
        Refused("a propagation of NaN", "v = min(1, 2, propagate_nan=tl.PropagateNan.ALL)"),
        Taken("NaN", "v = min(float('nan'), 1.0)", "ours does as Python does at compile time"),
        Taken("a negative zero", "v = min(-0.0, 1.0)", "ours does as Python does at compile time"),
        Refused("one value", "v = min(n)"),
    ],
}
"""Of `language/core.py`."""

JIT: dict[str, list[Refused | Taken | Elsewhere]] = {
    "DependenciesFinder._update_hash": [Elsewhere("of hashes: ours reads the values of globals anew")],
    "DependenciesFinder.record_reference": [Elsewhere("of references that ours refuses where they are called")],
    "DependenciesFinder.visit_arguments.visit_defaults": [Elsewhere(INVARIANT)],
    "DependenciesFinder.visit_Assign": [
        Taken("several targets", "v = k = n", "ours takes one value for all targets, as Python does")
    ],
    "_normalize_ty": [Elsewhere("of annotations such as 'const float*': the value's type counts")],
    "KernelInterface.run": [Elsewhere(ABSTRACT)],
    "create_function_from_signature": [Elsewhere(INVARIANT)],
    "JITCallable.__init__": [
        Elsewhere("of a function without a file: ours reports it when it is compiled, and the decorator does not raise")
    ],
    "JITCallable.parse": [Elsewhere(INVARIANT), Elsewhere(INVARIANT)],
    "JITCallable._set_src": [Elsewhere("an attribute that our kernels inherit")],
    "JITFunction.add_pre_run_hook": [Refused("a hook that is none", "same.add_pre_run_hook(5)", host=True)],
    "JITFunction._pack_args": [Elsewhere(LAUNCH)] * 4,
    "JITFunction.run": [Elsewhere("of a global that has changed: ours compiles anew")],
    "JITFunction.__init__": [
        Elsewhere("of `**kwargs`: ours reports it when the kernel is compiled, and the decorator does not raise")
    ],
    "JITFunction.preload": [Elsewhere(PRELOAD)] * 2,
    "JITFunction.preload._decode_constant": [Elsewhere(PRELOAD)],
    "JITFunction.__call__": [Refused("a call like a function's", "same(3)", host=True)],
    "reinterpret": [Elsewhere("a function of Triton's own")],
    "get_def_col_number": [Elsewhere(INVARIANT)],
}
"""Of `runtime/jit.py`."""

GENERATOR: dict[str, list[Refused | Taken | Elsewhere]] = {
    "check_identifier_legality": [
        Elsewhere("of names beyond ASCII: ours gives such a kernel an ASCII name in the module")
    ],
    "_check_fn_args": [
        Taken("a block for a function that stays a call", f"{I}v = apart(i)", "ours passes blocks, too")
    ],
    "_check": [Refused("returns of different types", "v = first_of_types(n)")],
    "_apply_to_tuple_values": [Elsewhere(INVARIANT)],
    "unflatten_ir_values": [Elsewhere(INVARIANT)],
    "_define_name_lookup.global_lookup": [Refused("a global that is no constexpr", "v = n + GLOBAL")],
    "_define_name_lookup.name_lookup": [Refused("a name that there is not", "v = n + nowhere")],
    "_find_carries": [
        Refused("a constant that a loop assigns", "v = tl.float32\nfor k in range(n):\n    v = tl.float16")
    ],
    "visit_List": [Elsewhere(INVARIANT)],
    "visit_ListComp": [
        Refused("two loops in a comprehension", "v = [a + c for a in (1, 2) for c in (1, 2)]"),
        Refused("a comprehension over a block", f"{I}v = [a for a in i]"),
    ],
    "decide_return_type": [Elsewhere(INVARIANT)],
    "cast_to": [Elsewhere(INVARIANT)],
    "handle_returns": [Elsewhere(INVARIANT)] * 3,
    "visit_FunctionDef": [Refused("a function in a function", "v = with_inner(n)"), Elsewhere(INVARIANT)],
    "visit_arg": [Elsewhere("of `do_not_specialize` with a constexpr: tests/unit/frontend/test_specialised_ones.py")],
    "visit_AnnAssign": [Refused("a constexpr again", "v: tl.constexpr = 3;; v: tl.constexpr = 4")],
    "assignTarget": [
        Elsewhere(INVARIANT),
        Refused("an attribute of a value", "n.a = 3"),
        Elsewhere(INVARIANT),
    ],
    "_sanitize_target_value": [
        Refused("a number in two", "v, k = n"),
        Taken("a starred target", "v, *k = (n, f, u)", "ours takes the rest as a tuple, as Python does"),
        Refused("too many values", "v, k = (n, f, u)"),
    ],
    "visit_Assign": [Elsewhere("several targets: see `DependenciesFinder.visit_Assign`")],
    "_get_operator": [Refused("'@'", "v = n @ n")],
    "_apply_binary_method": [Refused("an operator that an operand does not have", "v = Pair(n, 2) + Pair(n, 2)")],
    "visit_then_else_blocks": [
        Refused("a value of another type after one branch", "v = n\nif n > 3:\n    v = f"),
        Refused("values of two types", "if n > 3:\n    v = n\nelse:\n    v = f\nk = v"),
    ],
    "visit_if_top_level": [Elsewhere(INVARIANT)] * 4,
    "visit_If": [
        Refused("a branch on a block", f"{I}if i > 3:\n    pass"),
        Refused("a return in a loop", "for v in range(n):\n    if n > v:\n        return"),
        Refused("a branch on a tuple", "if (n, f):\n    pass"),
    ],
    "visit_IfExp": [
        Refused("values of two types", "v = n if n > 3 else f"),
        Refused("a choice by a tuple", "v = n if (n, f) else n"),
    ],
    "visit_With": [Elsewhere("of context managers, which stock's language has none of: tasks may not return")],
    "visit_UnaryOp": [
        Elsewhere(INVARIANT),
        Refused("an operator that an operand does not have", "v = ~Pair(n, 2)"),
        Elsewhere("an operator that returns NotImplemented: refused as one that there is not"),
    ],
    "_verify_loop_carried_variable": [
        Refused("a value that the loop makes a function", "v = n\nfor k in range(n):\n    v = same"),
        Elsewhere(FIRST),
        Refused("a kind that the loop changes", "v = n\nfor k in range(n):\n    v = (n, n)"),
        Refused("an element type that the loop changes", "v = n\nfor k in range(n):\n    v = v * 1.5"),
    ],
    "visit_While": [Refused("an 'else' of a loop", "v = n\nwhile v > 3:\n    v = v - 1\nelse:\n    v = 3")],
    "visit_Subscript_Load": [Elsewhere(INVARIANT)],
    "visit_Subscript_Store": [Refused("an assignment to an item", f"{I}i[0] = 3")],
    "visit_For": [
        Refused("a loop over a tuple", "for v in two(n, n):\n    pass"),
        Refused("a float as a bound", "for v in range(f):\n    pass"),
        Refused("a block as the first value", f"{I}for v in range(i, 8):\n    pass"),
        Refused("a block as the limit", f"{I}for v in range(i):\n    pass"),
        Refused("a block as the step", f"{I}for v in range(0, 8, i):\n    pass"),
        Elsewhere(INVARIANT),
        Refused("an 'else' of a loop", "v = n\nfor k in range(n):\n    v = k\nelse:\n    v = 3"),
    ],
    "call_JitFunction": [Elsewhere(RERAISE), Refused("an error in a function", "v = wrong(n)")],
    "call_Function": [
        Elsewhere("of block pointers, which stock has no more; ours refuses `tl.advance` whose result is unused"),
        Elsewhere(RERAISE),
        Refused("an error in a function of the language", "v = tl.arange(0, 3)"),
    ],
    "visit_Call": [Refused("a number that is spread", "v = two(*n)")],
    "_apply_boolean_values": [Elsewhere(INVARIANT)],
    "visit_JoinedStr": [
        Refused("a value of run time in a text", "tl.static_print(f'{n}')"),
        Elsewhere(INVARIANT),
    ],
    "visit": [Elsewhere(RERAISE), Elsewhere(RERAISE), Elsewhere(RERAISE)],
    "generic_visit": [Refused("a construct that kernels do not have", "v = {1, 2}")],
    "execute_static_assert": [
        Refused("no condition", "tl.static_assert()"),
        Refused("a condition of run time", "tl.static_assert(n > 3)"),
        Refused("a condition that does not hold", "tl.static_assert(1 > 3)"),
    ],
    "ast_to_ttir": [Elsewhere(INVARIANT)],
}
"""Of `compiler/code_generator.py`, by functions and the methods of its class."""

TABLE = {
    "language/semantic.py": SEMANTIC,
    "language/core.py": CORE,
    "runtime/jit.py": JIT,
    "compiler/code_generator.py": GENERATOR,
}
