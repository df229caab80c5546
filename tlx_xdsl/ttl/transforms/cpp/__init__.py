"""From operations of `ttkernel`, `scf` and `arith` to `emitc`."""
