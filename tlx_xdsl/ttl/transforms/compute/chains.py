"""`ttl.compute` operations of chains of operations on blocks.

What is element by element runs in one body, tile by tile: no block between two operations is in memory. Blocks that
must be in a circular buffer are inputs, wherever they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatchmethod

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.ttl.analysis.block_values import acquired_by, computes
from tlx_xdsl.ttl.dialects import ttl
from tlx_xdsl.ttl.dialects.ttcore import register_bytes

PARALLEL = IteratorTypeAttr.parallel()
REDUCTION = IteratorTypeAttr.reduction()
ZERO = AffineConstantExpr(0)


class Chain:
    """The `ttl.compute` that is being built for some outputs of one shape."""

    def __init__(self, buffers: Mapping[SSAValue, SSAValue], scaler: Callable[[ttl.ReduceOp], SSAValue]) -> None:
        """`buffers`: the views of computed blocks that are in a buffer; `scaler`: that of the ones for a reduction."""
        self._buffers = buffers
        self._scaler = scaler
        self._block = Block()
        self._inputs: dict[tuple[SSAValue, tuple[AffineExpr, ...]], BlockArgument] = {}
        self._tiles: dict[SSAValue, SSAValue] = {}
        self._place_of_output: tuple[AffineExpr, ...] = ()
        self._iterators: Sequence[IteratorTypeAttr] = []
        self._output_map: tuple[AffineExpr, ...] = ()

    def compute(
        self,
        values: Sequence[SSAValue],
        views: Sequence[SSAValue],
        *,
        accumulate: bool = False,
        first: SSAValue | None = None,
    ) -> ttl.ComputeOp:
        """The operation that writes `values` to `views`.

        Raises CompilationError for a value that no operation computes or waits for.
        """
        self._place_of_output = tuple(map(AffineDimExpr, range(len(ttl.block_shape(views[0].type)))))
        self._iterators, self._output_map = [PARALLEL] * len(self._place_of_output), self._place_of_output
        outputs = [self._block.insert_arg(ttl.tile_of(view.type), number) for number, view in enumerate(views)]
        tiles = [self._output(value, output) for value, output in zip(values, outputs, strict=True)]
        self._block.add_op(ttl.YieldOp(*tiles))
        maps = [*(exprs for _, exprs in self._inputs), *(self._output_map for _ in views)]
        return ttl.ComputeOp(
            [view for view, _ in self._inputs],
            views,
            Region(self._block),
            [AffineMapAttr(AffineMap(len(self._iterators), 0, exprs)) for exprs in maps],
            self._iterators,
            accumulate=accumulate,
            first=first,
        )

    def _output(self, value: SSAValue, output: SSAValue) -> SSAValue:
        """The tile of an output, which is that of a reduction only where the chain is nothing else."""
        if value in self._buffers:
            return self._argument(value, self._place_of_output)
        op = computes(value)
        if op is not None and issubclass(op.TILE, ttl.TileAccumulatingOp):
            return self._loop(op, output)
        return self._tile(value)

    def _tile(self, value: SSAValue) -> SSAValue:
        """The tile of `value` at the place of the output's."""
        if value in self._tiles:
            return self._tiles[value]
        if (root := self._computed(value)) is None:
            return self._argument(value, self._place_of_output)
        # Operations with the tiles of their first operands: a chain may be longer than Python's stack is deep.
        pending: list[tuple[ttl.BlockComputeOp, list[SSAValue]]] = [(root, [])]
        while pending:
            op, tiles = pending[-1]
            if len(tiles) == len(op.operands):
                self._tiles[op.result] = self._add(op, tiles)
                pending.pop()
                continue
            operand = op.operands[len(tiles)]
            if len(tiles) in op.TILE.CB_OPERANDS:
                tiles.append(self._argument(operand, self._place(op)))
            elif operand in self._tiles:
                tiles.append(self._tiles[operand])
            elif (inner := self._computed(operand)) is not None:
                pending.append((inner, []))
            else:
                tiles.append(self._argument(operand, self._place_of_output))
        return self._tiles[value]

    def _computed(self, value: SSAValue) -> ttl.BlockComputeOp | None:
        """The operation that is done again for `value`; None where its tile is in a buffer."""
        op = computes(value)
        return None if op is None or (value in self._buffers and is_exact(op)) else op

    def _add(self, op: ttl.BlockComputeOp, operands: Sequence[SSAValue]) -> SSAValue:
        """The operation on a tile for an operation on blocks; the tile itself where only tiles are repeated."""
        properties = dict(op.properties)
        if isinstance(op, ttl.DimsOp):
            if not op.tile_dims:
                return operands[0]
            properties["dims"] = ttl.dims_attr(op.tile_dims)
        tile = op.TILE.create(operands=operands, result_types=[ttl.tile_of(op.result.type)], properties=properties)
        tile.location = op.location
        tile.results[0].name_hint = op.result.name_hint
        self._block.add_op(tile)
        return tile.results[0]

    def _argument(self, value: SSAValue, exprs: tuple[AffineExpr, ...]) -> SSAValue:
        """The tile of a block in a buffer at a place."""
        view = self._buffers.get(value, value)
        check_readable(view)
        if (view, exprs) not in self._inputs:
            # Before the arguments of the outputs.
            self._inputs[view, exprs] = self._block.insert_arg(ttl.tile_of(view.type), len(self._inputs))
        return self._inputs[view, exprs]

    @singledispatchmethod
    def _place(self, op: ttl.BlockComputeOp) -> tuple[AffineExpr, ...]:
        """Return where an operation in a loop over the output's tiles reads its operand."""
        raise error_at(op, f"'{op.name}' cannot be computed tile by tile")

    @_place.register
    def _(self, op: ttl.BcastOp) -> tuple[AffineExpr, ...]:
        return tuple(ZERO if dim in op.dimensions else expr for dim, expr in enumerate(self._place_of_output))

    @_place.register
    def _(self, _op: ttl.TransposeOp) -> tuple[AffineExpr, ...]:
        *others, row, column = self._place_of_output
        return *others, column, row

    @singledispatchmethod
    def _loop(self, op: Operation, output: SSAValue) -> SSAValue:
        """The tile of an operation with a loop that is no loop over tiles of its result."""
        raise error_at(op, f"'{op.name}' cannot be computed tile by tile")

    @_loop.register
    def _(self, op: ttl.MatmulOp, output: SSAValue) -> SSAValue:
        self._iterators = [*self._iterators, REDUCTION]
        *matrix, row, column = self._place_of_output
        inner = AffineDimExpr(len(self._place_of_output))
        right = matrix if len(ttl.block_shape(op.rhs.type)) > 2 else []
        lhs, rhs = self._argument(op.lhs, (*matrix, row, inner)), self._argument(op.rhs, (*right, inner, column))
        return self._add(op, [lhs, rhs, output])

    @_loop.register
    def _(self, op: ttl.ReduceOp, output: SSAValue) -> SSAValue:
        place = self._place_of_output
        self._iterators = [REDUCTION if dim in op.dimensions else PARALLEL for dim in range(len(place))]
        self._output_map = tuple(ZERO if dim in op.dimensions else expr for dim, expr in enumerate(place))
        tile = self._argument(op.input, place)
        scaler = self._scaler(op) if op.scaler is None else op.scaler
        return self._add(op, [tile, self._argument(scaler, (ZERO, ZERO)), output])


def is_exact(op: ttl.BlockComputeOp) -> bool:
    """Return whether the block that `op` makes is the same in a circular buffer as in registers.

    Results of 16 bits are in registers with more, and rounded in a buffer; those of operations which read a buffer are
    rounded anyway. Users that compute with the other ones compute them once more, for a result that does not depend on
    what else they are used for.
    """
    return bool(op.TILE.CB_OPERANDS) or register_bytes(ttl.tile_of(op.result.type).data_type) == _EXACT_BYTES


_EXACT_BYTES = 4
"""Bytes of an element that is in a register as it is in memory."""


def check_readable(view: SSAValue) -> None:
    """Check that a block comes from a circular buffer's consumer side.

    Raises CompilationError.
    """
    acquire = acquired_by(view)
    if acquire is None:
        raise error_at(
            view,
            "a block of tiles must be computed or waited for in this thread, found one that a loop or a branch gives",
            ["a block that lives longer than one run of a loop's body is kept in a circular buffer: store it there"],
        )
    if acquire.PRODUCES:
        raise error_at(
            view,
            "a block that is reserved can only be written, found an operation that reads it",
            ["read the value that is stored, or wait for the block after it was pushed"],
        )


def check_writable(store: ttl.StoreOp) -> None:
    """Check that a store is to a block that was reserved.

    Raises CompilationError.
    """
    acquire = acquired_by(store.view)
    if acquire is None or not acquire.PRODUCES:
        raise error_at(
            store,
            "a store writes a block of ttl.cb_reserve, found one of ttl.cb_wait",
            ["the consumer of a circular buffer only reads it: reserve a block of another buffer"],
        )
