"""Floating-point arithmetic on numpy arrays: rounding in every mode, fused multiply-add, special functions. No IR."""
