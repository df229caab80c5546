"""Runs a module as it is, and in linalg, on the same arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from tlx_xdsl.cpu.linalg.triton_to_linalg import TritonToLinalgPass
from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.rewriting import constant, insert_before

Prepare = Callable[[list[Any], list[Any]], None]
"""Gets the values, and the arguments that they are bound to, before a run."""


def lowered(module: ModuleOp) -> ModuleOp:
    """A copy of `module` in linalg.

    Raises CompilationError where there is no lowering.
    """
    copy = module.clone()
    TritonToLinalgPass().apply(make_context(), copy)
    verify_module(copy)
    return copy


def with_zeros(module: ModuleOp) -> ModuleOp:
    """A copy whose loads without `other` say what linalg and CPUs give for what their mask hides: 0."""
    copy = module.clone()
    for op in list(copy.walk()):
        if isinstance(op, tt.LoadOp) and op.mask is not None and op.other is None:
            zero = insert_before(op, constant(0, op.result.type)).result
            Rewriter.replace_op(op, tt.LoadOp(op.ptr, op.mask, zero))
    return copy


def run(
    module: ModuleOp,
    grid: tuple[int, int, int],
    values: Sequence[Any],
    names: Sequence[str],
    prepare: Prepare | None = None,
) -> list[Any]:
    """Run the kernel of a module on copies of the values; gives them as they are after it."""  # fmt: skip
    memory = GlobalMemory()
    given = [_copied(each) for each in values]
    plan = make_plan(module)
    values, labels = given, list(names)
    if isinstance(plan.function, func.FuncOp):
        # A descriptor is an array, its sizes and its strides.
        parts = [_spread(each) for each in given]
        values = [value for part in parts for value in part]
        labels = [name for name, part in zip(names, parts, strict=True) for _ in part]
    bound = bind(plan.function, values, labels, memory)
    if prepare is not None:
        prepare(given, bound)
    launch = Launch(plan, memory, grid, (1, 1, 1), bound)
    list(run_clusters(launch, list(clusters(launch)), Settings()))
    return given


def _spread(value: Any) -> list[Any]:
    if not hasattr(value, "block_shape"):
        return [value]
    return [value.base, *map(int, value.shape), *map(int, value.strides)]


def _copied(value: Any) -> Any:
    if hasattr(value, "block_shape"):
        return dataclasses.replace(value, base=value.base.copy())
    return value.copy() if isinstance(value, np.ndarray) else value


def compare(before: Sequence[Any], after: Sequence[Any], names: Sequence[str], ulp: float = 0) -> None:
    """Compare arrays: the same bits, or floats that differ by so many units of the largest element; NaN is NaN."""
    for name, one, other in zip(names, before, after, strict=True):
        if hasattr(one, "block_shape"):
            one, other = one.base, other.base
        if not isinstance(one, np.ndarray) or one.tobytes() == other.tobytes():
            continue
        wide, found = one.astype(np.float64), other.astype(np.float64)
        near = (wide == found) | (np.isnan(wide) & np.isnan(found))
        if ulp:
            # Of the largest element: sums of all magnitudes are off by as much as their largest parts.
            largest = np.abs(wide[np.isfinite(wide)]).max(initial=0)
            near |= np.abs(wide - found) <= ulp * largest * float(ml_dtypes.finfo(one.dtype).eps)
        assert near.all(), (
            f"{name}: {int((~near).sum())} of {near.size} elements differ: {one[~near][:4]}, {other[~near][:4]}"
        )
