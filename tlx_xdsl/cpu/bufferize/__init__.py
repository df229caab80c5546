"""Lowering of tensors to memory: elementwise operations are fused, tensors get buffers, and buffers places.

Nothing here is about a machine: what an operation does with the tensors that it takes is declared in
`dialects/destinations.py`, and how it looks on memory in the handlers of `operations/`.
"""
