"""Creation, shapes, libdevice and `tl.extra.cuda`: what stock Triton prints, we print."""

# covers: tl.shape, tl.creation, tl.math, tt.shape, tt.joining

from __future__ import annotations

import pytest

from tests.unit.frontend.oracle.against_stock import Case, compare, disagreements, reference_version
from tlx_xdsl.language.extra.libdevice_table import FUNCTIONS

pytestmark = [pytest.mark.backend, reference_version()]

LINE = "a = tl.arange(0, 16)"
MATRIX = "b = tl.arange(0, 64).reshape(16, 4)"
CUBE = "c = tl.full((2, 4, 8), 1, tl.int8)"


def shown(expression: str, *results: str) -> Case:
    """A kernel that prints values made of blocks and of the scalars x (int32), y (float32) and z (float16)."""
    names = results or ("r",)
    printed = [f'tl.device_print("value", {name})' for name in names]
    signature = {"x": "i32", "y": "fp32", "z": "fp16", "p": "*fp16"}
    blocks = [block for name, block in (("a", LINE), ("b", MATRIX), ("c", CUBE)) if name in _words(expression)]
    return Case((*blocks, f"{', '.join(names)} = {expression}", *printed), signature)


def _words(expression: str) -> set[str]:
    return set("".join(letter if letter.isalnum() or letter == "_" else " " for letter in expression).split())


CREATION = [
    "tl.full([16, 4], 1.5, tl.float8e5)", "tl.full([16, 4], 300, tl.float8e5)", "tl.full([16], 7, tl.int8)",
    "tl.full([16], 300, tl.int8)", "tl.full([16], x, tl.float16)", "tl.full([], 3, tl.int32)",
    "tl.full((3,), 3, tl.int32)", "tl.full((4,), 3.5, tl.int32)", "tl.full((4,), 3, tl.int1)",
    "tl.full((4,), -1, tl.uint32)", "tl.full((4,), True, tl.float32)", "tl.full((4,), 0, p.dtype)",
    "tl.zeros((4,), tl.float16)", "tl.zeros((), tl.float16)", "tl.zeros_like(b)", "tl.zeros_like(x)",
    "tl.cat(a, a)", "tl.cat(a, a, can_reorder=True)", "tl.cat(b, b, dim=1)", "tl.cat(b, b, dim=-1)",
    "tl.cat(c, c, dim=1)", "tl.cat(b, b, can_reorder=True)", "tl.cat(a, tl.arange(0, 32))",
    "tl.arange(0, 6)", "tl.arange(4, 2)", "tl.arange(-4, 4)", "tl.arange(8, 16)", "tl.arange(0, 2**21)",
    "tl.arange(0, x)", "tl.arange(0, 2**40)", "tl.program_id(3)", "tl.program_id(axis=1)", "tl.num_programs(2)",
    "tl.cast(3, tl.float16)", 'tl.cast(y, tl.float16, "rtz")', 'tl.cast(y, tl.float16, "rne")',
    "tl.where(x > 0, tl.arange(0, 4), 3)", "tl.where(a > 0, y, z)", "tl.maximum(a, 3)", "tl.minimum(1, 2)",
    "tl.abs(-2)", "tl.exp(2.0)", "tl.exp(2)", "tl.cdiv(7, 2)",
]  # fmt: skip

SHAPES = [
    "tl.join(b, b)", "tl.join(x, x)", "tl.join(a, x)",
    "tl.trans(b)", "b.T", "tl.trans(b, 1, 0)", "tl.trans(b, (1, 0))", "tl.permute(b, 0, 1)", "tl.permute(b, -1, 0)",
    "tl.permute(b, 0, 0)", "tl.trans(a)", "tl.trans(c)", "tl.trans(c, 2)", "c.permute((2, 0, 1))",
    "tl.reshape(a, 4, 4)", "tl.reshape(a, (4, 4), can_reorder=True)", "a.reshape(2, 4)", "a.view(4, 4)",
    "a.reshape(16)", "a.reshape(4, -1)", "tl.reshape(x, 1)", "b.ravel()", "tl.ravel(b, can_reorder=True)",
    "tl.ravel(x)", "tl.expand_dims(b, 0)", "tl.expand_dims(b, (0, -1))", "b.expand_dims(2)", "b.expand_dims(3)",
    "tl.expand_dims(x, 0)", "tl.expand_dims(b, (0, 0))", "a[None, :, None]", "tl.broadcast_to(x, 4, 4)",
    "tl.broadcast_to(a, 4, 16)", "tl.broadcast_to(a[None, :], (4, 16))", "a.broadcast_to(4, 8)", "a + b",
    "a[:, None] + b", "a[None, :] * a[:, None]", "tl.squeeze(a[None, :], 0)", "tl.squeeze(a, 0)",
    "tl.unsqueeze(a, 1)", "tl.unsqueeze(a, -1)", "tl.interleave(a, a)", "tl.interleave(b, b)", "a.item()",
    "tl.full((1, 1), 2, tl.int32).item()", "tl.add(p, a)",
    "tl.reshape(tl.full((1, 1), 2, tl.int32), ())", "tl.full((1,), x, tl.int32).reshape(())", "tl.reshape(a, ())",
    "tl.reshape(x, ())", "tl.reshape(tl.full((1,), x, tl.int32))", "tl.view(tl.full((1,), x, tl.int32), ())",
]  # fmt: skip


@pytest.mark.parametrize("expressions", [CREATION, SHAPES], ids=["creation", "shapes"])
def test_blocks(tmp_path, expressions):
    cases = [shown(expression) for expression in expressions]
    cases += (
        shown(expression, "r", "q")
        for expression in ("tl.join(b, b).split()", "tl.split(tl.full((2,), 1, tl.int32))", "tl.split(a)",
                           "tl.broadcast(a[None, :], a[:, None])", "tl.broadcast(a, y)")
    )  # fmt: skip
    assert not disagreements(compare(tmp_path, cases))


SPELLING = {"int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64", "fp32": "fp32", "fp64": "fp64"}


def test_every_function_of_libdevice(tmp_path):
    cases = [
        Case(
            (f"tl.store(out, libdevice.{function.name}({', '.join(names)}))",),
            {name: SPELLING[type_] for name, type_ in zip(names, overload.arguments, strict=True)} | {"out": "*fp64"},
        )
        for function in FUNCTIONS.values()
        for overload in function.overloads
        for names in [[f"x{index}" for index in range(function.arity)]]
    ]
    verdicts = compare(tmp_path, cases)
    assert not disagreements(verdicts)
    assert not any(isinstance(verdict.stock, str) for verdict in verdicts)


def test_arguments_of_libdevice(tmp_path):
    block = "tl.full((4,), 1.0, tl.float32)"
    expressions = [
        f"libdevice.pow({block}, 2.0)", f"libdevice.pow({block}, 2)", f"libdevice.pow({block}[:, None], {block})",
        "libdevice.pow(2.0, y)", "libdevice.pow(y, z)", "libdevice.acos(0.5)", "libdevice.acos(x)",
        "libdevice.isnan(y)",
        f"libdevice.isnan({block})", "libdevice.abs(x)", "libdevice.acos(p)",
    ]  # fmt: skip
    assert not disagreements(compare(tmp_path, [shown(expression) for expression in expressions]))


def test_special_registers_and_dependent_launches(tmp_path):
    cases = [shown(f"tl.extra.cuda.{name}()") for name in ("globaltimer", "smid", "num_warps", "num_threads")]
    cases += (Case((f"tl.extra.cuda.{name}()",), {"x": "i32"}) for name in ("gdc_wait", "gdc_launch_dependents"))
    assert not disagreements(compare(tmp_path, cases))
