"""The handlers of `convert-triton-to-tritongpu` for each operation, by topic; they register when they are imported."""

from . import control_flow, matrix, shape, simple

__all__ = ["control_flow", "matrix", "shape", "simple"]
