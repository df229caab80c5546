"""Features of the language that the kernels must show, and the look of each in a kernel's source.

Functions of the language are features too; those whose name says all are in `FUNCTIONS` and `METHODS`.
"""

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.gallery.cases import Case
from tests.oracle import loading

FEATURES = {
    # Control flow
    "for in for": r"\n( +)for .*:\n(?:\1 .*\n)*?\1    for ",
    "for in while": r"\n( +)while .*:\n(?:\1 .*\n)*?\1 +for ",
    "while in for": r"\n( +)for .*:\n(?:\1 .*\n)*?\1    while ",
    "while in while": r"\n( +)while .*:\n(?:\1 .*\n)*?\1    while ",
    "if in for": r"\n( +)for .*:\n(?:\1 .*\n)*?\1    if ",
    "for in if": r"\n( +)if .*:\n(?:\1 .*\n)*?\1    for ",
    "if, elif, else": r"\n( +)if .*:\n(?:\1 .*\n)+\1elif .*:\n(?:\1 .*\n)+\1else:",
    "early return": r"\n        return\n(.*\n)*?    tl\.store",
    "early return of a value": r"\n        return \w+\n(.*\n)*?    return ",
    "return in both branches": r"return .*\n    else:\n        return ",
    "conditional expression": r" = .* if .* else ",
    "nested conditional expression": r" else \(.* if .* else ",
    "and, or, not": r"\band\b(.*\n)*.*\bor\b(.*\n)*.*\bnot\b",
    "chained comparison": r"0 < n < 9",
    "cut short at compile time": r"does_not_exist",
    "static_range": r"tl\.static_range\(\w+\)",
    "static_range with a step": r"tl\.static_range\(4, 0, -2\)",
    "range with a negative step": r"range\(n, 0, -2\)",
    "range with a run-time step": r"range\(0, n, step\)",
    "num_stages": r"tl\.range\(.*num_stages=",
    "loop_unroll_factor": r"loop_unroll_factor=",
    "disallow_acc_multi_buffer": r"disallow_acc_multi_buffer=",
    "disable_licm": r"tl\.range\(.*disable_licm=",
    "flatten": r"flatten=",
    "warp_specialize": r"warp_specialize=",
    "condition": r"while tl\.condition\(.*disable_licm",
    "augmented assignment": r"(?s)\+= .*-= .*\*= .*/= .*//= .*%= .*<<= .*>>= .*&= .*\|= .*\^= ",
    # Functions and tuples
    "call in call": r"_square\(a\) \+ _square\(b\)",
    "function that isn't inlined": r"noinline=True",
    "default argument": r"def _\w+\(.*=\d",
    "keyword-only argument": r"def _\w+\(.*\*, ",
    "keyword arguments in another order": r"_window\(high=.*index=",
    "*args": r"def _\w+\(\*\w+\)",
    "spread arguments": r"_forward\(\*\w+",
    "function as a value": r"def _apply\(function: tl\.constexpr",
    "tuple as a result": r"return tl\.minimum\(.*\), tl\.maximum",
    "nested tuple": r"\(\w+, \w+\), \w+ = nested",
    "tuple in a loop": r"a, b = b, a \+ b",
    "slice of a tuple": r"\)\[1:\]",
    "len of a tuple": r"len\(values\)",
    "tuple as an argument": r"pair\[0\] \+ index",
    "named tuple": r"\(NamedTuple\)",
    "aggregate": r"@aggregate\b",
    "method of an aggregate": r"self\.index\(\)",
    "aggregate in an aggregate": r"self\.left\.read\(\)",
    # What is known at compile time
    "constexpr annotation": r"\n    \w+: tl\.constexpr = ",
    "constexpr global": r"\bWIDTH\b",
    "constexpr function": r"@triton\.constexpr_function",
    "f-string": r"f\"\{NAME\}",
    "static_assert": r"tl\.static_assert\(.*, f",
    "static_print": r"tl\.static_print\(",
    "assert": r"\n    assert ",
    "is None": r"EXTRA is None",
    "string as a value": r"MODE == \"relu\"",
    "type as a value": r"\.to\(DTYPE\)",
    "shape as a value": r"SHAPE\[0\]",
    "attributes of values": r"out\.dtype\.element_ty",
    # Operators and types
    "true division of integers": r"long / long",
    "number on the left": r"2\.5 - a",
    "bool in arithmetic": r"flag \+ h",
    "negation": r"-a\b",
    "complement": r"~\w",
    "shifts": r"<< 2(.*\n)*.*>> 3",
    "logical methods": r"\.logical_and\(.*\n.*\.logical_or\(",
    "bitcast": r"bitcast=True",
    "rounding": r"fp_downcast_rounding=\"rtz\"",
    "integer to pointer": r"\.to\(tl\.pointer_type\(",
    "pointer to integer": r"tl\.store\(p \+ 1, x\.to\(tl\.int64\)\)",
    "None in a subscript": r"\[:, None\]",
    "slices in a subscript": r"\[:, :\]",
    # Memory
    "fill value": r"other=",
    "cache modifier of a load": r"tl\.load\(.*cache_modifier=",
    "cache modifier of a store": r"tl\.store\(.*cache_modifier=",
    "eviction policy": r"eviction_policy=\"evict_first\"",
    "volatile": r"volatile=True",
    "descriptor as an argument": r"x\.load\(\[",
    "descriptor made in the kernel": r"tl\.make_tensor_descriptor\(",
    "padding of a descriptor": r"padding_option=",
    "gather through a descriptor": r"source\.gather\(",
    "scatter through a descriptor": r"target\.scatter\(",
    "shape and strides of a descriptor": r"x\.strides\[0\](.*\n)*.*x\.shape\[0\]",
    "memory order": r"sem=\"acq_rel\"",
    "scope": r"scope=\"sys\"",
    "input precision": r"input_precision=\"tf32x3\"",
    "allow_tf32": r"allow_tf32=",
    "max_num_imprecise_acc": r"max_num_imprecise_acc=",
    "accumulator": r"acc=",
    "result type of a product": r"out_dtype=",
    "batched product": r"tl\.dot\(a, tl\.permute",
    # Reductions, assembly, debugging
    "reduction over all axes": r"tl\.reduce\(a, None",
    "reduction of two values": r"tl\.reduce\(\(",
    "reduction with its own branch": r"combine_fn|_saturating",
    "kept dimension": r"keep_dims=True",
    "sum of another type": r"tl\.sum\(.*dtype=",
    "place of an extreme": r"return_indices=True",
    "ties": r"tie_break_left=False",
    "reverse scan": r"reverse=True",
    "scan of two values": r"tl\.associative_scan\(\(",
    "NaN kept": r"PropagateNan\.ALL|propagate_nan",
    "libdevice": r"libdevice\.pow\(",
    "assembly with two results": r"dtype=\(tl\.int32, tl\.int32\)",
    "packed assembly": r"pack=4",
    "impure assembly": r"is_pure=False",
    "print in hexadecimal": r"hex=True",
    "print": r"\n    print\(",
    "gdc": r"cuda\.gdc_wait\(\)(.*\n)*.*cuda\.gdc_launch_dependents\(\)",
    "globaltimer, smid": r"cuda\.globaltimer\(\)(.*\n)*.*cuda\.smid\(\)",
    "num_warps, num_threads": r"cuda\.num_warps\(\).*cuda\.num_threads\(\)",
}
"""Feature -> a pattern that the source of a kernel, and of what it calls, must match."""

FUNCTIONS = [
    "abs", "arange", "argmax", "argmin", "associative_scan", "assume", "atomic_add", "atomic_and", "atomic_cas",
    "atomic_load", "atomic_max", "atomic_min", "atomic_or", "atomic_poll", "atomic_store", "atomic_xchg",
    "atomic_xor", "bitonic_merge", "broadcast", "broadcast_to", "cast", "cat", "cdiv", "ceil", "clamp", "cos",
    "cumprod", "cumsum", "debug_barrier", "device_assert", "device_print", "div_rn", "dot", "dot_scaled", "erf",
    "exp", "exp2", "expand_dims", "expect_zero", "fdiv", "flip", "floor", "fma", "full", "gather", "histogram",
    "inline_asm_elementwise", "interleave", "join", "load", "load_tensor_descriptor", "log", "log2",
    "make_tensor_descriptor", "map_elementwise", "max", "max_constancy", "max_contiguous", "maximum", "min",
    "minimum", "multiple_of", "num_programs", "pair_uniform_to_normal", "permute", "philox", "program_id", "rand",
    "rand4x", "randint", "randint4x", "randn", "randn4x", "range", "ravel", "reduce", "reduce_or", "reshape",
    "rsqrt", "sigmoid", "sin", "softmax", "sort", "split", "sqrt", "sqrt_rn", "squeeze", "static_assert",
    "static_print", "static_range", "store", "store_tensor_descriptor", "sum", "swizzle2d", "to_tensor", "topk",
    "trans", "uint_to_uniform_float", "umulhi", "unsqueeze", "view", "where", "xor_sum", "zeros", "zeros_like",
]  # fmt: skip
"""Functions of `tl` that some kernel must call."""

METHODS = [
    "abs", "argmax", "atomic_add", "atomic_cas", "atomic_and", "atomic_max", "atomic_min", "atomic_or", "atomic_xor",
    "broadcast_to", "cdiv", "ceil", "cumsum", "exp", "flip", "floor", "gather", "histogram", "load", "log2", "max",
    "permute", "reshape", "scatter", "sigmoid", "split", "sqrt_rn", "store", "sum", "to", "trans", "logical_and",
    "logical_or",
]  # fmt: skip
"""Methods of blocks and of descriptors that some kernel must call."""


def table() -> dict[str, list[str]]:
    """Return for each feature the kernels that show it."""
    patterns = {
        **{name: re.compile(pattern) for name, pattern in FEATURES.items()},
        **{f"tl.{name}": re.compile(rf"\btl\.(?:math\.)?{name}\(") for name in FUNCTIONS},
        **{f".{name}(...)": re.compile(rf"(?<!\btl)(?<!\bmath)(?<!libdevice)\.{name}\(") for name in METHODS},
    }
    sources = {
        name: source(path, case) for path in loading.files() for name, case in loading.load(path, ours=False).items()
    }
    return {
        feature: [name for name, text in sources.items() if pattern.search(text)]
        for feature, pattern in patterns.items()
    }


def source(path: Path, case: Case) -> str:
    """Return the source of a kernel and of all that it uses of its file."""
    module = sys.modules[case.kernel.fn.__module__]
    return "\n".join(_sources(module, path, case.kernel.fn.__name__, set()))


def _sources(module: object, path: Path, name: str, seen: set[str]) -> Iterator[str]:
    found = getattr(module, name, None)
    function = getattr(found, "fn", found)
    if name in seen or getattr(function, "__module__", None) != getattr(module, "__name__", ""):
        return
    seen.add(name)
    text = _definition(path, name)
    yield text
    for word in sorted(set(re.findall(r"\w+", text))):
        yield from _sources(module, path, word, seen)


@functools.cache
def _definition(path: Path, name: str) -> str:
    """Return the text of a function or a class of a file, with its decorators."""
    pattern = rf"^(?:@.*\n)*(?:def|class) {name}\b.*\n(?:(?:[ )].*)?\n)*"
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[0] if match else ""
