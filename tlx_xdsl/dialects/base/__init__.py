"""What the dialects share: tensor types and pointers, layout attributes, enumerations, constraints, assembly formats.

Nothing in here imports a dialect, so that every dialect may import it.
"""
