"""Launches through NVIDIA's driver alone, without Triton, torch or a compiler: what bundles and `bind` run on.

Imports nothing else of the runtime.
"""
