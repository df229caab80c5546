"""Names of pipes of tt-lang 1.x: who is active in a net, groups of transfers, and what is refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tlx_xdsl.language.ttl as ttl

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.runtime import MACHINES, Prepared, compile_kernel, specs_of


@ttl.operation(grid=(4, 3))
def part_of_the_grid(a: Any, out: Any) -> None:
    """Core (1, 1) sends to three cores of the row below, and cores that are not in the net do nothing."""
    cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    net = ttl.PipeNet([ttl.Pipe(src=(1, 1), dst=(slice(0, 3), 2))])
    x, y = ttl.node(dims=2)

    @ttl.datamovement()
    def read() -> None:
        if net.is_active():
            with cb.reserve() as block:
                if net.is_src():
                    ttl.copy(a[0, 0], block).wait()
                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())

    @ttl.datamovement()
    def write() -> None:
        if net.is_active():
            with cb.wait() as block:
                if net.is_dst():
                    ttl.copy(block, out[y, x]).wait()


@ttl.operation(grid=(2, 1))
def in_groups(a: Any, out: Any) -> None:
    """Transfers of two blocks are waited for together."""
    first, second = (ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2) for _ in range(2))
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    x = ttl.node(dims=1)

    @ttl.datamovement()
    def read() -> None:
        with first.reserve() as one, second.reserve() as other:
            if net.is_src():
                group = ttl.GroupTransfer()
                for block, column in ((one, 0), (other, 1)):
                    group.add(ttl.copy(a[0, column], block))
                group.wait_all()

            def send(pipe: Any) -> None:
                assert pipe.destination_count == 1
                group = ttl.GroupTransfer()
                group.add(ttl.copy(one, pipe))
                group.add(ttl.copy(other, pipe))
                group.wait_all()

            net.if_src(send)
            net.if_dst(lambda pipe: [ttl.copy(pipe, one).wait(), ttl.copy(pipe, other).wait()])

    @ttl.datamovement()
    def write() -> None:
        with first.wait() as one, second.wait() as other:
            group = ttl.GroupTransfer()
            group.add(ttl.copy(one, out[x, 0]))
            group.add(ttl.copy(other, out[x, 1]))
            group.wait_all()


@pytest.mark.parametrize("machine", MACHINES)
def test_cores_that_are_in_no_pipe(machine: str) -> None:
    a = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    out = np.zeros((96, 128), np.float32)
    Prepared(part_of_the_grid, [a, out], machine).run([a, out])
    expected = np.zeros_like(out)
    expected[64:, :96] = np.tile(a, (1, 3))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("machine", MACHINES)
def test_groups_of_transfers(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    a = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    out = np.zeros((64, 64), np.float32)
    Prepared(in_groups, [a, out], machine).run([a, out])
    np.testing.assert_array_equal(out, np.tile(a, (2, 1)))
    assert capsys.readouterr().err == "", "nothing is repaired"


def refused(body: Any) -> CompilationError:
    @ttl.operation(grid=(1, 1))
    def kernel(a: Any) -> None:
        cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))

        @ttl.datamovement()
        def read() -> None:
            with cb.reserve() as block:
                body(a, block)

        @ttl.datamovement()
        def drain() -> None:
            with cb.wait():
                pass

    with pytest.raises(CompilationError) as error:
        compile_kernel(kernel, specs_of(kernel, [np.zeros((32, 32), np.float32)]))
    return error.value


def late(a: Any, block: Any) -> None:
    group = ttl.GroupTransfer()
    group.wait_all()
    group.add(ttl.copy(a[0, 0], block))


def twice(a: Any, block: Any) -> None:
    group = ttl.GroupTransfer()
    group.add(ttl.copy(a[0, 0], block))
    group.wait_all()
    group.wait_all()


def no_transfer(a: Any, block: Any) -> None:
    ttl.GroupTransfer().add(block)


def any_of(a: Any, block: Any) -> None:
    ttl.wait_any([ttl.copy(a[0, 0], block)])


def devices(a: Any, block: Any) -> None:
    ttl.DeviceDomain((2, 1))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (late, "add: the group was waited for: make another one"),
        (twice, "wait_all: the group was waited for already"),
        (no_transfer, "add: a group is of transfers that were begun, found a block"),
        (any_of, "'ttl' has no 'wait_any': wait for the transfers in the order of the text"),
        (devices, "'ttl' has no 'DeviceDomain': "),
    ],
)
def test_refused(body: Any, message: str) -> None:
    error = refused(body)
    assert message in error.message
    assert error.location is not None
