"""Ahead-of-time bundles: a compiled kernel as a folder of files, which is launched without a compiler.

`write_bundle` (write.py) makes one, `load` (load.py) launches it from Python; `c_launcher.py` writes the C that
launches it from anywhere else. Loading imports nothing but the standard library and the launcher.
"""
