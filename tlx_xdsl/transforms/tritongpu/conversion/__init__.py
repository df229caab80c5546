"""The handlers of `convert-triton-to-tritongpu` for each operation, by topic; they register when they are imported."""

from tlx_xdsl.transforms.tritongpu.conversion import control_flow, matrix, shape, simple, tensor_memory

__all__ = ["control_flow", "matrix", "shape", "simple", "tensor_memory"]
