"""`triton-to-linalg`: a module of plain Triton in the dialects of upstream MLIR.

Before:
```mlir
tt.func public @copy(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %0 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %1 = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %2 = tt.addptr %1, %0 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %3 = tt.load %2 : tensor<128x!tt.ptr<f32>>
  ...
```
After:
```mlir
func.func @copy(%x: memref<*xf32>, %y: memref<*xf32>, %pid_x: i32, %pid_y: i32, %pid_z: i32) {
  %0 = memref.reinterpret_cast %x to offset: [0], sizes: [128], strides: [1]
      : memref<*xf32> to memref<128xf32, strided<[1]>>
  %1 = memref.alloc() : memref<128xf32>
  memref.copy %0, %1 : memref<128xf32, strided<[1]>> to memref<128xf32>
  %2 = bufferization.to_tensor %1 restrict writable : memref<128xf32> to tensor<128xf32>
  ...
```
It runs the passes `linalg-*` one after the other; each can be run, and its result printed, by itself. What has no
lowering is an error at the user's line.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tlx_xdsl.transforms.canonicalize import CanonicalizePass
from tlx_xdsl.transforms.rewriting import Pass

from .carry_structure import CarryStructurePass
from .expand_block_pointers import ExpandBlockPointersPass
from .expand_descriptors import ExpandDescriptorsPass
from .lower_accesses import LowerAccessesPass
from .lower_functions import LowerFunctionsPass
from .lower_tensors import LowerTensorsPass
from .recognize_extrema import RecognizeExtremaPass
from .reduce_in_loops import ReduceInLoopsPass
from .scalarize_carried import ScalarizeCarriedPass
from .split_pointers import SplitPointersPass


@dataclass(frozen=True)
class TritonToLinalgPass(ModulePass):
    """Lower a module of plain Triton to linalg."""

    name = "triton-to-linalg"

    num_programs: bool = False
    """The sizes of the grid are arguments, too, even where nothing asks for them."""
    check_addresses: bool = False
    """Assert that offsets do not wrap around inside of an access."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for what has no lowering.
        """
        for each in linalg_pipeline(num_programs=self.num_programs, check_addresses=self.check_addresses):
            each.apply(ctx, op)


def structuring_passes() -> tuple[Pass, ...]:
    """The first of them: after these the addresses and masks of accesses are as the analysis can read them."""
    return (
        ExpandBlockPointersPass(),
        ExpandDescriptorsPass(),
        SplitPointersPass(),
        ScalarizeCarriedPass(),
        CarryStructurePass(),
    )


def linalg_pipeline(
    *, num_programs: bool = False, check_addresses: bool = False, truncates_tf32: bool = True
) -> tuple[ModulePass, ...]:
    """The passes from plain Triton to linalg, in order; without `truncates_tf32` TF32 products are those of f32."""
    return (
        *structuring_passes(),
        RecognizeExtremaPass(),
        ReduceInLoopsPass(),
        LowerAccessesPass(check_addresses),
        LowerTensorsPass(truncates_tf32),
        LowerFunctionsPass(num_programs),
        CanonicalizePass(),
    )
