"""`ttl-canonicalize`: constants are folded, and what computes nothing or never happens goes.

Before:
```mlir
%one = ttl.fill {value = 1.0 : f32} : tensor<1x1x!tile>
%y = ttl.mul %x, %one : tensor<1x1x!tile>, tensor<1x1x!tile> -> tensor<1x1x!tile>
%i = affine.apply affine_map<(d0) -> (d0 * 2)> (%c3)
affine.for %j = 4 to 4 {...}
```
After, with `%x` for `%y`:
```mlir
%i = arith.constant 6 : index
```
A block that a thread pushes and stores nothing into gets the one value of its type that nothing uses; a remark of
`ttl-report-repairs` says so. The rules change no bit of a result, but that x + 0 -> x keeps the sign of a zero.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp, UnitAttr, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.dead_code_elimination import region_dce

from tlx_xdsl.transforms.driver import apply_patterns
from tlx_xdsl.transforms.rewriting import constant, ops_of, retype

from ..analysis.core_values import CoreValues, cores_of, side_runs
from ..dialects.ttcore import is_float
from ..dialects.ttl import (
    ADDED_STORE,
    AcquireOp,
    AddOp,
    BcastOp,
    BlockComputeOp,
    BlockOp,
    CopyOp,
    CoreOp,
    CreateCBOp,
    CreatePipeOp,
    CreateSemaphoreOp,
    Direction,
    DivOp,
    DMABarrierOp,
    FillOp,
    GetShardIdOp,
    IfDstOp,
    IfSrcOp,
    KernelOp,
    MaxOp,
    MinOp,
    MulOp,
    PipeYieldOp,
    ReleaseOp,
    StoreOp,
    SubOp,
    TransposeOp,
    TypecastOp,
    UnaryOp,
    is_unwritten,
    result_for,
    tile_of,
)


class TTLCanonicalizePass(ModulePass):
    """Apply all rules until none applies."""

    name = "ttl-canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for acquire in ops_of(op, AcquireOp):
            _store_result(acquire)
        patterns = [*(pattern() for pattern in PATTERNS), CanonicalizationRewritePattern()]
        apply_patterns(op, patterns, context=ctx, fold=True, after_walk=region_dce)


def _store_result(acquire: AcquireOp) -> None:
    """Store what must be meant for a block that a thread pushes and stores nothing into."""
    result = result_for(acquire) if is_unwritten(acquire) else None
    if result is not None:
        store = StoreOp(result, acquire.view)
        store.attributes[ADDED_STORE] = UnitAttr()
        store.location = acquire.location
        Rewriter.insert_op(store, InsertPoint.after(acquire))


class SameOnAllCores(RewritePattern):
    """An index, a condition or another integer that does not depend on the core or on an iteration -> a constant."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        """Fold what is known on every core."""
        if isinstance(op, arith.ConstantOp) or len(op.results) != 1:
            return
        type_ = op.results[0].type
        number = CoreValues(None).of(op.results[0]) if isinstance(type_, IntegerType | IndexType) else None
        if number is not None:
            rewriter.replace(op, constant(number, op.results[0].type))


class OnlyCoordinate(RewritePattern):
    """core() -> 0 along a dimension in which the grid has one core; get_shard_id() -> 0 on a single core."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CoreOp | GetShardIdOp, rewriter: PatternRewriter) -> None:
        """Replace the uses of what is the same on all cores."""
        kernel = _kernel_of(op)
        if kernel is None:
            return
        sizes = (kernel.grid.x, kernel.grid.y) if len(op.results) == 2 else (kernel.grid.cores,)
        for result, size in zip(op.results, sizes, strict=True):
            if size == 1 and result.first_use is not None:
                zero = constant(0, IndexType())
                rewriter.insert(zero)
                rewriter.replace_all_uses_with(result, zero.result)


class BothBarriers(RewritePattern):
    """dma_barrier -> dma_barrier read, dma_barrier write."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: DMABarrierOp, rewriter: PatternRewriter) -> None:
        """Wait for each direction on its own."""
        if op.direction_attr is None:
            rewriter.replace(op, [DMABarrierOp(direction) for direction in Direction], [])


class Identity(RewritePattern):
    """apply(x -> x, x) -> x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: affine.ApplyOp, rewriter: PatternRewriter) -> None:
        """Drop the map."""
        if _is_identity(op.map.data):
            rewriter.replace(op, [], [op.mapOperands[0]])


def _is_identity(map_: AffineMap) -> bool:
    own = AffineExpr.dimension(0) if map_.num_dims else AffineExpr.symbol(0)
    return map_.num_dims + map_.num_symbols == 1 and map_.results == (own,)


class EmptyLoop(RewritePattern):
    """for i = n to n {...} -> what it carries, as it was before."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: affine.ForOp, rewriter: PatternRewriter) -> None:
        """Drop a loop that runs on no core."""
        indices = CoreValues(None).range_of(op)
        if indices is not None and not indices:
            rewriter.replace(op, [], op.inits)


class OneSidedPipe(RewritePattern):
    """if_src p {...} -> {...} where all cores that come there are the source, and nothing where none of them is."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: IfSrcOp | IfDstOp, rewriter: PatternRewriter) -> None:
        """Drop the branch, or what is in it."""
        pipe, kernel = op.pipe.owner, _kernel_of(op)
        if kernel is None or not isinstance(pipe, CreatePipeOp) or not _is_on_grid(pipe, kernel):
            return
        reached = [core for core in cores_of(kernel.grid) if all(side_runs(each, core) for each in _branches(op))]
        runs = [core for core in reached if side_runs(op, core)]
        if not runs:
            rewriter.erase(op)
        elif runs == reached and not any(isinstance(each, CopyOp) and each.far is op.pipe for each in op.walk()):
            # A copy through the pipe stays in the branch that says which end it is.
            block = op.body.block
            if isinstance(end := block.last_op, PipeYieldOp):
                rewriter.erase(end)
            rewriter.inline_block(block, InsertPoint.before(op))
            rewriter.erase(op)


def _kernel_of(op: Operation) -> KernelOp | None:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, KernelOp):
        parent = parent.parent_op()
    return parent


def _is_on_grid(pipe: CreatePipeOp, kernel: KernelOp) -> bool:
    return all(x < kernel.grid.x and y < kernel.grid.y for x, y in (pipe.sources[1], pipe.receivers[1]))


def _branches(op: Operation) -> list[IfSrcOp | IfDstOp]:
    """The branches on the sides of pipes around an operation."""
    found: list[IfSrcOp | IfDstOp] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, IfSrcOp | IfDstOp):
            found.append(parent)
        parent = parent.parent_op()
    return found


class OneBlock(RewritePattern):
    """block(wait {blocks = 1}, i) -> wait, and the same for a reserve."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AcquireOp, rewriter: PatternRewriter) -> None:
        """Drop the dimension that has one block."""
        users = [use.operation for use in op.view.uses]
        if op.blocks is None or op.num_blocks != 1 or not all(isinstance(user, BlockOp) for user in users):
            return
        single = type(op)(op.cb)
        rewriter.insert(single)
        for user in users:
            rewriter.replace(user, [], [single.view])
        rewriter.erase(op)


class OneBlockReleased(RewritePattern):
    """push {blocks = 1} -> push, and the same for a pop."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReleaseOp, rewriter: PatternRewriter) -> None:
        """Drop the number that is the default."""
        if op.blocks is not None and op.num_blocks == 1:
            rewriter.replace(op, type(op)(op.cb))


def _is_filled(value: SSAValue, number: float) -> bool:
    return isinstance(fill := value.owner, FillOp) and fill.value.value.data == number


class Neutral(RewritePattern):
    """x * 1 -> x; x + 0 -> x; x - 0 -> x; x / 1 -> x; 1 * x -> x; 0 + x -> x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MulOp | AddOp | SubOp | DivOp, rewriter: PatternRewriter) -> None:
        """Drop the operation with a neutral number."""
        number = 1.0 if isinstance(op, MulOp | DivOp) else 0.0
        if op.lhs.type != op.rhs.type or op.lhs.type != op.result.type:
            return
        if _is_filled(op.rhs, number):
            rewriter.replace(op, [], [op.lhs])
        elif isinstance(op, MulOp | AddOp) and _is_filled(op.lhs, number):
            rewriter.replace(op, [], [op.rhs])


class Same(RewritePattern):
    """max(x, x) -> x; min(x, x) -> x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MaxOp | MinOp, rewriter: PatternRewriter) -> None:
        """Drop the choice between equals."""
        if op.lhs is op.rhs and op.lhs.type == op.result.type:
            rewriter.replace(op, [], [op.lhs])


class Involution(RewritePattern):
    """neg(neg(x)) -> x; transpose(transpose(x)) -> x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UnaryOp | TransposeOp, rewriter: PatternRewriter) -> None:
        """Drop a pair that undoes itself."""
        inner = op.input.owner
        if not isinstance(inner, type(op)) or inner.input.type != op.result.type:
            return
        if _is_rounded(inner.input) if isinstance(op, TransposeOp) else _is(op, "neg"):
            rewriter.replace(op, [], [inner.input])


def _is(op: Operation | Block, function: str) -> bool:
    """Return whether an operation is a function of `ttl.elementwise`."""
    return isinstance(op, UnaryOp) and op.FUNCTION.name == function


def _is_rounded(value: SSAValue) -> bool:
    """Return whether a value is what it would be in a circular buffer, through which a transpose goes."""
    return isinstance(value.owner, AcquireOp | BlockOp) or tile_of(value.type).data_type == f32


class Idempotent(RewritePattern):
    """abs(abs(x)) -> abs(x); floor(floor(x)) -> floor(x) and the like; abs(neg(x)) -> abs(x)."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: UnaryOp, rewriter: PatternRewriter) -> None:
        """Drop what the operation does to its operand once more."""
        inner = op.input.owner
        if op.input.type != op.result.type:
            return
        if op.FUNCTION.is_idempotent and isinstance(inner, type(op)):
            rewriter.replace(op, [], [inner.result])
        elif _is(op, "abs") and isinstance(inner, UnaryOp) and _is(inner, "neg") and inner.input.type == op.input.type:
            rewriter.replace(op, type(op)(inner.input))


class WiderResult(RewritePattern):
    """typecast(f(x)) to f32 -> f(x), which is f32: what is computed in 32 bits is not rounded before."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TypecastOp, rewriter: PatternRewriter) -> None:
        """Drop a typecast that its operand alone needs."""
        inner = op.input.owner
        if isinstance(inner, TypecastOp) or not isinstance(inner, BlockComputeOp):
            return
        if op.target == f32 and is_float(op.source) and op.input.has_one_use():
            retype(op.input, op.result.type)
            rewriter.replace(op, [], [inner.result])


class SpreadTwice(RewritePattern):
    """bcast(bcast(x, dims), dims) -> bcast(x, dims).

    A bcast to the shape that its operand has is no copy: it spreads the first row or column of each tile.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BcastOp, rewriter: PatternRewriter) -> None:
        """Spread once, to the last shape."""
        inner = op.input.owner
        if isinstance(inner, BcastOp) and inner.dimensions == op.dimensions and inner.result.type == op.input.type:
            rewriter.replace(op, BcastOp(inner.input, op.dimensions, op.result.type))


class Unused(RewritePattern):
    """A circular buffer or semaphore that nothing uses -> nothing."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CreateCBOp | CreateSemaphoreOp, rewriter: PatternRewriter) -> None:
        """Drop what takes room for nothing."""
        if op.result.first_use is None:
            rewriter.erase(op)


PATTERNS: tuple[type[RewritePattern], ...] = (
    BothBarriers,
    SameOnAllCores,
    OnlyCoordinate,
    Identity,
    EmptyLoop,
    OneSidedPipe,
    OneBlock,
    OneBlockReleased,
    Neutral,
    Same,
    Involution,
    Idempotent,
    WiderResult,
    SpreadTwice,
    Unused,
)
