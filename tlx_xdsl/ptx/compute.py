"""Instructions that only compute (PTX ISA, "Integer", "Floating Point", "Comparison and Selection", "Logic and Shift").

What is frequent is an expression of numpy here. All else is what inline assembly runs as, too, in the same views
(`numerics/ptx/`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tlx_xdsl.numerics.arrays import Array, Dtype
from tlx_xdsl.numerics.directed_rounding import rounded
from tlx_xdsl.numerics.elementwise import EXTREMA
from tlx_xdsl.numerics.matmul import E2M1
from tlx_xdsl.numerics.ptx.conversions import CONVERSIONS
from tlx_xdsl.numerics.ptx.instructions import INSTRUCTIONS, TYPES as PTX_TYPES, Compiled, Vectors

from . import carries, contraction
from .arithmetic import approximate, floats, mufu
from .arithmetic.approximate import FUNCTIONS
from .arithmetic.kinds import KINDS, PLAIN, TYPES
from .read.syntax import Number, Pair, Register, Vector
from .steps import Context, Step

Form: TypeAlias = Callable[[Context, list[str], list[str]], Step | None]
"""Takes the modifiers that are no types, and the types; gives None for what it does not know."""


def _split(context: Context) -> tuple[list[str], list[str]]:
    parts = context.instruction.modifiers
    return [part for part in parts if part not in TYPES], [part for part in parts if part in TYPES]


def _plain(kind: str) -> str:
    """The view of the same width that has no sign."""
    return PLAIN[KINDS[kind].size]


def _simple(context: Context, kinds: tuple[str, ...], result: str, code: str, **names: Any) -> Step:
    context.expect(len(kinds) + 1)
    reads = tuple(context.value(context.operand(place + 1), kind) for place, kind in enumerate(kinds))
    return Step(reads, context.written(0, result), code, names)


# Forms that are written as expressions -------------------------------------------------------------------------------

_DIRECTED = {"rz": "rz", "rm": "rd", "rp": "ru"}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}


def _arithmetic(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    """`add`, `sub` and `mul` that wrap around, or round in a direction or to nearest."""
    if (product := context.instruction.product) is not None:
        return contraction.build(context, product)
    name = context.instruction.name
    if len(types) != 1:
        return None
    type_, kind = types[0], TYPES[types[0]]
    if type_ == "f32x2" and set(modifiers) <= {"rn"}:
        return _simple(context, ("f4~2",) * 2, "f4~2", f"({{0}}{_INFIX[name]}{{1}})")
    directed = next((mode for mode in modifiers if mode in _DIRECTED), None)
    others = set(modifiers) - {directed}
    if type_ in ("f32", "f64") and others <= ({"rn", "ftz", "sat"} if type_ == "f32" else {"rn"}):
        names: dict[str, Any] = {"flush": floats.flush, "saturate": floats.saturate}
        a, b = ("flush({0})", "flush({1})") if "ftz" in others else ("{0}", "{1}")
        code = f"({a}{_INFIX[name]}{b})"
        if directed is not None:
            names["directed"], code = rounded(name, KINDS[kind].dtype, _DIRECTED[directed]), f"directed({a},{b})"
        code = f"flush({code})" if "ftz" in others else code
        code = f"saturate({code})" if "sat" in others else code
        return _simple(context, (kind,) * 2, kind, code, **names)
    if KINDS[kind].dtype.kind in "ui" and KINDS[kind].lanes == 1 and modifiers == (["lo"] if name == "mul" else []):
        view = _plain(kind)
        return _simple(context, (view, view), view, f"({{0}}{_INFIX[name]}{{1}})")
    if KINDS[kind].dtype.kind in "ui" and KINDS[kind].lanes == 2 and not modifiers and name != "mul":
        view = kind.replace("x", "~")
        return _simple(context, (view, view), view, f"({{0}}{_INFIX[name]}{{1}})")
    return None


def _logic(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if modifiers or len(types) != 1:
        return None
    kind = TYPES[types[0]]
    if KINDS[kind].dtype.kind not in "uib":
        return None
    return _simple(context, (kind, kind), kind, f"({{0}}{_INFIX[context.instruction.name]}{{1}})")


def _not(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if modifiers or len(types) != 1 or KINDS[TYPES[types[0]]].dtype.kind not in "uib":
        return None
    return _simple(context, (TYPES[types[0]],), TYPES[types[0]], "(~{0})")


def _shift(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    """Shift by a constant below the width."""
    if modifiers or len(types) != 1 or len(context.instruction.operands) != 3:
        return None
    kind, by = KINDS[TYPES[types[0]]], context.operand(2)
    if not isinstance(by, Number) or kind.dtype.kind not in "ui" or not 0 <= by.value < 8 * kind.size:
        return None
    sign = "<<" if context.instruction.name == "shl" else ">>"
    view = _plain(kind.name) if sign == "<<" else kind.name
    reads = (context.read(1, view),)
    code = f"({{0}}{sign}by)"
    return Step(reads, context.written(0, view), code, {"by": KINDS[view].dtype.type(by.value)})


COMPARISONS = {
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}
"""The operators of comparisons, by the names that `setp` has for them."""


def _compare(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if len(types) != 1 or len(modifiers) != 1 or isinstance(context.operand(0), Pair):
        return None
    kind, name = KINDS[TYPES[types[0]]], modifiers[0]
    if kind.lanes > 1 or kind.size == 0 or kind.name in ("bf", "e4", "e5"):
        return None
    if kind.dtype.kind == "f":
        if name == "neu":
            return _simple(context, (kind.name,) * 2, "b", "({0}!={1})")
        if name == "ne" or name not in ("eq", "lt", "le", "gt", "ge"):
            return None
    view = _plain(kind.name) if name in ("eq", "ne") and kind.dtype.kind in "ui" else kind.name
    if name in ("lo", "ls", "hi", "hs"):
        view = _plain(kind.name)
    return _simple(context, (view,) * 2, "b", f"({{0}}{COMPARISONS[name]}{{1}})") if name in COMPARISONS else None


def _select(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if modifiers or len(types) != 1:
        return None
    kind = _plain(TYPES[types[0]]) if types[0] != "f32" else "f4"
    return _simple(context, (kind, kind, "b"), kind, "where({2},{0},{1})")


def _extremum(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if len(types) != 1:
        return None
    kind, name = KINDS[TYPES[types[0]]], context.instruction.name
    context.expect(3, 4)
    count = len(context.instruction.operands) - 1
    if kind.dtype.kind in "ui" and not modifiers and kind.lanes == 1 and count == 2:
        return _simple(context, (kind.name,) * 2, kind.name, f"np.{name}imum({{0}},{{1}})")
    if kind.dtype.kind == "i" and modifiers == ["relu"] and count == 2:
        code = f"np.maximum(np.{name}imum({{0}},{{1}}),zero)"
        return _simple(context, (kind.name,) * 2, kind.name, code, zero=kind.dtype.type(0))
    others = set(modifiers) - {"NaN", "ftz"}
    if kind.name not in ("f4", "f2") or (others and (others != {"xorsign", "abs"} or count == 3)):
        return None
    # f16 of numpy rounds nothing here, but has no fast comparison.
    code = "extremum({0},{1})" if count == 2 else "extremum(extremum({0},{1}),{2})"
    if others:
        code = "signed(extremum(np.abs({0}),np.abs({1})),{0},{1})"
    if "ftz" in modifiers:
        code = f"flush({code})"
    function = EXTREMA[name, "NaN" in modifiers]
    names = {"flush": floats.flush, "extremum": function, "signed": _with_xored_signs}
    return _simple(context, (kind.name,) * count, kind.name, code, **names)


def _with_xored_signs(size: Array, a: Array, b: Array) -> Array:
    """Negative where the sign bits of `a` and `b` differ; NaN stays as it is."""
    return np.where((np.signbit(a) != np.signbit(b)) & ~np.isnan(size), -size, size)


_CLASSES = {
    "finite": "np.isfinite({0})",
    "infinite": "np.isinf({0})",
    "number": "~np.isnan({0})",
    "notanumber": "np.isnan({0})",
    "normal": "(np.isfinite({0})&(np.abs({0})>=tiny))",
    "subnormal": "((np.abs({0})<tiny)&({0}!=0))",
}


def _test(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if types not in (["f32"], ["f64"]) or len(modifiers) != 1 or modifiers[0] not in _CLASSES:
        return None
    kind = TYPES[types[0]]
    tiny = np.finfo(KINDS[kind].dtype).smallest_normal
    return _simple(context, (kind,), "b", _CLASSES[modifiers[0]], np=np, tiny=tiny)


def _fma(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if types == ["f32x2"] and set(modifiers) <= {"rn"}:
        return _simple(context, ("f4~2",) * 3, "f4~2", "fma({0},{1},{2})", fma=floats.fma)
    directed = next((mode for mode in modifiers if mode in _DIRECTED), None)
    if types != ["f32"] or not set(modifiers) <= {directed, "rn", "ftz", "sat"}:
        return None
    fma = floats.fma if directed is None else rounded("fma", KINDS["f4"].dtype, _DIRECTED[directed])
    code = "fma({0},{1},{2})"
    if "ftz" in modifiers:
        code = "flush(fma(flush({0}),flush({1}),flush({2})))"
    if "sat" in modifiers:
        code = f"saturate({code})"
    return _simple(context, ("f4",) * 3, "f4", code, fma=fma, flush=floats.flush, saturate=floats.saturate)


def _negate(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if len(types) != 1 or not set(modifiers) <= {"ftz"}:
        return None
    kind = KINDS[TYPES[types[0]]]
    if kind.lanes > 1 or kind.size == 0:
        return None
    code = "np.negative({0})" if context.instruction.name == "neg" else "np.abs({0})"
    if "ftz" in modifiers:
        code = f"flush({code})"
    return _simple(context, (kind.name,), kind.name, code, flush=floats.flush)


_NEAREST: dict[str, Any] = {"rcp": floats.reciprocal, "sqrt": np.sqrt}
_NARROW: dict[str, Any] = {"ex2": mufu.exp2, "tanh": mufu.tangent}


def _function(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    """Functions of f32: the hardware's approximations, or rounded to nearest."""
    name, is_flushed = context.instruction.name, "ftz" in modifiers
    mode = [part for part in modifiers if part != "ftz"]
    if mode == ["approx"] and name in _NARROW and types and types[0] in ("f16", "f16x2", "bf16", "bf16x2"):
        kind = TYPES[types[0]].replace("x", "~")
        function = mufu.truncated_to(_NARROW[name], KINDS[kind].dtype)
        return _simple(context, (kind,), kind, "function({0})", function=function)
    if types != ["f32"] or mode not in (["approx"], ["rn"]):
        return None
    if mode == ["approx"] and name in FUNCTIONS:
        return _simple(context, ("f4",), "f4", "function({0})", function=FUNCTIONS[name][is_flushed])
    function = _NEAREST.get(name) if mode == ["rn"] else None
    code = "flush(function(flush({0})))" if is_flushed else "function({0})"
    return _simple(context, ("f4",), "f4", code, function=function, flush=floats.flush) if function else None


def _divide(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    is_flushed = "ftz" in modifiers
    mode = [part for part in modifiers if part != "ftz"]
    if types not in (["f32"], ["f64"]) or mode not in (["full"], ["approx"], ["rn"]):
        return None
    kind = TYPES[types[0]]
    if mode == ["rn"]:
        code = "flush(flush({0})/flush({1}))" if is_flushed else "({0}/{1})"
        return _simple(context, (kind, kind), kind, code, flush=floats.flush)
    if kind != "f4":
        return None
    divide = approximate.division(is_full=mode == ["full"], is_flushed=is_flushed)
    return _simple(context, (kind, kind), kind, "divide({0},{1})", divide=divide)


# Moves ---------------------------------------------------------------------------------------------------------------


def _move(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    """Registers, and parts of them (PTX ISA, "mov")."""
    context.expect(2)
    if modifiers or len(types) != 1:
        return None
    target, source = context.operand(0), context.operand(1)
    kind = _plain(TYPES[types[0]])
    size = KINDS[kind].size
    if isinstance(source, Vector) and isinstance(target, Vector):
        return None
    if isinstance(source, Vector):
        part = _part(context, size, len(source.items))
        reads = tuple(context.value(item, part) for item in source.items)
        operands = ",".join(f"{{{place}}}" for place in range(len(reads)))
        return Step(
            reads, context.result(target, kind), f"packed({operands})", {"packed": _packed(kind, part)}, arrays=True
        )
    if isinstance(target, Vector):
        part = _part(context, size, len(target.items))
        reads = (context.value(source, kind),)
        return Step(reads, context.result(target, part), "unpacked({0})", {"unpacked": _unpacked(part)}, arrays=True)
    view = _kept(context, source, target, kind)
    return _simple(context, (view,), view, "{0}")


def _kept(context: Context, source: Any, target: Any, kind: str) -> str:
    """A move within the same width takes the bits as they are seen: f32 that only moves stays f32."""
    registers = context.function.registers
    for operand in (source, target):
        if isinstance(operand, Register) and registers[operand.number][1] == "f32" and kind == "u4":
            return "f4"
    return kind


def _part(context: Context, size: int, count: int) -> str:
    if not count or size % count or (size // count) not in PLAIN or size // count == 0:
        raise context.refuse(f"a register of {8 * size} bits has no {count} parts")
    return PLAIN[size // count]


def _packed(kind: str, part: str) -> Callable[..., Array]:
    dtype, small = KINDS[kind].dtype, KINDS[part].dtype
    is_wide = kind == "q"

    def run(*parts: Array) -> Array:
        rows = np.empty((len(parts[0]), len(parts)), small)
        for place, values in enumerate(parts):
            rows[:, place] = values
        return rows.view(dtype).reshape(-1, 2) if is_wide else rows.view(dtype).ravel()

    return run


def _unpacked(part: str) -> Callable[[Array], tuple[Array, ...]]:
    dtype = KINDS[part].dtype

    def run(values: Array) -> tuple[Array, ...]:
        rows = np.ascontiguousarray(values).view(dtype).reshape(len(values), -1)
        return tuple(np.ascontiguousarray(rows.T))

    return run


# Conversions ---------------------------------------------------------------------------------------------------------


def _pairs_of_e2m1(target: str) -> Callable[[Array], Array]:
    """`cvt.rn.f16x2.e2m1x2`: two numbers of 4 bits in a byte, the low one first."""
    dtype = KINDS[TYPES[target]].dtype

    def run(codes: Array) -> Array:
        return E2M1[np.stack([codes & 15, codes >> 4], -1)].astype(dtype)

    return run


def _convert(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    if modifiers == ["rn", "e2m1x2"] and types in (["f16x2"], ["bf16x2"]):
        run = _pairs_of_e2m1(types[0])
        context.expect(2)
        reads = (context.read(1, "u1"),)
        return Step(reads, context.written(0, TYPES[types[0]]), "run({0})", {"run": run}, arrays=True)
    if len(types) != 2:
        return None
    target, source = types
    to, from_ = KINDS[TYPES[target]], KINDS[TYPES[source]]
    known = set(modifiers)
    if source == "f32" and target in ("f16x2", "bf16x2") and known == {"rn"}:
        return _simple(context, ("f4", "f4"), TYPES[target], "halves({0},{1})", halves=_halves(to.dtype))
    if source == "f32" and target in ("f16", "bf16") and known == {"rn"}:
        return _simple(context, ("f4",), to.name, "{0}.astype(dtype)", dtype=to.dtype)
    if source in ("f16", "bf16") and target == "f32" and not known:
        return _simple(context, (from_.name,), "f4", "{0}.astype(dtype)", dtype=to.dtype)
    if to.lanes == from_.lanes == 1 and to.dtype.kind in "ui" and from_.dtype.kind in "ui" and not known:
        return _integers(context, to.name, from_.name)
    if from_.dtype.kind in "ui" and from_.size <= 4 and target == "f32" and known == {"rn"}:
        return _simple(context, (from_.name,), "f4", "{0}.astype(dtype)", dtype=to.dtype)
    return None


def _integers(context: Context, to: str, from_: str) -> Step:
    if to == from_:
        return _simple(context, (from_,), to, "{0}")
    return _simple(context, (from_,), to, "{0}.astype(dtype)", dtype=KINDS[to].dtype)


def _halves(dtype: Dtype) -> Callable[[Array, Array], Array]:
    def run(high: Array, low: Array) -> Array:
        rows = np.empty((len(high), 2), dtype)
        rows[:, 0], rows[:, 1] = low, high
        return rows

    return run


def _address(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    """`cvta`: to a generic address, or from one."""
    from .read.symbols import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW

    spaces = [part.split("::")[0] for part in modifiers if part != "to"]
    windows = {"shared": SHARED_WINDOW, "param": PARAM_WINDOW, "local": LOCAL_WINDOW, "global": 0, "const": 0}
    if len(spaces) != 1 or spaces[0] not in windows or len(types) != 1 or types[0] not in ("u64", "u32"):
        return None
    kind = TYPES[types[0]]
    window = KINDS["u8"].dtype.type(windows[spaces[0]])
    if kind != "u8":
        return None
    sign = "-" if "to" in modifiers else "+"
    return _simple(context, (kind,), kind, f"({{0}}{sign}window)", window=window)


_FAST: dict[str, Form] = {
    "add": _arithmetic, "sub": _arithmetic, "mul": _arithmetic, "and": _logic, "or": _logic, "xor": _logic, "not": _not,
    "shl": _shift, "shr": _shift, "setp": _compare, "selp": _select, "min": _extremum, "max": _extremum, "fma": _fma,
    "neg": _negate, "abs": _negate, "testp": _test, "div": _divide, "mov": _move, "cvt": _convert, "cvta": _address,
    **dict.fromkeys((*FUNCTIONS, *_NEAREST), _function),
}  # fmt: skip


# All else ------------------------------------------------------------------------------------------------------------


def _general(context: Context, modifiers: list[str], types: list[str]) -> Step | None:
    """Return what runs inline assembly in the interpreter, too."""
    name = context.instruction.name
    build = INSTRUCTIONS.get(name) or CONVERSIONS.get(name)
    if build is None or not types or any(type_ not in PTX_TYPES for type_ in types) or name == "vote":
        return None
    compiled = build(frozenset(modifiers), [PTX_TYPES[type_] for type_ in types])
    if compiled is None:
        return None
    operands = list(context.instruction.operands[1:])
    if compiled.vectors is Vectors.SPREAD and len(operands) == 2 and isinstance(operands[0], Vector):
        operands = [*operands[0].items, operands[1]]
    if len(operands) != len(compiled.inputs):
        raise context.refuse(f"it has {len(operands) + 1} operands, not {len(compiled.inputs) + 1}")
    reads = tuple(
        context.value(operand, TYPES[type_.name]) for operand, type_ in zip(operands, compiled.inputs, strict=True)
    )
    kind = TYPES[compiled.output.name]
    target = context.operand(0)
    if isinstance(target, Pair):
        writes = (context.single_result(target.first, kind), context.single_result(target.second, kind))
        return Step(reads, writes, f"run({_list(len(reads))})", {"run": compiled.run}, arrays=True)
    return Step(
        reads, context.result(target, kind), f"run({_list(len(reads))})", {"run": _single(compiled)}, arrays=True
    )


def _list(count: int) -> str:
    return ",".join(f"{{{place}}}" for place in range(count))


def _single(compiled: Compiled) -> Callable[..., Any]:
    """The first of its results, with an element or a row for each thread."""
    dtype = compiled.output.dtype

    def run(*values: Array) -> Array:
        result: Any = compiled.run(*values)
        return np.asarray(result[0] if isinstance(result, tuple) else result, dtype)

    return run


def build(context: Context) -> Step | None:
    """The step of an instruction that only computes; None for what is none."""
    modifiers, types = _split(context)
    if carries.leaves(context.instruction.opcode) or carries.takes(context.instruction.opcode):
        return carries.build(context, modifiers, types)
    fast = _FAST.get(context.instruction.name)
    if fast is not None and (step := fast(context, modifiers, types)) is not None:
        return step
    return _general(context, modifiers, types)


NAMES = frozenset({*_FAST, *INSTRUCTIONS, *CONVERSIONS, *carries.NAMES} - {"vote"})
"""The instructions that only compute."""
