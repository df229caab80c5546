"""Sums of bf16: in bf16 as Triton 3.9 has them, in f32 for older versions."""

# covers: tt.reduce

import re

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def sums(x, y):
    at = tl.arange(0, 64)
    values = tl.load(x + at)
    tl.store(y, tl.sum(values))
    tl.store(y + at, tl.cumsum(values))
    tl.store(y + at, tl.cumprod(values))


VERSIONS = (("3.6.0", "f32"), ("3.8.0", "f32"), ("3.9.0", "bf16"), (None, "bf16"))


@pytest.mark.parametrize(("version", "element"), VERSIONS)
def test_bf16_is_summed_in_what_the_version_sums_it_in(version, element):
    text = sums.compile({"x": "*bf16", "y": "*fp32"}, {}, triton_version=version).ttir
    returns = re.findall(r"tt\.(?:scan|reduce)\.return %\w+ : (\w+)", text)
    assert returns == [element] * 3
