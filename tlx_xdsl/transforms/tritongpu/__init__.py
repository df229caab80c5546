"""Lowering of tensors without layouts to TTGIR that upstream Triton takes."""
