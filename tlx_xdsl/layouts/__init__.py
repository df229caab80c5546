"""Layouts as plain frozen dataclasses: no xDSL, no Triton, only integers.

`encodings` holds one dataclass per layout attribute of Triton; `distributed` chooses register layouts;
`shared` knows bytes, swizzles and alignments of shared memory.
"""
