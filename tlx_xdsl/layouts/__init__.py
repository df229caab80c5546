"""Layouts as plain frozen dataclasses: no xDSL, no Triton, only integers.

`encodings` holds one dataclass per layout attribute of Triton; `distributed` chooses register layouts; `shared` knows
bytes, swizzles and alignments of shared memory. `linear_layout` is the algebra of linear layouts over F2,
`conversion` turns every encoding into one, and `address` says where an element lies in shared or tensor memory.

What layouts cost: `shared_access` and `matrix_access` (widths and bank conflicts), `global_access` (widths and
sectors), `conversion_cost` (from one register layout to another). `cute` prints layouts in CuTe's notation.
"""
