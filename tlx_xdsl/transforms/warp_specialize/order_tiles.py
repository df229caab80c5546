"""`tlx-ws-order-tiles`: tiles with many turns come first, and every other round of tiles goes backwards.

Under a causal mask a block of rows sees all keys up to its own, so the tiles of a launch take different times. The
programs of a persistent kernel have equally much to do where long tiles come before short ones, and where the program
that had the longest one of a round has the shortest of the next.

Before:
```mlir
scf.for %tile = %first to %tiles step %programs : i32 {
  %x = arith.remsi %tile, %grid_x : i32
```
After, in Python:
```python
for tile in range(first, tiles, programs):
    distance = tile - first
    is_back = (distance // programs % 2 == 1) & (distance + programs <= tiles)
    place = tl.where(is_back, distance + programs - 1 - first, tile)
    number = tl.maximum(tiles - 1 - place, 0)
    x = number % grid_x
```
Rounds that are not full keep their order. With `spread`, the axis along which tiles grow is the slower one: all longest
tiles come first. Without it, tiles of the other axis that read the same follow each other, and find it in the cache.

Done for loops of `tlx-ws-make-persistent` in which the turns of a loop with a product get more, or fewer, along the
first axis.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i1, i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.arith import CmpiOp, SelectOp

from ..rewriting import Pass, constant, insert_before, ops_of
from .growth import growth
from .tasks_of import TILES


@dataclass(frozen=True)
class OrderTilesPass(Pass):
    """Order the tiles of persistent kernels by their turns."""

    name = "tlx-ws-order-tiles"

    spread: bool = False
    """All tiles with many turns come first, whatever they read."""

    def run(self, op: ModuleOp) -> None:
        """Handle all loops over tiles of the module."""
        for loop in ops_of(op, scf.ForOp):
            if TILES in loop.attributes and (how := _growth(loop)):
                _order(loop, is_falling=how > 0, spread=self.spread)


def _first_axis(loop: scf.ForOp) -> arith.RemSIOp | None:
    """Return the number of a tile along the first of several axes."""
    users = [use.operation for use in loop.body.block.args[0].uses]
    return next((op for op in users if isinstance(op, arith.RemSIOp)), None)


def _growth(loop: scf.ForOp) -> int:
    """Return 1 where tiles have more turns from one to the next along the first axis, -1 where fewer, else 0."""
    axis = _first_axis(loop)
    along = loop.body.block.args[0] if axis is None else axis.result
    found = {
        growth(inner.ub, lambda value: value is along)
        for inner in ops_of(loop, scf.ForOp)
        if inner is not loop and any(isinstance(op, tt.DotOp) for op in inner.body.block.ops)
    }
    return next(iter(found)) or 0 if len(found) == 1 else 0


def _order(loop: scf.ForOp, *, is_falling: bool, spread: bool) -> None:
    """Let the body of a loop take another number for its tile."""
    tile, (first, tiles, programs) = loop.body.block.args[0], loop.operands[:3]
    users = list(tile.uses)
    anchor = loop.body.block.first_op
    assert anchor is not None, "a loop does something"

    def made(op: Operation, name: str | None = None) -> SSAValue:
        result = insert_before(anchor, op).results[0]
        result.name_hint = name
        return result

    none, one, two = (made(constant(number, i32)) for number in range(3))
    distance = made(arith.SubiOp(tile, first), "distance")
    is_odd = made(CmpiOp("eq", made(arith.RemSIOp(made(arith.DivSIOp(distance, programs)), two)), one))
    following = made(arith.AddiOp(distance, programs))
    is_back = made(arith.AndIOp(is_odd, made(CmpiOp("sle", following, tiles)), i1), "is_back")
    back = made(arith.SubiOp(made(arith.SubiOp(following, one)), first))
    place = made(SelectOp(is_back, back, tile), "place")
    if is_falling:
        # That the number is not negative is to be seen from it.
        place = made(arith.MaxSIOp(made(arith.SubiOp(made(arith.SubiOp(tiles, one)), place)), none))
    if spread and (axis := _first_axis(loop)) is not None:
        others = made(arith.DivSIOp(tiles, axis.rhs))
        x, y = made(arith.DivSIOp(place, others)), made(arith.RemSIOp(place, others))
        place = made(arith.AddiOp(made(arith.MuliOp(y, axis.rhs)), x))
    place.name_hint = "number"
    for use in users:
        use.operation.operands[use.index] = place
