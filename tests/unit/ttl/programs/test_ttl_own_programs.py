"""Programs as users write them, on three machines, in f32 and bf16: what numpy computes in float64."""

# covers: ttl.kernel, ttl.buffers, ttl.tensors, ttl.math, ttl.pipes

from __future__ import annotations

import pytest

from tests.unit.ttl.programs import (
    ttl_attention_programs,
    ttl_core_programs,
    ttl_element_programs,
    ttl_norm_programs,
    ttl_product_programs,
    ttl_shape_programs,
)
from tests.unit.ttl.programs.ttl_cases import DTYPES, run_case, tolerance_of
from tlx_xdsl.ttl.runtime import MACHINES

MODULES = (
    ttl_attention_programs,
    ttl_core_programs,
    ttl_element_programs,
    ttl_norm_programs,
    ttl_product_programs,
    ttl_shape_programs,
)
PROGRAMS = {(made.__name__, dtype): made for module in MODULES for made in module.PROGRAMS for dtype in DTYPES}
PROGRAMS |= {(made.__name__, "i32"): made for made in (ttl_element_programs.sorted_tiles,)}
PROGRAMS |= {(made.__name__, "mixed"): made for made in ttl_element_programs.OF_ONE_TYPE}


@pytest.mark.parametrize("name,dtype,machine", [(n, d, m) for n, d in PROGRAMS for m in MACHINES])
def test_program(name, dtype, machine):
    made = PROGRAMS[name, dtype](dtype)
    e = run_case(made, dtype, machine)
    print("ERR", name, dtype, machine, e)
    assert e <= tolerance_of(made, dtype)
