"""Origins of addresses: the arguments of the kernel that a pointer or a descriptor is computed from."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.base import scalar_type
from tlx_xdsl.dialects.tt import DescriptorType, PointerType
from tlx_xdsl.dialects.ttg import WarpSpecializePartitionsOp


def origins_of(value: SSAValue) -> frozenset[SSAValue] | None:
    """Return the arguments that an address is computed from; None where it comes from anything else."""
    found: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    work = [value]
    while work:
        address = work.pop()
        if address in seen:
            continue
        seen.add(address)
        sources = _sources(address)
        if sources is None:
            return None
        found.update(source for source in sources if _is_argument(source))
        work += [source for source in sources if not _is_argument(source)]
    return frozenset(found)


def _is_argument(value: SSAValue) -> bool:
    return isinstance(value.owner, Block) and isinstance(value.owner.parent_op(), tt.FuncOp)


def _sources(value: SSAValue) -> list[SSAValue] | None:
    """The values that an address directly comes from; None where that is unknown."""
    if _is_argument(value):
        return [value]
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        assert isinstance(value, BlockArgument)
        if isinstance(parent, WarpSpecializePartitionsOp):
            return [parent.explicit_captures[value.index]]
        return _carried(parent, value.index - 1) if isinstance(parent, scf.ForOp) else None
    number = owner.results.index(value) if isinstance(value, OpResult) else 0
    match owner:
        case scf.ForOp():
            return _carried(owner, number)
        case scf.IfOp():
            ends = [region.block.last_op for region in owner.regions if region.blocks]
            return [end.operands[number] for end in ends if end is not None]
        case Operation() if not owner.regions and is_side_effect_free(owner):
            return [v for v in owner.operands if isinstance(scalar_type(v.type), PointerType | DescriptorType)] or None
        case _:
            return None


def _carried(loop: scf.ForOp, number: int) -> list[SSAValue] | None:
    end = loop.body.block.last_op
    return None if end is None or number < 0 else [loop.iter_args[number], end.operands[number]]
