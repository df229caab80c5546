"""Kernels compiled ahead of time for CPUs, and their launcher in C."""
