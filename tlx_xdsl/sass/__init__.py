"""Below PTX: the machine code of a cubin, its operands beside those of its PTX, and its waits."""
