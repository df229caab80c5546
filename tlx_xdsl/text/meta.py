"""Operations of Meta's Triton that upstream Triton lacks, read as what means the same here.

Meta's compiler prints them after its own passes. A reader parses the custom form of one and gives the operations that
stand for it; what has no counterpart is refused by name.

```mlir
%t = ttng.async_tma_copy_local_to_global %d[%i, %j] %b : ... -> !ttg.async.token
ttng.async_tma_store_token_wait %t : !ttg.async.token
```
is read as
```mlir
ttng.async_tma_copy_local_to_global %d[%i, %j] %b : ...
ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
```
Source: TritonGPUOps.td and TritonNvidiaGPUOps.td of facebookexperimental/triton, August 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import arith, ub
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, UnrealizedConversionCastOp, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.arith import SelectOp
from tlx_xdsl.dialects.base import Space
from tlx_xdsl.dialects.tt import ProgramIDDim


@dataclass
class Reading:
    """The operations that stand for one of Meta's, in order, and the values of its results."""

    ops: list[Operation] = field(default_factory=list[Operation])
    results: Sequence[SSAValue] = ()

    def add(self, op: Operation) -> SSAValue:
        """Append an operation; return its first result."""
        self.ops.append(op)
        return op.results[0]


PER_THREAD = "perThread"
Reader: TypeAlias = Callable[[Parser], Reading]


@dataclass(frozen=True)
class Stand:
    """A stand-in for the class of an operation in xDSL's parser: it has a reader."""

    name: str
    reader: Reader
    readings: dict[Operation, Reading]
    """The readings so far, by the casts that hold their places until the module is whole."""

    def dialect_name(self) -> str:
        """Return the dialect whose operations need no prefix inside."""
        return self.name.partition(".")[0]

    def parse(self, parser: Parser) -> Operation:
        """Parse the operation; return the only one that stands for it, or a cast in the place of several."""
        reading = self.reader(parser)
        if len(reading.ops) == 1 and list(reading.results) == list(reading.ops[0].results):
            return reading.ops[0]
        holder = UnrealizedConversionCastOp(
            operands=[reading.results], result_types=[[each.type for each in reading.results]]
        )
        self.readings[holder] = reading
        return holder


def settle(readings: dict[Operation, Reading]) -> None:
    """Put the operations of all readings in their places, and drop values that nothing uses."""
    for holder, reading in readings.items():
        block = holder.parent_block()
        assert block is not None
        for op in reading.ops:
            op.location = holder.location
        block.insert_ops_before(reading.ops, holder)
        for result, value in zip(holder.results, reading.results, strict=True):
            value.name_hint = result.name_hint
            result.replace_all_uses_with(value)
        holder.detach()
        holder.erase()
        for op in reversed(reading.ops):
            if isinstance(op, ub.PoisonOp) and op.result.first_use is None:
                op.detach()
                op.erase()


# --- readers ----------------------------------------------------------------------------------------------------------


def _types(parser: Parser) -> list[Attribute]:
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


def _operand(parser: Parser, after: str | None = None) -> Callable[[Attribute], SSAValue]:
    """Parse a name, after a comma or a keyword; the function gives its value by its type."""
    if after == ",":
        parser.parse_punctuation(",")
    elif after is not None:
        parser.parse_keyword(after)
    operand = parser.parse_unresolved_operand()
    return lambda type_: parser.resolve_operand(operand, type_)


def _typed(
    parser: Parser, *operands: Callable[[Attribute], SSAValue], more: Sequence[Attribute] = ()
) -> tuple[dict[str, Attribute], list[SSAValue]]:
    """Parse attributes and the types of operands; the last operands have the types `more`, which are not written."""
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    types = _types(parser)
    if len(types) + len(more) != len(operands):
        parser.raise_error(f"expected {len(operands) - len(more)} types, found {len(types)}", position)
    return attributes, [each(type_) for each, type_ in zip(operands, (*types, *more), strict=True)]


def _store(op: type[IRDLOperation]) -> Reader:
    """A store by TMA, which may give a token: waits do without, for they wait for all stores so far."""

    def read(parser: Parser) -> Reading:
        reading = Reading([op.parse(parser)])
        if parser.parse_optional_punctuation("->") is not None:
            reading.results = [reading.add(ub.PoisonOp(parser.parse_type()))]
        return reading

    return read


def _store_wait(parser: Parser) -> Reading:
    """A wait for one store by TMA, and arrivals after it."""
    token = _operand(parser)
    barriers: list[tuple[Callable[[Attribute], SSAValue], Callable[[Attribute], SSAValue]]] = []
    while parser.parse_optional_punctuation(",") is not None:
        barrier = _operand(parser)
        parser.parse_punctuation("[")
        barriers.append((barrier, _operand(parser)))
        parser.parse_punctuation("]")
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    token(parser.parse_type())
    wait = {"pendings": IntegerAttr(0, i32), "read_only": UnitAttr()}
    reading = Reading([ttng.AsyncTMAStoreWaitOp(properties=wait, attributes=attributes)])
    for barrier, pred in barriers:
        parser.parse_punctuation(",")
        operands = [[barrier(parser.parse_type())], [pred(i1)]]
        reading.ops.append(ttng.ArriveBarrierOp(operands=operands, properties={"count": IntegerAttr(1, i32)}))
    return reading


def _index(parser: Parser) -> Reading:
    """A barrier of an array, which Meta's Triton gives one dimension: `2xi64` for `2x1xi64`."""
    op = ttg.MemDescIndexOp.parse(parser)
    source, result = ttg.memdesc_type(op.src.type), op.result.type
    is_array = len(source.shape) == 1 and source.space is Space.SHARED
    if not is_array or source.element_type != i64 or result.shape != (1,):
        return Reading([op], op.results)
    reading = Reading()
    array = source.with_shape((*source.shape, 1))
    view = reading.add(ttg.MemDescReinterpretOp(operands=[op.src], result_types=[array]))
    index, attributes = op.index, op.attributes
    op.erase()
    index_op = ttg.MemDescIndexOp(operands=[view, index], attributes=attributes, result_types=[result])
    reading.results = [reading.add(index_op)]
    return reading


def _arrive(parser: Parser) -> Reading:
    """An arrival: of all threads together or of each, here or at the barrier of another CTA."""
    op = ttng.ArriveBarrierOp.parse(parser)
    is_remote, one_each = ttg.memdesc_type(op.alloc.type).space is Space.CLUSTER, op.attributes.pop(PER_THREAD, None)
    if isinstance(mask := op.attributes.pop("ctaMask", None), IntegerAttr):
        op.properties["multicastCTA"] = mask
    if one_each and (is_remote or op.multicast_cta.value.data):
        raise VerifyException("an arrival of each thread at another CTA is Meta's Triton's own")
    made: list[Operation] = [op]
    if one_each:
        make = tlx.ArrivePerThreadOp.create
        made = [make(operands=op.operands, attributes=op.attributes) for _ in range(op.count.value.data)]
    elif is_remote:
        made = [
            tlx.ArriveRemoteOp.create(operands=op.operands, properties={"count": op.count}, attributes=op.attributes)
        ]
    if made != [op]:
        op.erase()
    return Reading(made)


def _named(op: type[IRDLOperation]) -> Reader:
    def read(parser: Parser) -> Reading:
        attributes, (number, threads) = _typed(parser, _operand(parser), _operand(parser, ","))
        count = threads.owner.value if isinstance(threads.owner, arith.ConstantOp) else None
        if not isinstance(count, IntegerAttr):
            raise VerifyException("the threads at a named barrier are a constant here")
        return Reading([op.create(operands=[number], properties={"threads": count}, attributes=attributes)])

    return read


def _remote(op: type[IRDLOperation], *, barrier: bool) -> Reader:
    """A write to another CTA's buffer, and to its barrier, both of which are named by those of this CTA."""

    def read(parser: Parser) -> Reading:
        operands = [_operand(parser)]
        parser.parse_punctuation(",")
        rank = _operand(parser, "rank")(i32)
        operands.append(_operand(parser, ","))
        if barrier:
            operands.append(_operand(parser, "barrier"))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        reading, values = Reading(), [operands[0](parser.parse_type())]
        parser.parse_punctuation("->")
        for number, each in enumerate(operands[1:]):
            if number:
                parser.parse_keyword("barrier_ty")
            buffer = ttg.memdesc_type(parser.parse_type())
            remote = tlx.MapToRemoteOp.remote_type(buffer)
            values.append(reading.add(tlx.MapToRemoteOp(operands=[each(buffer), rank], result_types=[remote])))
        reading.ops.append(op.create(operands=values, attributes=attributes))
        return reading

    return read


def _bulk_store(parser: Parser) -> Reading:
    operands = _operand(parser), _operand(parser, ","), _operand(parser, ",")
    attributes, values = _typed(parser, *operands, more=(i32,))
    return Reading([tlx.AsyncBulkStoreOp.create(operands=values, attributes=attributes)])


def _response(reading: Reading, buffer: SSAValue) -> SSAValue:
    """The two i64 of a response of the cluster launch control, which Meta's Triton takes for one ui128."""
    type_ = ttg.memdesc_type(buffer.type)
    words = ttg.MemDescType.get((2,), i64, type_.encoding, type_.memory_space, mutable=type_.is_mutable)
    return reading.add(ttg.MemDescReinterpretOp(operands=[buffer], result_types=[words]))


def _try_cancel(parser: Parser) -> Reading:
    attributes, (barrier, buffer) = _typed(parser, _operand(parser), _operand(parser, ","))
    reading = Reading()
    response = _response(reading, buffer)
    pred = reading.add(arith.ConstantOp.from_int_and_width(1, 1))
    reading.ops.append(tlx.CLCTryCancelOp.create(operands=[response, barrier, pred], attributes=attributes))
    return reading


def _query_cancel(parser: Parser) -> Reading:
    """The coordinates of the cluster in a response, -1 where it brings none."""
    operand = _operand(parser)
    parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    inputs = parser.parse_function_type().inputs.data
    if len(inputs) != 1:
        parser.raise_error(f"expected the type of a response, found {len(inputs)} types", position)
    reading = Reading()
    response = _response(reading, operand(inputs[0]))
    loaded = reading.add(ttng.CLCLoadResultOp.create(operands=[response], result_types=[ttng.I128]))
    brings = reading.add(ttng.CLCIsCanceledOp.create(operands=[loaded], result_types=[i1]))
    none = reading.add(arith.ConstantOp.from_int_and_width(-1, 32))
    results: list[SSAValue] = []
    for dim in ProgramIDDim:
        at = ttng.CLCGetProgramIdOp.create(operands=[loaded], properties={"dim": dim.attr}, result_types=[i32])
        results.append(reading.add(SelectOp(brings, reading.add(at), none)))
    reading.results = results
    return reading


def _alike(op: type[IRDLOperation]) -> Reader:
    """An operation that is written as ours is."""

    def read(parser: Parser) -> Reading:
        made = op.parse(parser)
        return Reading([made], made.results)

    return read


READERS: dict[str, Reader] = {
    "ttg.async_remote_shmem_copy": _remote(tlx.AsyncRemoteCopyOp, barrier=True),
    "ttg.async_remote_shmem_store": _remote(tlx.AsyncRemoteStoreOp, barrier=True),
    "ttg.memdesc_index": _index,
    "ttg.remote_shmem_store": _remote(tlx.RemoteStoreOp, barrier=False),
    "ttng.arrive_barrier": _arrive,
    "ttng.arrive_barrier_named": _named(tlx.NamedBarrierArriveOp),
    "ttng.async_clc_try_cancel": _try_cancel,
    "ttng.async_store": _bulk_store,
    "ttng.async_tma_copy_local_to_global": _store(ttng.AsyncTMACopyLocalToGlobalOp),
    "ttng.async_tma_prefetch": _alike(tlx.AsyncTMAPrefetchOp),
    "ttng.async_tma_reduce": _store(ttng.AsyncTMAReduceOp),
    "ttng.async_tma_store_token_wait": _store_wait,
    "ttng.clc_query_cancel": _query_cancel,
    "ttng.cluster_size_1d": _alike(tlx.ClusterSizeOp),
    "ttng.map_to_remote_buffer": _alike(tlx.MapToRemoteOp),
    "ttng.prefetch_tensormap": _alike(tlx.PrefetchTensormapOp),
    "ttng.vote_ballot_sync": _alike(tlx.VoteBallotOp),
    "ttng.wait_barrier_named": _named(tlx.NamedBarrierWaitOp),
}
"""How operations of Meta's Triton are read, and those of upstream's that it writes in another way, too."""

ITS_OWN = frozenset(
    f"ttng.{name}"
    for name in (
        "clc_advance", "clc_read", "clc_try_cancel_async", "fence", "prefetch", "subtiled_region",
        "subtiled_region_yield", "tcgen5_global_alloc", "two_cta_peer_gather",
    )
)  # fmt: skip
"""Its operations that nothing here means the same as."""

ITS_WORDS = {
    "ctaMode": "the mode of accumulators of 64 rows in pairs of CTAs",
    "descPtr": "memory for a descriptor",
    "evictionPolicy": "a cache hint of a store or a reduction by TMA",
    "rbits": "stochastic rounding by `tt.fp_to_fp`",
    "reduce_kind": "a reduction by `tt.descriptor_store`",
}
"""Words of its syntax in operations that upstream has, too, and what they say."""
