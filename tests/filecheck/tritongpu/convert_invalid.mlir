// RUN: not tlx-opt %S/Inputs/no_attributes.mlir -p convert-triton-to-tritongpu 2>&1 | filecheck %s --check-prefix=ATTRIBUTES
// RUN: not tlx-opt %S/Inputs/odd_warps.mlir -p convert-triton-to-tritongpu 2>&1 | filecheck %s --check-prefix=WARPS
// RUN: not tlx-opt %S/Inputs/two_layouts.mlir -p convert-triton-to-tritongpu 2>&1 | filecheck %s --check-prefix=LAYOUTS
// RUN: not tlx-opt %S/Inputs/two_ctas.mlir -p convert-triton-to-tritongpu 2>&1 | filecheck %s --check-prefix=CTAS

// ATTRIBUTES: error: the module needs the attribute 'ttg.num-warps'; the pass triton-tlx-fixup sets it
// WARPS: error: 'ttng.warp_group_dot' a wgmma needs a multiple of 4 warps, 2 run this code
// LAYOUTS: error: the descriptor is used with buffers of two layouts
// CTAS: error: num_ctas=2 shares tensors among CTAs: beside tlx that works for what is done to each element of tensors of one dimension only, found 'tt.expand_dims'
// CTAS: note: ctas_per_cga=(2, 1, 1) makes clusters in which each CTA has tensors of its own
