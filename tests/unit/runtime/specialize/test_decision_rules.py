"""Decisions by rule: what is chosen for kernels of the gallery, by their constants."""

import pytest

from tests.gallery.plain.families import FAMILIES
from tests.unit.decompile.equal_ttgir import table_of
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.runtime.specialize.rules import by_rule
from tlx_xdsl.transforms.warp_specialize.specialize import Decisions


def ruled(name, constants, **given):
    """The decisions for a kernel of the gallery with other constants, by their names."""
    family = FAMILIES[name]
    table = table_of(family)
    wanted = Specialization(table.signature, {**table.constexprs, **constants}, **table.options)
    return by_rule(Decisions(**given), frontend_module(family.kernel.source, wanted)).given()


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (1, {"persistent": True, "groups": 1}),
        (2, {"persistent": True, "groups": 1}),
        (4, {"persistent": True, "groups": 1}),
        # Its own loads are ahead of its products for long enough.
        (8, {"groups": 1}),
    ],
)
def test_short_programs_take_several_tiles(turns, expected):
    assert ruled("delta_output", {"BLOCK_K": 128 // turns}) == expected


def test_turns_that_are_not_known_are_many():
    assert "persistent" not in ruled("delta_state", {})
    assert "persistent" not in ruled("attention", {})


def test_narrow_products_have_one_consumer():
    """Two consumers with half of the columns each are slower on an H200 where a producer loads the gates."""
    assert ruled("delta_state", {"BLOCK_V": 32}) == {"groups": 1}


def test_two_consumers_share_rows():
    assert ruled("matmul", {"BLOCK_M": 128, "BLOCK_N": 32})["groups"] == 2


def test_clusters_are_for_programs_that_take_several_tiles():
    assert ruled("attention", {}, cluster=2) == {"cluster": 2, "persistent": True, "join": False, "groups": 2}
    assert not ruled("attention", {}, cluster=2, persistent=False)["persistent"]
    assert "cluster" not in ruled("matmul", {})


def test_what_is_given_stays():
    assert ruled("delta_state", {"BLOCK_V": 32}, groups=2) == {"groups": 2}
    assert ruled("delta_state", {"BLOCK_V": 32}, depth=4) == {"groups": 1, "depth": 4}
    assert ruled("delta_output", {"BLOCK_K": 128}, outer_depth=2, persistent=False) == {
        "groups": 1, "outer_depth": 2, "persistent": False,
    }  # fmt: skip
