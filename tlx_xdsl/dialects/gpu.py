"""MLIR's `gpu` with the syntax of the operations that kernels contain, which xDSL 0.75 has in generic form only."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects import gpu as upstream
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum
from xdsl.ir import Dialect, Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from .base import DeclaredEffects, Effects, Feature, Needs, Sync


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Wait for all threads of the block: `gpu.barrier`."""

    name = "gpu.barrier"
    EFFECTS: ClassVar = Effects(sync=Sync.ORDERED | Sync.THREADS)

    traits = traits_def(DeclaredEffects())
    assembly_format = "attr-dict"


class DimensionOp(IRDLOperation):
    """Shared parts of the indices and sizes along an axis: `%0 = gpu.thread_id x`, with an optional upper bound."""

    REGISTER: ClassVar[str]
    """The special register of PTX that has the value, without its axis (PTX ISA, "Special Registers")."""

    dimension = prop_def(DimensionAttr)
    upper_bound = opt_prop_def(IntegerAttr.constr(IndexType()))
    result = result_def(IndexType)

    traits = traits_def(Pure())

    def __init__(self, axis: DimensionEnum, upper_bound: int | None = None):
        super().__init__(
            properties={
                "dimension": DimensionAttr(axis),
                "upper_bound": None if upper_bound is None else IntegerAttr(upper_bound, IndexType()),
            },
            result_types=[IndexType()],
        )

    def print(self, printer: Printer) -> None:
        """Print ` x upper_bound 64`."""
        printer.print_string(f" {self.dimension.data.value}")
        if self.upper_bound is not None:
            printer.print_string(f" upper_bound {self.upper_bound.value.data}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        axis = parser.parse_str_enum(DimensionEnum)
        bound: int | None = None
        if parser.parse_optional_keyword("upper_bound") is not None:
            bound = parser.parse_integer(allow_boolean=False)
        op = cls(axis, bound)
        op.attributes |= parser.parse_optional_attr_dict()
        return op


@irdl_op_definition
class ThreadIdOp(DimensionOp):
    """The index of this thread in its block."""

    name = "gpu.thread_id"
    REGISTER: ClassVar = "tid"


@irdl_op_definition
class BlockIdOp(DimensionOp):
    """The index of this block in the grid."""

    name = "gpu.block_id"
    REGISTER: ClassVar = "ctaid"


@irdl_op_definition
class BlockDimOp(DimensionOp):
    """Threads of a block."""

    name = "gpu.block_dim"
    REGISTER: ClassVar = "ntid"


@irdl_op_definition
class GridDimOp(DimensionOp):
    """Blocks of the grid."""

    name = "gpu.grid_dim"
    REGISTER: ClassVar = "nctaid"


@irdl_op_definition
class ClusterIdOp(DimensionOp):
    """The index of this cluster in the grid."""

    name = "gpu.cluster_id"
    REGISTER: ClassVar = "clusterid"
    NEEDS: ClassVar = Needs("gpu.cluster_id", Feature.CLUSTER)


@irdl_op_definition
class ClusterDimOp(DimensionOp):
    """Clusters of the grid."""

    name = "gpu.cluster_dim"
    REGISTER: ClassVar = "nclusterid"
    NEEDS: ClassVar = Needs("gpu.cluster_dim", Feature.CLUSTER)


@irdl_op_definition
class ClusterDimBlocksOp(DimensionOp):
    """Blocks of a cluster."""

    name = "gpu.cluster_dim_blocks"
    REGISTER: ClassVar = "cluster.nctaid"
    NEEDS: ClassVar = Needs("gpu.cluster_dim_blocks", Feature.CLUSTER)


@irdl_op_definition
class ClusterBlockIdOp(DimensionOp):
    """The index of this block in its cluster."""

    name = "gpu.cluster_block_id"
    REGISTER: ClassVar = "cluster.ctaid"
    NEEDS: ClassVar = Needs("gpu.cluster_block_id", Feature.CLUSTER)


_OURS: tuple[type[Operation], ...] = (
    BarrierOp,
    BlockDimOp,
    BlockIdOp,
    ClusterBlockIdOp,
    ClusterDimBlocksOp,
    ClusterDimOp,
    ClusterIdOp,
    GridDimOp,
    ThreadIdOp,
)
_OURS_BY_NAME = {op.name for op in _OURS}

GPU = Dialect(
    "gpu",
    [*(op for op in upstream.GPU.operations if op.name not in _OURS_BY_NAME), *_OURS],
    list(upstream.GPU.attributes),
)
