"""`tlx-ws-async-dots`: products of consumers in the tensor cores, which read the rings in place and run meanwhile.

A product of blocks that were loaded from buffers reads these where they lie, and is issued without waiting for its
end. The wait comes where something else than another product needs the result (`products_in_flight.py`), and the
arrival that gives a slot of a ring back moves after the wait that ends the last read of it (`releases.py`).

Before:
```mlir
%x = ttg.local_load %a : !ttg.memdesc<64x64xf16, ...> -> tensor<64x64xf16>
%y = ttg.local_load %b : !ttg.memdesc<64x64xf16, ...> -> tensor<64x64xf16>
ttng.arrive_barrier %empty, 1 : ...
%d = tt.dot %x, %y, %acc : ... -> tensor<64x64xf32>
%h = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xf16>
```
After `tlx-ws-async-dots`:
```mlir
%d = ttng.warp_group_dot %a, %b, %acc {isAsync = true} : ... -> tensor<64x64xf32>
%0 = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
ttng.arrive_barrier %empty, 1 : ...
%h = arith.truncf %0 : tensor<64x64xf32> to tensor<64x64xf16>
```
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import BoolAttr, ModuleOp, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.module_attrs import module_target
from tlx_xdsl.dialects import tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import element_bits, layout_attr, scalar_type, shape_of_tensor
from tlx_xdsl.layouts.shared import default_nvmma_layout
from tlx_xdsl.targets import Feature

from ...rewriting import Pass, insert_before, ops_of, replace
from ..tasks_of import copies_of
from .dot_operands import InPlace, buffer_type, in_place, is_zero, why_no_wgmma
from .numbers import number
from .products_in_flight import wait_for_products
from .releases import Reads, move_releases
from .ring_links import HELD_OVER, RingLinks
from .sums import fold_sums


class AsyncDotsPass(Pass):
    """Let the tensor cores do the products of partitions, beside other work."""

    name = "tlx-ws-async-dots"

    def run(self, op: ModuleOp) -> None:
        """Handle each partition by itself, on GPUs with wgmma."""
        target = module_target(op)
        if target is not None and not target.has(Feature.WGMMA):
            return
        for tasks in ops_of(op, ttg.WarpSpecializeOp):
            for index, region in enumerate(tasks.partitions.partition_regions):
                _Partition(tasks, index, region).convert()


class _Partition:
    """The conversion of a partition."""

    def __init__(self, tasks: ttg.WarpSpecializeOp, index: int, region: Region):
        self.tasks = tasks
        self.region = region
        self.copies = copies_of(tasks, index)
        self.rings = RingLinks(tasks)
        self.reads: Reads = {}
        """The products that read a buffer in place, by the load that they did without."""
        self.buffers: dict[SSAValue, list[Block | None]] = {}
        """Buffers of blocks that are computed, with the code that uses each."""

    def convert(self) -> None:
        """Convert products, then complete them and give slots back."""
        fold_sums(self.region)
        for dot in _products(self.region):
            if why_no_wgmma(dot) is None:
                self._convert(dot)
        if not self.reads and not any(isinstance(op, ttng.WarpGroupDotOp) for op in self.region.walk()):
            return
        held_over = {
            product for load, products in self.reads.items() if HELD_OVER in load.attributes for product in products
        }
        wait_for_products(self.region, held_over)
        move_releases(self.region, self.reads, self.rings)
        self._drop_idle_loads()

    def _convert(self, dot: tt.DotOp) -> None:
        a = in_place(dot.a, rows_run_along_k=True)
        b = in_place(dot.b, rows_run_along_k=False)
        operand_b = b.view(dot) if b is not None else self._buffered(dot.b, dot)
        operand_a = a.view(dot) if a is not None else dot.a
        use_accumulator = [number(dot, 0, i1)] if is_zero(dot.c) else []
        product = replace(
            dot,
            ttng.WarpGroupDotOp(
                operands=[operand_a, operand_b, dot.c, use_accumulator],
                properties={
                    "inputPrecision": dot.input_precision,
                    "maxNumImpreciseAcc": dot.max_num_imprecise_acc,
                    "isAsync": BoolAttr.from_bool(True),
                },
                result_types=[dot.d.type],
            ),
        )
        for found in (a, b):
            if found is not None:
                self.reads.setdefault(found.load, []).append(product)
                _drop_steps(found)

    def _buffered(self, block: SSAValue, place: Operation) -> SSAValue:
        """Store a block to a buffer of its own, for the tensor cores take B from shared memory only."""
        shape = shape_of_tensor(block.type)
        layout = layout_attr(default_nvmma_layout(shape, element_bits(scalar_type(block.type))))
        array_type = buffer_type(block.type, self.copies, layout)
        argument = self._free_buffer(array_type, place)
        if argument is None:
            array = insert_before(self.tasks, ttg.LocalAllocOp(operands=[None], result_types=[array_type]))
            array.location = place.location
            array.result.name_hint = f"{block.name_hint or 'operand'}_buffer"
            argument = self._capture(array.result)
        self.buffers.setdefault(argument, []).append(place.parent)
        copy = number(place, 0) if self.copies == 1 else insert_before(place, tlx.ReplicaIdOp()).result
        view_type = array_type.with_shape(shape)
        view = insert_before(place, ttg.MemDescIndexOp(operands=[argument, copy], result_types=[view_type]))
        insert_before(place, ttg.LocalStoreOp(operands=[block, view.result]))
        insert_before(place, ttng.FenceAsyncSharedOp(properties={"bCluster": BoolAttr.from_bool(False)}))
        return view.result

    def _free_buffer(self, type_: Attribute, place: Operation) -> SSAValue | None:
        """Return a buffer of other loops: their products end in the turn in which they read it."""
        mine = _loop_bodies(place)
        for argument, blocks in self.buffers.items():
            users = [_loop_bodies(block.parent_op()) if block is not None else [] for block in blocks]
            apart = all(bodies and bodies[0] not in mine and mine[0] not in bodies for bodies in users if mine)
            if mine and argument.type == type_ and apart:
                return argument
        return None

    def _capture(self, value: SSAValue) -> SSAValue:
        """Give a value of the code around to all partitions; return the argument of this one."""
        partitions = self.tasks.partitions
        partitions.operands = [*partitions.operands, value]
        for region in partitions.partition_regions:
            block = region.blocks[0]
            argument = block.insert_arg(value.type, len(block.args))
            argument.name_hint = value.name_hint
        return self.region.blocks[0].args[-1]

    def _drop_idle_loads(self) -> None:
        for load in self.reads:
            if not load.result.uses.get_length():
                Rewriter.erase_op(load)
        for op in self.region.walk():
            op.attributes.pop(HELD_OVER, None)


def _products(region: Region) -> list[tt.DotOp]:
    """Return the products of a region, in the order of the program; they may be replaced meanwhile."""
    return [op for op in region.walk() if isinstance(op, tt.DotOp)]


def _loop_bodies(op: Operation | None) -> list[Block]:
    """Return the bodies of the loops around an operation, the innermost first; of a loop, its own, too."""
    found: list[Block] = []
    if isinstance(op, scf.ForOp):
        found.append(op.body.block)
    while op is not None:
        parent = op.parent_op()
        if isinstance(parent, scf.ForOp) and op.parent is not None:
            found.append(op.parent)
        op = parent
    return found


def _drop_steps(found: InPlace) -> None:
    for step in reversed(found.steps):
        if step.parent is not None and not step.result.uses.get_length():
            Rewriter.erase_op(step)
