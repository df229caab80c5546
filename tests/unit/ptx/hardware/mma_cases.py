"""Single products of `mma.sync`, with numbers of all kinds in their registers."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tests.unit.ptx.hardware import launches
from tests.unit.ptx.hardware.launches import Case

WARPS = 16
PROGRAMS = 8
_TYPES = {
    "f16": (np.float16, -24, 14), "bf16": (ml_dtypes.bfloat16, -70, 60), "tf32": (np.float32, -70, 60),
    "e4m3": (ml_dtypes.float8_e4m3fn, -9, 7), "e5m2": (ml_dtypes.float8_e5m2, -16, 14),
}  # fmt: skip
FORMS = {
    "m16n8k16": [("f32", "f16"), ("f32", "bf16"), ("f16", "f16")],
    "m16n8k8": [("f32", "f16"), ("f32", "bf16"), ("f32", "tf32"), ("f16", "f16")],
    "m16n8k4": [("f32", "tf32")],
    "m16n8k32": [("f32", "e4m3"), ("f32", "e5m2"), ("f16", "e4m3")],
}
KINDS = ("near 1", "of all magnitudes", "subnormal", "with specials")


def _text(shape: str, to: str, type_: str, a: int, b: int, c: int) -> str:
    """A kernel whose threads load their registers of A, B and C and store those of D."""

    def registers(first: int, count: int) -> str:
        return ", ".join(f"%r{number}" for number in range(first, first + count))

    def rows(pointer: int, count: int) -> str:
        return f"mad.wide.u32 %rd9, %r0, {4 * count}, %rd{pointer};\n"

    loads = "".join(
        rows(pointer, count) + "".join(f"    ld.global.b32 %r{first + n}, [%rd9+{4 * n}];\n" for n in range(count))
        for pointer, first, count in ((1, 10, a), (2, 20, b), (3, 30, c))
    )
    stores = rows(4, c) + "".join(f"    st.global.b32 [%rd9+{4 * n}], %r{40 + n};\n" for n in range(c))
    d_type = to
    return f"""\
.version 8.7
.target sm_90a
.address_size 64
.visible .entry product(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)
.reqntid {32 * WARPS}
{{
    .reg .b32 %r<64>;
    .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [p0];
    ld.param.u64 %rd2, [p1];
    ld.param.u64 %rd3, [p2];
    ld.param.u64 %rd4, [p3];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %r0, %r1, {32 * WARPS}, %r0;
    {loads}    mma.sync.aligned.{shape}.row.col.{to}.{type_}.{type_}.{d_type}
        {{{registers(40, c)}}}, {{{registers(10, a)}}}, {{{registers(20, b)}}}, {{{registers(30, c)}}};
    {stores}    ret;
}}
"""


def _numbers(rng: np.random.Generator, dtype: Any, low: int, high: int, count: int, kind: str) -> np.ndarray:
    if kind == "near 1":
        low, high = -2, 1
    elif kind == "subnormal":
        low, high = low - 1, low + 6
    elif kind == "with specials":
        low, high = -3, 3
    found = rng.standard_normal(count) * 2.0 ** rng.integers(low, high, count, endpoint=True)
    found[rng.random(count) < 0.1] = 0
    if kind == "with specials":
        for value, part in ((np.inf, 0.002), (-np.inf, 0.002), (np.nan, 0.001), (-0.0, 0.02)):
            found[rng.random(count) < part] = value
    with np.errstate(over="ignore"):
        # The GPU had numbers of ml_dtypes before 0.7, which went to its types by way of f32.
        return found.astype(dtype) if dtype in (np.float16, np.float32) else found.astype(np.float32).astype(dtype)


def _run(shape: str, to: str, type_: str, kind: str) -> list[np.ndarray]:
    k = int(shape[6:])
    dtype, low, high = _TYPES[type_]
    out = np.dtype(np.float32 if to == "f32" else np.float16)
    itemsize, threads = np.dtype(dtype).itemsize, 32 * WARPS * PROGRAMS
    a, b, c = (16 * k * itemsize // 128, 8 * k * itemsize // 128, 16 * 8 * out.itemsize // 128)
    rng = np.random.default_rng([k, *f"{to}{type_}{kind}".encode()])
    left = _numbers(rng, dtype, low, high, threads * a * 4 // itemsize, kind)
    right = _numbers(rng, dtype, low, high, threads * b * 4 // itemsize, kind)
    spread = (2 * low, min(2 * high, 15 if to == "f16" else 120))
    before = _numbers(rng, out, *(spread if kind == "of all magnitudes" else (-6, 6)), threads * c * 4 // out.itemsize,
                      kind)  # fmt: skip
    after = np.zeros_like(before)
    text = _text(shape, to, type_, a, b, c)
    launches.launch_text(text, PROGRAMS, [left, right, before, after], num_warps=WARPS)
    return [after]


CASES: dict[str, Case] = {
    f"mma {shape} {to} {type_} {kind}": partial(_run, shape, to, type_, kind)
    for shape, types in FORMS.items()
    for to, type_ in types
    for kind in KINDS
}
