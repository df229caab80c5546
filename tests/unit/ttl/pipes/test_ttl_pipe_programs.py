"""Programs of many cores, on the three machines and with numpy: of several sizes, in f32 and bf16."""

from __future__ import annotations

from tests.unit import volume

from .ttl_pipe_programs import PROGRAMS

SIZES = {"summa": (3, 5), "turning_summa": (3,), "ring": (4, 8), "gather": (3,), "scatter": (4,), "all_to_all": (4,)}
FULL = {"turning_summa": (5,), "gather": (5, 8), "scatter": (8,), "all_to_all": (8,), "tree": (5, 8), "summa": (2, 4, 8)}
CASES = [(name, size) for name in PROGRAMS for size in SIZES.get(name, (3,)) + (FULL.get(name, ()) if volume.is_full() else ())]
