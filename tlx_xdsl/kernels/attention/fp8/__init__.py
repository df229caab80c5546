"""Attention forward in fp8 (e4m3): its operands, and its loops over blocks of keys."""
