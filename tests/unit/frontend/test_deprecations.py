"""Warnings at the user's line about what the next version of Triton takes away."""

# covers: tl.shape

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.text.diagnostics import collected_diagnostics


@tlx_xdsl.jit
def reordering(p, REORDER: tl.constexpr):
    at = tl.arange(0, 64)
    square = tl.reshape(tl.load(p + at), 8, 8, can_reorder=REORDER)
    flat = tl.reshape(square, 64)
    tl.store(p + tl.arange(0, 128), tl.cat(flat, flat, can_reorder=REORDER))


@pytest.mark.parametrize("reorder", [True, False])
def test_reordering_of_elements_goes_with_3_10(reorder):
    with collected_diagnostics() as found:
        reordering.compile({"p": "*fp32"}, {"REORDER": reorder})
    assert [(each.severity, each.location.line, each.message.partition(" goes")[0]) for each in found] == (
        [("warning", 15, "tl.reshape(can_reorder=True)"), ("warning", 17, "tl.cat(can_reorder=True)")]
        if reorder
        else []
    )
