"""Minimal kernels that single versions of Triton miscompile, a file each, by the names of `backend/defects.py`.

`run(**options)` runs one and raises where its numbers are wrong; `shows(ptx)` says it where only the text can.
"""
