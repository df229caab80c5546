// RUN: not tlx-opt %S/Inputs/no_attributes.mlir -p convert-triton-to-tritongpu 2>&1 | filecheck %s --check-prefix=ATTRIBUTES
// RUN: not tlx-opt %S/Inputs/odd_warps.mlir -p convert-triton-to-tritongpu 2>&1 | filecheck %s --check-prefix=WARPS
// RUN: not tlx-opt %S/Inputs/two_layouts.mlir -p convert-triton-to-tritongpu 2>&1 | filecheck %s --check-prefix=LAYOUTS

// ATTRIBUTES: error: the module needs the attribute 'ttg.num-warps'; the pass triton-tlx-fixup sets it
// WARPS: error: wgmma needs a multiple of 4 warps, found num_warps = 2
// LAYOUTS: error: the descriptor is used with buffers of two layouts
