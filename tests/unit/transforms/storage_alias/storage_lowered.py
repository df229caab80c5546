"""A random program after the passes, and where its buffers are then."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from tests.unit.transforms.storage_alias.storage_machine import Machine, View, allocated, bits_of
from tests.unit.transforms.storage_alias.storage_programs import text_of
from tests.unit.transforms.storage_alias.storage_trees import SMEM, Buffers, Program
from tlx_xdsl.dialects.tlx import StorageAliasLocalAllocOp
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.storage_alias.allocation import StorageAliasAllocationPass
from tlx_xdsl.transforms.storage_alias.offset_calculation import BufferOffsetCalculationPass
from tlx_xdsl.transforms.storage_alias.rewrite_local_alias import RewriteLocalAliasPass
from tlx_xdsl.transforms.storage_alias.size_definition import StorageAliasSizeDefinitionPass

Place = tuple[int, int, int]
"""Offset, stride from one group of buffers to the next, and buffers in a group: the storage map of a leaf."""


@dataclass
class Lowered:
    """A program after the passes."""

    program: Program
    places: list[Place]
    """What stands on the allocations between the passes; by leaf."""
    module: ModuleOp
    total: int = 0
    """Bytes or columns of the allocation after the buffers, as the accesses find it."""

    @cached_property
    def addresses(self) -> dict[int, list[int]]:
        """The place of every buffer of every leaf; every path of the program has been checked to lead there."""
        leaves = self.program.leaves
        machine = Machine(self.module, SIZES[self.program.storage.name])
        found: dict[int, dict[int, int]] = {leaf.number: {} for leaf in leaves}
        for run in range(2 * max(leaf.count for leaf in leaves)):
            indices = [run // 2 % leaf.count for leaf in leaves]
            for access in machine.main([*indices, run % 2]):
                constant = access.path.rpartition(" ")[2]
                index = int(constant) if constant.isdigit() else indices[access.leaf]
                stated = self.stated(access.leaf, index)
                assert access.view.address == stated, f"{access.path}: buffer {index} of leaf {access.leaf}"
                found[access.leaf][index] = access.view.address
                self.check_allocation(access.view, leaves[access.leaf])
        return {number: [by_index[i] for i in sorted(by_index)] for number, by_index in found.items()}

    def stated(self, leaf: int, index: int) -> int:
        """The address of a buffer by the formula of the storage map."""
        offset, stride, group_size = self.places[leaf]
        unit = self.program.leaves[leaf].tile.unit
        return index // group_size * stride + offset + index % group_size * unit

    def check_allocation(self, view: View, leaf: Buffers) -> None:
        self.total = SIZES[self.program.storage.name](allocated(view))
        if self.program.storage is SMEM:
            alignment = view.allocation.properties["alignment"]
            assert isinstance(alignment, IntegerAttr)
            assert alignment.value.data % leaf.tile.alignment == 0


@cache
def smem_bytes(type_: MemDescType) -> int:
    return prod(type_.shape) * bits_of(type_) // 8


@cache
def tmem_columns(type_: MemDescType) -> int:
    """32-bit columns of arrays of 128 rows."""
    (stride,) = re.findall(r"colStride = (\d+)", str(type_.encoding))
    *count, rows, width = type_.shape
    assert rows == 128
    return prod(count) * -(-width * bits_of(type_) * int(stride) // 32)


SIZES = {"smem": smem_bytes, "tmem": tmem_columns}
BYTES_PER_UNIT = {"smem": 1, "tmem": 128 * 4}


def lower(
    program: Program,
    size: int | None = None,
    *,
    strict: bool = False,
    accesses: bool = True,
    whole_views: bool = False,
    more: Sequence[str] = (),
) -> Lowered:
    """Run the passes on `program`, with an explicit `size` in bytes or columns. Raises what they raise."""
    module = module_of(program, size, accesses=accesses, more=more)
    module.verify()
    for step in (StorageAliasSizeDefinitionPass(strict=strict), BufferOffsetCalculationPass(strict=strict)):
        step.apply(Context(), module)
    allocations = [op for op in module.walk() if isinstance(op, StorageAliasLocalAllocOp)]
    places = [place_of(op, leaf) for op, leaf in zip(allocations, program.leaves, strict=True)]
    for step in (StorageAliasAllocationPass(), RewriteLocalAliasPass(whole_views=whole_views)):
        step.apply(Context(), module)
        module.verify()
    return Lowered(program, places, module)


def module_of(
    program: Program, size: int | None = None, *, accesses: bool = False, more: Sequence[str] = ()
) -> ModuleOp:
    explicit = None if size is None else size * BYTES_PER_UNIT[program.storage.name]
    return parse_module(text_of(program, explicit, accesses=accesses, more=more))


def place_of(op: StorageAliasLocalAllocOp, leaf: Buffers) -> Place:
    facts = (op.buffer_offset, op.bytes_between_buffers, op.group_size)
    if all(fact is None for fact in facts):
        return 0, leaf.tile.unit, 1
    offset, stride, group_size = (fact.value.data for fact in facts if fact is not None)
    assert group_size == leaf.group_size
    return offset, stride, group_size
