"""Products of register tensors, and of Hopper's tensor cores (PTX ISA, "wgmma")."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import scalar_type, shape_of_tensor
from tlx_xdsl.dialects.tt import InputPrecision, ScaleDotElemType
from tlx_xdsl.numerics.arrays import Array, Dtype
from tlx_xdsl.numerics.matmul import decode_scales, multiply, multiply_scaled, unpack_e2m1
from tlx_xdsl.numerics.rounding import round_to

from ..engine import InFlight, Queue, Transfer
from ..machine import Task
from ..matmul import decode, multiply_split
from ..memory import View
from ..numbers import dtype_of
from ..registry import Coroutine, Run, Ternary, Unary, blocking, one_or_all, pure, step
from .tma import check_tile


@pure(tt.DotOp)
def dot(op: tt.DotOp) -> Ternary:
    """One product, or one for each matrix of a stack; how f32 operands are rounded is up to `inputPrecision`."""
    dtype = dtype_of(op.d.type)
    precision = InputPrecision(op.input_precision.value.data)
    if dtype_of(op.a.type).name == "float32" and precision not in (InputPrecision.TF32, InputPrecision.IEEE):
        return lambda a, b, c: multiply_split(a, b, c, precision)
    tf32 = precision is InputPrecision.TF32
    return lambda a, b, c: multiply(a, b, c, dtype, tf32=tf32)


@pure(tt.DotScaledOp)
def dot_scaled(op: tt.DotScaledOp) -> Run:
    """Elements of 4 to 16 bits, with or without a scale for each group of them."""
    dtype, rank = dtype_of(op.d.type), len(shape_of_tensor(op.d.type))
    kinds = ScaleDotElemType(op.a_elem_type.value.data), ScaleDotElemType(op.b_elem_type.value.data)
    a_axis = rank - 1 if op.lhs_k_pack.value.data else rank - 2
    b_axis = rank - 2 if op.rhs_k_pack.value.data else rank - 1
    has_a_scale, has_b_scale = op.a_scale is not None, op.b_scale is not None

    def run(a: Array, b: Array, c: Array, *scales: Any) -> Array:
        a_scale = decode_scales(scales[0]) if has_a_scale else None
        b_scale = decode_scales(scales[-1]) if has_b_scale else None
        left, right = decode(a, kinds[0], a_axis), decode(b, kinds[1], b_axis)
        return multiply_scaled(left, a_scale, right, b_scale, c, dtype, fp16=ScaleDotElemType.FP16 in kinds)

    return run


@pure(ttg.Fp4ToFpOp)
def unpack_pairs(op: ttg.Fp4ToFpOp) -> Unary:
    """Pairs of e2m1 numbers, all of which other types hold exactly."""
    axis, dtype = op.axis.value.data, dtype_of(scalar_type(op.result.type))
    return lambda value: round_to(unpack_e2m1(value, axis), dtype)


# Hopper: products of the tensor cores (PTX ISA, "wgmma") -------------------------------------------------------------


def _queue(task: Task) -> Queue:
    return task.queue("wgmma", in_order=True)


@step(ttng.WarpGroupDotOp)
def warp_group_dot(op: ttng.WarpGroupDotOp) -> Run:
    """Each product is a group of its own; a synchronous one waits for it, and for all before."""
    dtype = dtype_of(op.d.type)
    is_async = bool(op.is_async.value.data)
    tf32 = op.input_precision.value.data == InputPrecision.TF32.value

    def run(task: Task, a: View | Array, b: View, c: Any, use_c: Any = True) -> Coroutine:
        yield None
        result = _multiply(task, op, a, b, c if use_c else None, dtype, tf32=tf32)
        if is_async:
            return result
        yield from task.wait_for(result.queue, result.number, op)
        return result.value

    return run


def _multiply(
    task: Task, op: ttng.WarpGroupDotOp, a: View | Array, b: View, c: Any, dtype: Dtype, *, tf32: bool
) -> InFlight:
    """Issue a product, which is added to `c` where there is one."""
    queue = _queue(task)
    actor, clock = queue.actor(op), queue.knowledge(task.clock)
    for operand in (a, b):
        if isinstance(operand, View):
            check_tile(op, operand)
            operand.cell.read(actor, clock, operand.name)
    result = InFlight(queue, queue.issued + 1, op)
    # Registers are read when the product is issued, shared memory at any time until it is complete.
    if not isinstance(a, View):
        a = np.asarray(a)

    def finish(_transfer: Transfer) -> None:
        left = a.read(op) if isinstance(a, View) else a
        added = c.value if isinstance(c, InFlight) else c
        result.value = multiply(left, b.read(op), added, dtype, tf32=tf32)

    task.issue(queue, op, finish)
    return result


@blocking(ttng.WarpGroupDotWaitOp)
def warp_group_dot_wait(task: Task, op: ttng.WarpGroupDotWaitOp, *values: Any) -> Coroutine:
    """Results of groups that are complete become values; others stay in flight."""
    queue = _queue(task)
    number = max(queue.issued - op.pendings.value.data, 0)
    yield from task.wait_for(queue, number, op)
    results = [value.value if isinstance(value, InFlight) and value.number <= number else value for value in values]
    return one_or_all(results)
