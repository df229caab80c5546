"""Plain Triton on the CPU: to linalg, to linalg on memory, to machine code, and its launches (docs/cpu.md)."""
