"""The operations of MLIR's `nvvm` that compiled kernels contain (NVVMOps.td).

They stand for single PTX instructions. All but the reads of special registers order memory or threads, or may do
so: no pass may merge, move or drop them.
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, UnitAttr, i1, i32
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from .base import (
    ORDERED,
    DeclaredEffects,
    Effects,
    Feature,
    Features,
    Needs,
    Sync,
    dialect_of,
    effects_of_ptx,
    parse_operands,
    parse_types,
    print_types,
)

CLUSTER_DIM = "nvvm.cluster_dim"
"""On a kernel: the CTAs of its clusters along x, y and z; it has an operation for each barrier of the cluster."""


class RegisterAction(StrEnum):
    """The change to the number of registers of a warp group."""

    INCREASE = "increase"
    DECREASE = "decrease"


class GridDepAction(StrEnum):
    """The action of a dependent launch (PTX ISA, "griddepcontrol")."""

    WAIT = "wait"
    LAUNCH_DEPENDENTS = "launch_dependents"


class ProxyKind(StrEnum):
    """Proxies between which a fence orders memory (PTX ISA, "membar/fence")."""

    ALIAS = "alias"
    ASYNC = "async"
    ASYNC_GLOBAL = "async.global"
    ASYNC_SHARED = "async.shared"
    TENSORMAP = "tensormap"
    GENERIC = "generic"


class SharedSpace(StrEnum):
    """Shared memory of the thread block or of its cluster."""

    CTA = "cta"
    CLUSTER = "cluster"


@irdl_attr_definition
class RegisterActionAttr(EnumAttribute[RegisterAction], SpacedOpaqueSyntaxAttribute):
    """`#nvvm<action increase>`."""

    name = "nvvm.action"


@irdl_attr_definition
class GridDepActionAttr(EnumAttribute[GridDepAction], SpacedOpaqueSyntaxAttribute):
    """`#nvvm<grid_dep_action wait>`."""

    name = "nvvm.grid_dep_action"


@irdl_attr_definition
class ProxyKindAttr(EnumAttribute[ProxyKind]):
    """`#nvvm.proxy_kind<async.shared>`."""

    name = "nvvm.proxy_kind"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ProxyKind:
        """Parse `<keyword>`."""
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print what `parse_parameter` reads."""
        with printer.in_angle_brackets():
            super().print_parameter(printer)


@irdl_attr_definition
class SharedSpaceAttr(EnumAttribute[SharedSpace]):
    """`#nvvm.shared_space<cta>`."""

    name = "nvvm.shared_space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SharedSpace:
        """Parse `<keyword>`."""
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        """Print what `parse_parameter` reads."""
        with printer.in_angle_brackets():
            super().print_parameter(printer)


class _SyncOp(IRDLOperation):
    """Base of what accesses memory, or orders accesses."""

    traits = traits_def(DeclaredEffects())
    assembly_format = "attr-dict"


@irdl_op_definition
class InlinePtxOp(IRDLOperation):
    """PTX text; `$0`, `$1`, ... are the results, then the operands that are written, then those that are read.

    Example: `%r = nvvm.inline_ptx "add.s32 $0, $1, $2;" ro(%a, %b : i32, i32), predicate = %p -> i32`
    """

    name = "nvvm.inline_ptx"

    read_only_args = var_operand_def()
    read_write_args = var_operand_def()
    predicate = opt_operand_def(i1)
    ptx_code = prop_def(StringAttr, prop_name="ptxCode")
    write_only_args = var_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(DeclaredEffects())

    def effects(self) -> Effects:
        """Return the effects of its PTX."""
        return effects_of_ptx(self, "ptxCode")

    def print(self, printer: Printer) -> None:
        """Print ` "ptx" ro(...) rw(...), predicate = %p -> types`, without the parts that are empty."""
        printer.print_string(" ")
        printer.print_attribute(self.ptx_code)
        for keyword, values in (("ro", self.read_only_args), ("rw", self.read_write_args)):
            if values:
                printer.print_string(f" {keyword}(")
                printer.print_list(values, printer.print_operand)
                printer.print_string(" : ")
                print_types(printer, [value.type for value in values])
                printer.print_string(")")
        if self.predicate is not None:
            printer.print_string(", predicate = ")
            printer.print_operand(self.predicate)
        printer.print_op_attributes(self.attributes)
        if self.write_only_args:
            printer.print_string(" -> ")
            print_types(printer, [value.type for value in self.write_only_args])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse what `print` writes."""
        code = StringAttr(parser.parse_str_literal(" (PTX text)"))
        groups: list[list[SSAValue]] = [[], []]
        for index, keyword in enumerate(("ro", "rw")):
            if parser.parse_optional_keyword(keyword) is not None:
                with parser.in_parens():
                    operands = parse_operands(parser)
                    parser.parse_punctuation(":")
                    position = parser.pos
                    groups[index] = list(parser.resolve_operands(operands, parse_types(parser), position))
        predicate: SSAValue | None = None
        if parser.parse_optional_punctuation(",") is not None:
            parser.parse_keyword("predicate")
            parser.parse_punctuation("=")
            predicate = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        attributes = parser.parse_optional_attr_dict()
        types = parse_types(parser) if parser.parse_optional_punctuation("->") is not None else []
        return cls(
            operands=[*groups, predicate],
            properties={"ptxCode": code},
            attributes=attributes,
            result_types=[types],
        )


@irdl_op_definition
class MapaOp(IRDLOperation):
    """The address in another CTA's shared memory that matches `a`.

    Example: `%q = nvvm.mapa %p, %rank : !llvm.ptr<3> -> !llvm.ptr<7>`
    """

    name = "nvvm.mapa"
    NEEDS: ClassVar = Needs("nvvm.mapa", Feature.CLUSTER)

    a = operand_def()
    b = operand_def(i32)
    res = result_def()

    traits = traits_def(Pure())
    assembly_format = "$a `,` $b attr-dict `:` type($a) `->` type($res)"


@irdl_op_definition
class BarrierOp(_SyncOp):
    """Wait at a barrier of the thread block.

    In a module with `ttg.warp_specialize` Triton 3.8 and 3.9 turn it into the barrier of the partition, whatever its
    id: use `nvvm.inline_ptx "bar.sync ..."` for a barrier of your own.
    Example: `nvvm.barrier id = %i number_of_threads = %n`
    """

    name = "nvvm.barrier"

    barrier_id = opt_operand_def(i32)
    number_of_threads = opt_operand_def(i32)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = "(`id` `=` $barrier_id^)? (`number_of_threads` `=` $number_of_threads^)? attr-dict"

    def effects(self) -> Effects:
        """Threads of one task alone meet at a barrier without an id."""
        return Effects(sync=Sync.NAMED | Sync.RELEASE | Sync.ACQUIRE) if self.operands else ORDERED


@irdl_op_definition
class BarrierArriveOp(_SyncOp):
    """Arrive at a barrier of the thread block: `nvvm.barrier.arrive id = %i number_of_threads = %n`."""

    name = "nvvm.barrier.arrive"
    EFFECTS: ClassVar = Effects(sync=Sync.NAMED | Sync.RELEASE)

    barrier_id = opt_operand_def(i32)
    number_of_threads = operand_def(i32)

    assembly_format = "(`id` `=` $barrier_id^)? `number_of_threads` `=` $number_of_threads attr-dict"


class _AlignedOp(_SyncOp):
    """Shared parts of the cluster barrier: `aligned` promises that all threads of a warp get there together."""

    aligned = opt_prop_def(UnitAttr)

    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class ClusterArriveOp(_AlignedOp):
    """Arrive at the barrier of the cluster: `nvvm.cluster.arrive {aligned}`."""

    name = "nvvm.cluster.arrive"
    NEEDS: ClassVar = Needs("nvvm.cluster.arrive", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(sync=Sync.CLUSTER | Sync.RELEASE)


@irdl_op_definition
class ClusterArriveRelaxedOp(_AlignedOp):
    """Arrive at the barrier of the cluster without ordering memory."""

    name = "nvvm.cluster.arrive.relaxed"
    NEEDS: ClassVar = Needs("nvvm.cluster.arrive.relaxed", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(sync=Sync.CLUSTER | Sync.ORDERED)


@irdl_op_definition
class ClusterWaitOp(_AlignedOp):
    """Wait at the barrier of the cluster."""

    name = "nvvm.cluster.wait"
    NEEDS: ClassVar = Needs("nvvm.cluster.wait", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(sync=Sync.CLUSTER | Sync.ACQUIRE)


@irdl_op_definition
class FenceMbarrierInitOp(_SyncOp):
    """Make the initialisation of mbarriers visible to the cluster."""

    name = "nvvm.fence.mbarrier.init"
    NEEDS: ClassVar = Needs("nvvm.fence.mbarrier.init", Feature.CLUSTER)
    EFFECTS: ClassVar = Effects(sync=Sync.FENCE)


@irdl_op_definition
class FenceProxyOp(_SyncOp):
    """Order memory between the generic and another proxy.

    Example: `nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}`
    """

    name = "nvvm.fence.proxy"
    NEEDS: ClassVar = Needs("nvvm.fence.proxy")

    kind = prop_def(ProxyKindAttr)
    space = opt_prop_def(SharedSpaceAttr)

    irdl_options = (ParsePropInAttrDict(),)

    def effects(self) -> Effects:
        """Return the effect of a fence: of the one for tensor cores and TMA where it orders shared memory."""
        return Effects(sync=Sync.FENCE_PROXY if self.orders_shared else Sync.FENCE)

    @property
    def orders_shared(self) -> bool:
        """Return whether it orders accesses to shared memory with those of the async proxy."""
        return self.kind.data in (ProxyKind.ASYNC, ProxyKind.ASYNC_SHARED)

    @property
    def orders_global(self) -> bool:
        """Return whether it orders accesses to global memory with those of the async proxy."""
        return self.kind.data in (ProxyKind.ASYNC, ProxyKind.ASYNC_GLOBAL)

    def also_needs(self) -> Features:
        """The alias proxy is the oldest of the proxies that fences know."""
        return () if self.kind.data is ProxyKind.ALIAS else (Feature.ASYNC_PROXY,)


@irdl_op_definition
class ElectSyncOp(_SyncOp):
    """True in one thread of the warp: `%0 = nvvm.elect.sync -> i1`."""

    name = "nvvm.elect.sync"
    NEEDS: ClassVar = Needs("nvvm.elect.sync", Feature.ELECT)
    EFFECTS: ClassVar = ORDERED

    membermask = opt_operand_def(i32)
    pred = result_def(i1)

    assembly_format = "($membermask^)? attr-dict `->` type($pred)"


@irdl_op_definition
class SetMaxRegisterOp(_SyncOp):
    """Give registers of this warp group back, or take them: `nvvm.setmaxregister increase 232`."""

    name = "nvvm.setmaxregister"
    NEEDS: ClassVar = Needs("nvvm.setmaxregister", Feature.SETMAXNREG)
    EFFECTS: ClassVar = ORDERED

    reg_count = prop_def(IntegerAttr.constr(i32), prop_name="regCount")
    action = prop_def(RegisterActionAttr)

    assembly_format = "$action $regCount attr-dict"


@irdl_op_definition
class GriddepcontrolOp(_SyncOp):
    """Wait for the grids that this one depends on, or let its dependents start: `nvvm.griddepcontrol wait`."""

    name = "nvvm.griddepcontrol"
    NEEDS: ClassVar = Needs("nvvm.griddepcontrol", Feature.DEPENDENT_LAUNCH)
    EFFECTS: ClassVar = ORDERED

    kind = prop_def(GridDepActionAttr)

    assembly_format = "$kind attr-dict"


class _ReadSregOp(IRDLOperation):
    """Shared parts of the reads of special registers (PTX ISA, "Special Registers")."""

    res = result_def(IntegerType)

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($res)"

    def __init__(self, result_type: Attribute = i32):
        super().__init__(result_types=[result_type])


def _read_sreg(register: str) -> type[IRDLOperation]:
    """The operation that reads a special register: `%0 = nvvm.read.ptx.sreg.tid.x : i32`."""
    name = "".join(part.capitalize() for part in register.split("."))
    members: dict[str, object] = {
        "name": f"nvvm.read.ptx.sreg.{register}",
        "__module__": __name__,
        "__doc__": f"Read the special register %{register.replace('.', '_', 1)}.",
    }
    if "cluster" in register:
        members["NEEDS"] = Needs(f"nvvm.read.ptx.sreg.{register}", Feature.CLUSTER)
        members["__annotations__"] = {"NEEDS": ClassVar}
    return irdl_op_definition(type(f"Read{name}Op", (_ReadSregOp,), members))


_SREG_AXES = ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster.ctaid", "cluster.nctaid")
SPECIAL_REGISTERS: dict[str, type[IRDLOperation]] = {
    register: _read_sreg(register)
    for register in (
        *(f"{base}.{axis}" for base in _SREG_AXES for axis in "xyz"),
        "cluster.ctarank",
        "cluster.nctarank",
        "laneid",
        "warpid",
        "smid",
        "clock64",
        "globaltimer",
    )
}
"""The operation that reads each special register."""

NVVM = dialect_of("nvvm", {**globals(), **SPECIAL_REGISTERS})
