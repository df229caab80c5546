"""PTX for Blackwell's tensor cores by pairs of CTAs (PTX ISA, "tcgen05.mma", "tcgen05.commit", `.cta_group::2`)."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tlx_xdsl.interpreter.addresses import Address, bytes_view
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.matmul import multiply
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.ops.ptx_actions import Action, Running, acts
from tlx_xdsl.interpreter.ops.ptx_cluster import barrier_view
from tlx_xdsl.interpreter.ops.tcgen05 import commit, issue_product
from tlx_xdsl.interpreter.ptx.text import Statement, UnknownInstruction
from tlx_xdsl.interpreter.registry import Coroutine
from tlx_xdsl.layouts.matrix_descriptors import element_bytes
from tlx_xdsl.numerics.arrays import Array


@acts("tcgen05")
def tensor_core(statement: Statement) -> Action | None:
    """Products of f16 and bf16 numbers, and commits, of pairs."""
    match statement.modifiers:
        case ("mma", "cta_group::2", "kind::f16"):
            return _product
        case ("commit", "cta_group::2", "mbarrier::arrive::one", "shared::cluster", "multicast::cluster", "b64"):
            return _commit
        case _:
            return None


def _commit(running: Running) -> Coroutine:
    yield None
    running.once()
    pair = 3 << (running.task.block.rank & ~1)
    if (mask := running.number(1, "b16")) != pair:
        raise fault_at(running.op, f"the mask {mask:#x} is not that of the pair, {pair:#x}")
    commit(running.task, running.op, barrier_view(running, 0), pair=True)


def _product(running: Running) -> Coroutine:
    yield None
    running.once()
    task, op = running.task, running.op
    if task.block.rank % 2:
        raise fault_at(op, "the odd CTA of a pair issues a product of both")
    target = running.others.get(str(running.statement.operands[0]).strip("[ ]"))
    if not isinstance(target, View):
        raise UnknownInstruction(f"the interpreter can't read the operands of the PTX '{running.statement.text}'")
    form = running.number(3)
    m, n = (form >> 24 & 31) * 16, (form >> 17 & 63) * 8
    dtype = np.dtype(ml_dtypes.bfloat16 if form >> 7 & 7 else np.float16)
    a = _operand(running, running.number(1, "b64"), m // 2, dtype, k_major=not form >> 15 & 1)
    b = _operand(running, running.number(2, "b64"), n // 2, dtype, k_major=not form >> 16 & 1)
    added = running.value(str(running.statement.operands[4]), "pred")
    if target.shape != (m // 2, n):
        raise fault_at(op, f"a product of {m} x {n} elements, the accumulator in each CTA is {list(target.shape)}")

    def compute(a_views: list[View], b_views: list[View], part: int, before: Array | None) -> Array:
        columns = np.concatenate([view.read(op).T for view in b_views], axis=1)
        return multiply(a_views[part].read(op), columns, before, np.dtype(np.float32))

    issue_product(
        task, op, a, b, target, pair=True, adds=bool(added),
        prepare=lambda left, right: lambda part, before: compute(list(left), list(right), part, before),
    )  # fmt: skip


def _operand(running: Running, descriptor: int, rows: int, dtype: np.dtype[np.generic], *, k_major: bool) -> View:
    """The elements of an operand, of `rows` rows along M or N and 16 along K."""
    try:
        places = element_bytes(descriptor, rows, k_major=k_major)
    except ValueError as error:
        raise UnknownInstruction(f"the interpreter can't read it: {error}") from None
    start = (descriptor & 0x3FFF) * 16
    memory = running.task.block.shared
    # A descriptor has no bits for more than the byte: it is the buffer whose address was taken last there.
    for view in reversed(memory.pointed.values()):
        if view.footprint.start <= start < view.footprint.end:
            return bytes_view(Address(memory, view.family.number, start), places, dtype)
    raise fault_at(running.op, f"the descriptor {descriptor:#x} points at no buffer")
