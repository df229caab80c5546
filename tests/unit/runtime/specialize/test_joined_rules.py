"""The rules' decisions for plain kernels: programs of their own for groups of warps where these fit, else none."""

import pytest

from tests.gallery.plain.families import FAMILIES
from tests.unit.decompile.equal_ttgir import table_of
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.runtime.specialize.rules import REASONS, by_rule
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions

ATTENTION = {"BLOCK_M": 64, "BLOCK_N": 128, "HEAD_DIM": 64, "CAUSAL": False}
JOINED = {"groups": 3, "join": True, "outer_depth": 2}


def module_of(name, target="sm_90a", **constants):
    family = FAMILIES[name]
    table = table_of(family)
    wanted = Specialization(table.signature, {**table.constexprs, **constants}, target, 4)
    return frontend_module(family.kernel.source, wanted)


@pytest.mark.parametrize(
    ("constants", "expected"),
    [
        ({}, JOINED),
        ({"CAUSAL": True}, {**JOINED, "order": 2}),
        # Three groups of 160 registers do not hold 256 columns of results; each has half of 128 rows.
        ({"HEAD_DIM": 128}, {**JOINED, "groups": 2}),
        ({"BLOCK_M": 128}, {"groups": 2}),
    ],
    ids=str,
)
def test_groups_have_programs_of_their_own_where_one_has_no_rows_to_share(constants, expected):
    found = by_rule(Decisions(), module_of("attention", **{**ATTENTION, **constants}))
    assert found.given() == expected
    assert set(expected) <= set(REASONS)


def test_what_is_given_stays():
    module = module_of("attention", **{**ATTENTION, "CAUSAL": True})
    assert by_rule(Decisions(groups=2, order=0), module).given() == {**JOINED, "groups": 2, "order": 0}
    for given in ({"groups": 1}, {"join": False}, {"persistent": False}):
        assert by_rule(Decisions(**given), module).given() == {"groups": 1, **given}


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        # Sums alone; a window's loop begins at the program's block; a chunk waits for the one before.
        ("matmul", {"BLOCK_M": 64}),
        ("attention_window", {"BLOCK_M": 64}),
        ("delta_state", {}),
    ],
)
def test_other_kernels_are_not_joined(name, constants):
    assert by_rule(Decisions(), module_of(name, **constants)).join is None


def test_tensor_memory_has_no_joined_programs():
    assert by_rule(Decisions(), module_of("attention", "sm_100a", **ATTENTION)).given() == {"groups": 1}
