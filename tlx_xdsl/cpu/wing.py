"""The names by which the CPU plugs into the compiler."""

from tlx_xdsl.wings import Wing

WING = Wing(
    passes={
        "linalg-bufferize": "tlx_xdsl.cpu.bufferize.bufferize",
        "linalg-carry-structure": "tlx_xdsl.cpu.linalg.carry_structure",
        "linalg-expand-block-pointers": "tlx_xdsl.cpu.linalg.expand_block_pointers",
        "linalg-expand-descriptors": "tlx_xdsl.cpu.linalg.expand_descriptors",
        "linalg-fuse-elementwise": "tlx_xdsl.cpu.bufferize.fuse_elementwise",
        "linalg-fuse-pieces": "tlx_xdsl.cpu.bufferize.fuse_pieces",
        "linalg-lower-accesses": "tlx_xdsl.cpu.linalg.lower_accesses",
        "linalg-lower-functions": "tlx_xdsl.cpu.linalg.lower_functions",
        "linalg-lower-tensors": "tlx_xdsl.cpu.linalg.lower_tensors",
        "linalg-recognize-extrema": "tlx_xdsl.cpu.linalg.recognize_extrema",
        "linalg-reduce-in-loops": "tlx_xdsl.cpu.linalg.reduce_in_loops",
        "linalg-scalarize-carried": "tlx_xdsl.cpu.linalg.scalarize_carried",
        "linalg-separate-uses": "tlx_xdsl.cpu.linalg.separate_uses",
        "linalg-split-pointers": "tlx_xdsl.cpu.linalg.split_pointers",
        "linalg-for-upstream": "tlx_xdsl.cpu.linalg.for_upstream",
        "memref-plan-arena": "tlx_xdsl.cpu.bufferize.plan_arena",
        "triton-to-linalg": "tlx_xdsl.cpu.linalg.triton_to_linalg",
    },
    targets={"cpu": "tlx_xdsl.cpu.tools.compile_cpu", "linalg": "tlx_xdsl.cpu.tools.compile_linalg"},
    stages={"linalg": "tlx_xdsl.cpu.linalg.triton_to_linalg:linalg_pipeline"},
    launchers={"cpu": "tlx_xdsl.cpu.runtime.launch:CpuLauncher"},
    findings=("tlx_xdsl.cpu.tools.doctor:findings",),
)
