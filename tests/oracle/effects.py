"""Operations of TTIR that may move, and those that may not.

`ordered` operations (stores, atomics, barriers, prints, calls, impure assembly, loops that may not end, and all that
is not named here) must stand in both modules in the same order. `reads` may change places among each other, but not
with an ordered operation, and not from one block to another. All others are values: what counts is who uses them.
"""

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation

_PURE_DIALECTS = ("arith", "math", "ub")

_PURE = frozenset(
    (
        "tt.addptr", "tt.approx_divf", "tt.bitcast", "tt.broadcast", "tt.cat", "tt.clampf", "tt.dot",
        "tt.dot_scaled", "tt.expand_dims", "tt.fp_to_fp", "tt.gather", "tt.get_num_programs", "tt.get_program_id",
        "tt.histogram", "tt.int_to_ptr", "tt.join", "tt.make_range", "tt.make_tensor_descriptor", "tt.mulhiui",
        "tt.precise_divf", "tt.precise_sqrt", "tt.ptr_to_int", "tt.reshape", "tt.splat", "tt.split", "tt.trans",
        "tt.unsplat", "ttg.convert_layout", "ttg.memdesc_index", "ttg.memdesc_reinterpret", "ttg.memdesc_reshape",
        "ttg.memdesc_subslice", "ttg.memdesc_trans",
    )
)  # fmt: skip

_READS = frozenset(("tt.load", "tt.descriptor_load", "tt.descriptor_gather"))

_ONLY_IF_PURE = frozenset(("tt.elementwise_inline_asm", "tt.extern_elementwise"))
"""Operations that say themselves whether they are pure."""

_AS_THEIR_REGIONS = frozenset(("scf.if", "scf.for", "tt.reduce", "tt.scan", "tt.map_elementwise"))

TERMINATORS = frozenset(
    (
        "scf.yield",
        "scf.condition",
        "cf.br",
        "cf.cond_br",
        "tt.return",
        "tt.reduce.return",
        "tt.scan.return",
        "tt.map_elementwise.return",
    )
)


def _flag(op: Operation, name: str) -> bool:
    attribute = op.properties.get(name, op.attributes.get(name))
    return isinstance(attribute, IntegerAttr) and bool(attribute.value.data)


def is_read(op: Operation) -> bool:
    """Return whether an operation reads memory and does nothing else."""
    return op.name in _READS and not _flag(op, "isVolatile")


class Effects:
    """The order of the operations of a module that have effects."""

    def __init__(self) -> None:
        self._ordered: dict[Operation, bool] = {}
        self._in_block: dict[Block, list[Operation]] = {}
        self._before: dict[Operation, int] = {}

    def is_ordered(self, op: Operation) -> bool:
        """Return whether an operation must keep its place among the others of that kind."""
        known = self._ordered.get(op)
        if known is None:
            known = self._ordered[op] = self._find_ordered(op)
        return known

    def _find_ordered(self, op: Operation) -> bool:
        name = op.name
        if name in _PURE or name.partition(".")[0] in _PURE_DIALECTS or name in TERMINATORS or is_read(op):
            return False
        if name in _ONLY_IF_PURE:
            return not _flag(op, "pure")
        if name in _AS_THEIR_REGIONS:
            return any(
                self.is_ordered(inner) for region in op.regions for block in region.blocks for inner in block.ops
            )
        return True

    def of(self, block: Block) -> list[Operation]:
        """Return the ordered operations of a block."""
        if block not in self._in_block:
            found: list[Operation] = []
            for op in block.ops:
                self._before[op] = len(found)
                if self.is_ordered(op):
                    found.append(op)
            self._in_block[block] = found
        return self._in_block[block]

    def before(self, op: Operation) -> int:
        """Return how many ordered operations stand before this one in its block."""
        block = op.parent_block()
        assert block is not None
        self.of(block)
        return self._before[op]
