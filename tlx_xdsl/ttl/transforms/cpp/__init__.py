"""Lowering of `ttkernel`, `scf` and `arith` to `emitc`."""
