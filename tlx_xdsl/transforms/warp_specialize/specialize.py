"""The passes from a plain kernel to tasks, in order, and the decisions that configure them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..registry import pass_class


@dataclass(frozen=True)
class Decisions:
    """Choices that can be made when a kernel is specialised; None leaves a choice to the compiler."""

    persistent: bool | None = None
    """As many programs as multiprocessors, each of which takes tiles in a loop."""
    delay_scales: bool | None = None
    """A positive scale is multiplied with the maximum of a row instead of its elements."""
    split_masks: bool | None = None
    """Turns of a loop in which masks hide nothing run in a loop without masks."""
    groups: int | None = None
    """Consumers, each with its part of the rows, or with a program of its own: 1 to 3."""
    join: bool | None = None
    """Each consumer has a program of the plain launch to itself; programs take several tiles then."""
    cluster: int | None = None
    """CTAs of a cluster, 2, whose tiles follow each other: one loads for both what both load."""
    split: int | None = None
    """Programs that share the turns of a product's loop; the last one to be done adds up their sums."""
    order: int | None = None
    """Tiles of a persistent kernel come as they are numbered (0), those with many turns before others of their row (1),
    or before all others (2)."""
    depth: int | None = None
    """Slots of a ring that a loop fills."""
    outer_depth: int | None = None
    """Slots of the other rings."""
    transpose: bool | None = None
    """A computed second operand of a product becomes the first one of the transposed product, in registers."""
    pipeline: bool | None = None
    """The first product of a block is issued before the second one of the block before."""
    overlap: bool | None = None
    """Work that needs no product runs while the product does, where each is waited for before the next one."""
    turns: bool | None = None
    """Consumers take turns at the tensor cores."""
    registers: int | None = None
    """Registers of each thread of a consumer."""
    stage_stores: bool | None = None
    """Results go through shared memory, and TMA stores them."""
    alias: bool | None = None
    """Staging buffers of results lie in the memory of rings that are done."""
    pieces: int | None = None
    """Pieces of its columns in which a result is stored, through a buffer of one piece: a power of two."""

    def given(self) -> dict[str, int | bool]:
        """Return the decisions that are made."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


def passes(decisions: Decisions, *, replicate: bool = True) -> tuple[ModulePass, ...]:
    """Return the passes for some decisions; without `replicate` up to the module that is printed as source."""
    groups = 1 if decisions.groups is None else decisions.groups
    wanted: list[tuple[str, dict[str, int | bool]]] = [("tlx-ws-structure-returns", {})]
    if decisions.delay_scales is not False:
        wanted.append(("tlx-ws-delay-scales", {}))
    join = bool(decisions.join) and groups > 1
    cluster = decisions.cluster or 1
    if decisions.persistent or join:
        wanted.append(("tlx-ws-make-persistent", {"groups": groups if join else 1, "cluster": cluster}))
        if decisions.order:
            wanted.append(("tlx-ws-order-tiles", {"spread": decisions.order > 1}))
    if groups > 1 and not join:
        wanted.append(("tlx-ws-split-rows", {"groups": groups}))
    wanted.append(("tlx-ws-form-descriptors", {}))
    wanted.append(("tlx-ws-split-k", {"parts": decisions.split or 1}))
    rings: dict[str, int | bool] = {
        "depth": decisions.depth or 0,
        "outer_depth": decisions.outer_depth or 0,
        "registers": decisions.registers or 0,
        "overlay": bool(decisions.alias),
        "pieces": decisions.pieces or 1,
    }
    wanted.append(("tlx-ws-form-tasks", rings))
    wanted.append(("tlx-ws-prefetch-loads", {}))
    wanted.append(("tlx-ws-delay-arrivals", {}))
    if decisions.transpose is not False:
        wanted.append(("tlx-ws-transpose-products", {}))
    if decisions.pipeline is not False:
        wanted.append(("tlx-ws-pipeline-products", {}))
    if decisions.split_masks is not False:
        wanted.append(("tlx-ws-split-masks", {}))
    # Each of these leaves the GPUs of the other alone.
    wanted.append(("tlx-ws-tensor-memory", {}))
    wanted.append(("tlx-ws-issue-products", {}))
    wanted.append(("tlx-ws-async-dots", {}))
    if decisions.overlap is not False:
        wanted.append(("tlx-ws-overlap-products", {}))
    if decisions.turns is not False:
        wanted.append(("tlx-ws-take-turns", {}))
    if decisions.stage_stores is not False:
        wanted.append(("tlx-ws-stage-stores", {"alias": bool(decisions.alias), "pieces": decisions.pieces or 1}))
    wanted.append(("tlx-ws-share-loads", {"cluster": cluster}))
    wanted.append(("tlx-ws-host-descriptors", {}))
    if replicate:
        wanted.append(("tlx-ws-replicate-tasks", {}))
    return tuple(pass_class(name)(**options) for name, options in wanted)


def specialize(module: ModuleOp, context: Context, decisions: Decisions, *, replicate: bool = True) -> None:
    """Specialise a plain kernel in place.

    Raises WarpSpecializeRefusal, located in the kernel, where that is not possible; the module is then undefined.
    """
    for each in passes(decisions, replicate=replicate):
        each.apply(context, module)
