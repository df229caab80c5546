"""Passes for NVIDIA GPUs: checks of the target, synchronisation, lowering to PTX, lifetimes."""
