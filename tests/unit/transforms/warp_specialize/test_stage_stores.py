"""Blocks that leave through shared memory: what a specialised kernel stores is what the plain one does."""

import numpy as np
import pytest
from xdsl.context import Context

from tests.unit.transforms.warp_specialize.plain_kernels import Numbers
from tests.unit.transforms.warp_specialize.test_split_rows import CASES, build, run
from tlx_xdsl.dialects.tlx import StorageAliasSpecOp
from tlx_xdsl.dialects.ttng import AsyncTMACopyLocalToGlobalOp, AsyncTMAStoreWaitOp
from tlx_xdsl.interpreter.faults import Race
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.transforms.rewriting import ops_of

PASSES = ("tlx-ws-split-rows", "tlx-ws-form-descriptors", "tlx-ws-form-tasks", "tlx-ws-async-dots")


@pytest.mark.parametrize(
    ("case", "options"),
    [("descriptors", {"alias": True}), ("descriptors", {"pieces": 2}), ("states of the delta rule", {})],
)
def test_staged_blocks_are_those_that_were_stored(case, options):
    """Blocks are staged in a ring that is done, in halves in one small buffer, or in the buffers that products read."""
    kernel, arguments, given = CASES[case]
    grid, args, constexprs = arguments(Numbers(len(case)), **given)
    plain, module = build(kernel, args, constexprs), build(kernel, args, constexprs)
    for name in PASSES:
        pass_class(name)().apply(Context(), module)
    pass_class("tlx-ws-stage-stores")(**options).apply(Context(), module)
    pass_class("tlx-ws-replicate-tasks")().apply(Context(), module)
    verify_module(module)
    assert bool(ops_of(module, StorageAliasSpecOp)) is ("alias" in options)
    assert ops_of(module, AsyncTMACopyLocalToGlobalOp)
    expected, found = run(plain, grid, args), run(module, grid, args)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=2e-4, err_msg=name)


def test_without_its_waits_a_staged_block_is_overwritten():
    """The interpreter sees that TMA still reads the buffer: the waits are needed."""
    kernel, arguments, options = CASES["states of the delta rule"]
    grid, args, constexprs = arguments(Numbers(1), **options)
    module = build(kernel, args, constexprs)
    for name in (*PASSES, "tlx-ws-stage-stores", "tlx-ws-replicate-tasks"):
        pass_class(name)().apply(Context(), module)
    for wait in ops_of(module, AsyncTMAStoreWaitOp):
        wait.detach()
        wait.erase()
    with pytest.raises(Race, match="nothing orders it after the TMA store"):
        run(module, grid, args)
