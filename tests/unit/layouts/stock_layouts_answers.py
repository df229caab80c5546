"""The process that answers the questions of `stock_layouts`: it alone imports Triton."""

import json
import pickle
import sys
import tempfile
from typing import Any

import triton
from triton._C.libtriton import gluon_ir, ir, nvidia
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell

from tlx_xdsl.layouts.encodings import (
    Bases,
    BlockedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    Ints,
    Layout,
    NvidiaMmaLayout,
    NvmmaSharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)

CTA_SPLITS = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 8)
"""Tensor memory is split over CTAs by a number per dimension, not by bases."""


class Stock:
    """Stock Triton; a method per question, named like it."""

    def __init__(self) -> None:
        self.context = ir.context()
        ir.load_dialects(self.context)
        nvidia.load_dialects(self.context)
        self.builder = gluon_ir.GluonOpBuilder(self.context)

    def bases(self, layout: Layout, shape: Ints) -> dict[str, Any]:
        return bases_in(self.builder.to_linear_layout(self.attribute(layout), shape))

    def alignment(self, layout: Layout, shape: Ints) -> int:
        return self.builder.to_linear_layout(self.attribute(layout), shape).alignment

    def accepts(self, text: str) -> bool:
        try:
            self.parse(text)
        except RuntimeError:
            return False
        return True

    def prints(self, text: str) -> str:
        return str(self.parse(text))

    def shared_bytes(self, text: str) -> int:
        return self.run(text, nvidia.passes.ttgpuir.add_allocate_shared_memory_nv, "ttg.shared", 100, 86)

    def tmem_columns(self, text: str) -> int:
        return self.run(text, nvidia.passes.ttnvgpuir.add_allocate_tensor_memory, "ttg.tensor_memory_size")

    def tmem_registers(self, layout: TensorMemoryLayout, shape: Ints) -> dict[str, Any] | None:
        block = (layout.block_m, layout.block_n)
        element = {1: gl.float32, 2: gl.float16}[layout.col_stride]
        cga = [list(basis) for basis in layout.cga_layout]
        if CTA_SPLITS:
            split = tuple(max(2 * max((basis[dim] for basis in cga), default=0), 1) for dim in (0, 1))
            encoding = blackwell.TensorMemoryLayout(block, layout.col_stride, split, layout.two_ctas)
            found = gluon_ir.compute_tmem_reg_layout(element, shape, encoding, 4, "32x32b", cga)
        else:
            encoding = blackwell.TensorMemoryLayout(block, layout.col_stride, cga, layout.two_ctas)
            found = gluon_ir.compute_tmem_reg_layout(element, shape, shape, encoding, 4, "32x32b")
        return None if found is None else bases_in(found)

    def view(self, layout: Layout, shape: Ints, by_hardware: bool) -> str:
        match layout:
            case BlockedLayout(spt, threads, warps, order):
                found = gl.BlockedLayout(list(spt), list(threads), list(warps), list(order))
            case NvidiaMmaLayout(major, minor, warps, _, instr_shape):
                found = gl.NVMMADistributedLayout([major, minor], list(warps), list(instr_shape))
            case SwizzledSharedLayout(vec, per_phase, max_phase, order):
                found = gl.SwizzledSharedLayout(vec, per_phase, max_phase, list(order))
            case NvmmaSharedLayout(width, transposed, bits):
                found = gl.NVMMASharedLayout(width, bits, 2, transposed)
            case _:
                raise ValueError(f"no view of {layout}")
        return gluon_ir.get_layout_view(found, list(shape), by_hardware)

    def parse(self, text: str) -> Any:
        with tempfile.NamedTemporaryFile("w", suffix=".ttgir") as file:
            file.write(text)
            file.flush()
            return ir.parse_mlir_module(file.name, self.context)

    def run(self, text: str, add_pass: Any, attr: str, *options: int) -> int:
        """The module's integer attribute after a pass."""
        module = self.parse(text)
        manager = ir.pass_manager(self.context)
        add_pass(manager, *options)
        manager.run(module, "allocate")
        return module.get_int_attr(attr)

    def attribute(self, layout: Layout) -> Any:
        builder = self.builder
        match layout:
            case BlockedLayout(spt, threads, warps, order, cga):
                return builder.get_blocked_layout(spt, threads, warps, order, cga)
            case SliceLayout(dim, parent):
                return builder.get_slice_layout(dim, self.attribute(parent))
            case NvidiaMmaLayout(major, minor, warps, cga, instr_shape):
                return builder.get_mma_layout([major, minor], warps, cga, instr_shape)
            case DotOperandLayout(op_idx, parent, k_width):
                return builder.get_dot_operand_layout(op_idx, self.attribute(parent), k_width)
            case DistributedLinearLayout(register, lane, warp, block):
                shape = spanned((*register, *lane, *warp, *block))
                return builder.get_distributed_linear_layout(register, lane, warp, block, shape)
            case SwizzledSharedLayout(vec, per_phase, max_phase, order, cga):
                return builder.get_swizzled_shared_layout(vec, per_phase, max_phase, order, cga)
            case NvmmaSharedLayout(width, transposed, bits, fp4, rank, cga):
                return builder.get_nvmma_shared_layout(width, bits, transposed, fp4, cga, rank)
            case SharedLinearLayout(offset, block, alignment=alignment):
                return builder.get_shared_linear_layout(offset, block, alignment)
            case TensorMemoryLayout(block_m, block_n, stride, cga, pair, fp4):
                return builder.get_tensor_memory_layout((block_m, block_n), stride, cga, pair, fp4)
            case TensorMemoryScalesLayout(cga, order):
                return builder.get_tensor_memory_scales_layout(cga, order)
            case _:
                raise ValueError(f"no constructor for {layout}")


def spanned(bases: Bases) -> list[int]:
    """The shape that a layout with these bases has."""
    return [1 << max(column).bit_length() for column in zip(*bases, strict=True)]


def bases_in(found: Any) -> dict[str, Any]:
    """The bases in one of Gluon's layout objects."""
    names = {
        "reg_bases": "register",
        "lane_bases": "lane",
        "warp_bases": "warp",
        "block_bases": "block",
        "offset_bases": "offset",
        "rows": "row",
        "cols": "col",
    }
    return {name: getattr(found, field) for field, name in names.items() if hasattr(found, field)}


def main() -> None:
    stock = Stock()
    with open(sys.argv[1], "rb") as file:
        questions = pickle.load(file)
    for name, *arguments in questions:
        try:
            answer = getattr(stock, name.replace(" ", "_"))(*arguments)
        except RuntimeError as error:
            answer = f"error: {error}"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
