"""A kernel in linalg to PTX, by upstream MLIR's GPU dialect: a block of one thread for each program.

    tlx compile softmax.py:softmax --target linalg -o build
    tlx-opt build/softmax.linalg.mlir -p linalg-for-upstream -o build/softmax.mlir
    python examples/linalg/to_ptx.py build/softmax.mlir -o build/softmax.ptx --libdevice libdevice.10.bc

The wheel `torch-mlir` has the passes to NVVM, and llvmlite's LLVM makes PTX of that. The kernel of the PTX takes the
address of each array and the numbers, and is launched with as many blocks as there are programs. Buffers become local
memory of the thread. What spreads a program over threads is MLIR's transform dialect, with a script for each kernel.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import llvmlite.binding as llvm
from to_library import BUFFERIZE, passed
from torch_mlir import ir
from torch_mlir.dialects.llvm import translate_module_to_llvmir

TO_LOOPS = (
    "func.func(promote-buffers-to-stack{max-alloc-size-in-bytes=65536 max-rank-of-allocated-memref=5})",
    "convert-linalg-to-loops", "expand-strided-metadata", "lower-affine", "memref-expand",
)  # fmt: skip
TO_NVVM = (
    "convert-math-to-llvm", "convert-arith-to-llvm", "convert-ub-to-llvm",
    "convert-index-to-llvm", "finalize-memref-to-llvm", "convert-cf-to-llvm", "convert-func-to-llvm",
    "reconcile-unrealized-casts",
)  # fmt: skip
DESCRIPTOR = "!llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>"


def ptx(text: str, libdevice: Path, cpu: str = "sm_90") -> tuple[str, str]:
    """Return the PTX of a module of linalg with one function, and the name of its kernel.

    `libdevice` is NVIDIA's library of mathematics as LLVM's bitcode.

    Raises MLIRError with what MLIR says, and RuntimeError with what LLVM says.
    """
    with ir.Context():
        module = ir.Module.parse(text)
        passed(module, "transform-interpreter", script=BUFFERIZE)
        passed(module, *TO_LOOPS)
        (function,) = (op for op in module.body.operations if op.operation.name == "func.func")
        name = ir.StringAttr(function.attributes["sym_name"]).value
        types = [str(each) for each in ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs]
        launched = ir.Module.parse(f"module {{ gpu.module @gpu {{ {function}\n{entry(name, types)} }} }}")
        passed(launched, "gpu.module(convert-scf-to-cf,convert-gpu-to-nvvm)")
        (device,) = launched.body.operations
        inner = "\n".join(str(op) for op in device.regions[0].blocks[0].operations)
        lowered = ir.Module.parse(f"module {{ {inner} }}")
        passed(lowered, *TO_NVVM)
        return compiled(translate_module_to_llvmir(lowered.operation), libdevice, cpu), f"{name}_entry"


def entry(name: str, types: list[str]) -> str:
    """Return the text of a kernel that runs the program of its block: three indices end the function's arguments."""
    parameters, lines, given = [], [], []
    for number, type_ in enumerate(types[:-3]):
        element = re.fullmatch(r"memref<\*x(\w+)>", type_)
        parameters.append(f"%a{number}: {'!llvm.ptr' if element else type_}")
        given.append(f"%u{number}" if element else f"%a{number}")
        if element:
            # A memref of one dimension, of which only the address counts, as one of any rank.
            lines += [
                f"%e{number} = llvm.mlir.zero : {DESCRIPTOR}",
                f"%f{number} = llvm.insertvalue %a{number}, %e{number}[0] : {DESCRIPTOR}",
                f"%g{number} = llvm.insertvalue %a{number}, %f{number}[1] : {DESCRIPTOR}",
                f"%r{number} = builtin.unrealized_conversion_cast %g{number} : {DESCRIPTOR} to memref<?x{element[1]}>",
                f"%u{number} = memref.cast %r{number} : memref<?x{element[1]}> to memref<*x{element[1]}>",
            ]
    for axis in "xyz":
        lines += [f"%i{axis} = gpu.block_id {axis}", f"%p{axis} = arith.index_cast %i{axis} : index to i32"]
        given.append(f"%p{axis}")
    lines.append(f"func.call @{name}({', '.join(given)}) : ({', '.join(types)}) -> ()")
    return f"gpu.func @{name}_entry({', '.join(parameters)}) kernel {{ {chr(10).join(lines)}\ngpu.return }}"


def compiled(text: str, libdevice: Path, cpu: str) -> str:
    """Return the PTX of a module of LLVM IR."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    # LLVM 24 names them; LLVM 22, which llvmlite has, reads their bits as a double.
    for spelled, bits in {"+inf": "7FF0", "-inf": "FFF0", "+qnan": "7FF8", "-qnan": "FFF8"}.items():
        text = re.sub(rf"\b(float|double) {re.escape(spelled)}\b", rf"\1 0x{bits}{12 * '0'}", text)
    module = llvm.parse_assembly(text)
    module.triple = "nvptx64-nvidia-cuda"
    module.link_in(llvm.parse_bitcode(libdevice.read_bytes()))
    for function in module.functions:
        if not function.is_declaration and not function.name.endswith("_entry"):
            # What is not called goes.
            function.linkage = "internal"
    machine = llvm.Target.from_triple(module.triple).create_target_machine(cpu=cpu, opt=3)
    module.data_layout = str(machine.target_data)
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    passes.getModulePassManager().run(module, passes)
    return machine.emit_assembly(module)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=Path, help="text of a module in linalg")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the PTX")
    parser.add_argument("--libdevice", type=Path, required=True, help="libdevice.10.bc, of CUDA's or Triton's wheel")
    parser.add_argument("--cpu", default="sm_90", help="LLVM's name of the GPU")
    args = parser.parse_args()
    text, kernel = ptx(args.module.read_text(), args.libdevice, args.cpu)
    args.output.write_text(text)
    print(kernel)


if __name__ == "__main__":
    main()
