"""Lowering of Triton to MLIR's `linalg`, `tensor`, `memref` and `bufferization` dialects (docs/linalg.md)."""
