"""Verification of a module with located errors, dominance included.

xDSL verifies operations but not that a value is defined before it is used.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from tlx_xdsl.dialects.base import FaultAt, verify_launch_counts
from tlx_xdsl.errors import CompilationError, InputError

from .diagnostics import error_at, source_location


def verify_module(module: ModuleOp) -> None:
    """Check every operation of `module`, and that every value is defined where it is used; linear in their number.

    Raises CompilationError at the first fault.
    """
    _verify_op(module, set())


class Verifier:
    """Verifies one module again and again as passes change it, but not where nothing has changed since."""

    def __init__(self) -> None:
        self._verified: list[object] = []

    def verify(self, module: ModuleOp) -> None:
        """Do what `verify_module` does, unless `module` consists of what was verified.

        Raises CompilationError at the first fault.
        """
        parts = _parts(module)
        if parts != self._verified:
            verify_module(module)
            self._verified = parts


def _parts(module: ModuleOp) -> list[object]:
    """List what a module consists of, each operation with its block.

    Operations, values and blocks are equal to themselves only, and attributes and types never change, so that
    modules with equal lists are the same to every verifier.
    """
    parts: list[object] = []
    pending: list[Operation] = [module]
    while pending:
        op = pending.pop()
        parts += (op, op.parent, *op.operands, *op.result_types, *op.successors)
        for named in (op.attributes, op.properties):
            parts += (named, *named, *named.values())
        for region in op.regions:
            parts.append(region)
            for block in region.blocks:
                parts += (block, *block.args, *block.arg_types)
                pending += block.ops
    return parts


def _verify_op(op: Operation, defined: set[SSAValue]) -> None:
    for index, operand in enumerate(op.operands):
        if operand not in defined:
            name = f" '%{operand.name_hint}'" if operand.name_hint else ""
            raise error_at(op, f"operand {index}{name} of '{op.name}' is used where it is not defined")
    try:
        op.verify(verify_nested_ops=False)
        verify_launch_counts(op)
    except (DiagnosticException, VerifyException, InputError) as error:
        raise _located(op, error) from error
    for region in op.regions:
        _verify_region(op, region, defined)
    defined.update(op.results)


def _located(op: Operation, error: Exception) -> CompilationError:
    """The error for what the verifier of `op` said, without the dump of the operation that xDSL wraps around it."""
    said = error if isinstance(error, VerifyException) else error.__cause__ or error
    message = " ".join(line.strip() for line in str(said).strip().splitlines())
    notes: tuple[str, ...] = ()
    if isinstance(said, FaultAt):
        op = said.op
        place = None if said.other is None else source_location(said.other.location)
        notes = () if place is None else (f"{said.about_other} at {place}",)
    return error_at(op, f"'{op.name}' {message}", notes)


def _verify_region(op: Operation, region: Region, defined: set[SSAValue]) -> None:
    """Check the operations of a region; what they define ends with it."""
    if not region.blocks:
        return
    if len(region.blocks) == 1:
        _verify_block(op, region.blocks[0], defined)
        return
    dominance = DominanceInfo(region)
    inside: dict[Block, set[SSAValue]] = {block: _definitions(block) for block in region.blocks}
    for block in region.blocks:
        known = set(defined)
        for other in region.blocks:
            if other is not block and dominance.dominates(other, block):
                known |= inside[other]
        _verify_block(op, block, known)


def _definitions(block: Block) -> set[SSAValue]:
    return {*block.args, *(result for op in block.ops for result in op.results)}


def _verify_block(parent: Operation, block: Block, defined: set[SSAValue]) -> None:
    if block.first_op is None and not parent.has_trait(NoTerminator):
        raise error_at(parent, f"'{parent.name}' has an empty block, which needs at least a terminator")
    defined.update(block.args)
    for op in block.ops:
        _verify_op(op, defined)
    defined.difference_update(_definitions(block))
