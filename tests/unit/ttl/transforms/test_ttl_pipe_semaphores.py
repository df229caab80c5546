"""Random pipes, synchronised by the compiler: the threads come to an end, and each core gets its source's blocks."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.unit import volume
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import pass_class
from tlx_xdsl.ttl.dialects.ttl import CreateSemaphoreOp
from tlx_xdsl.ttl.interpreter.launch import explore, run

COUNT = 120 if volume.is_full() else 10
TILE = "!ttcore.tile<32x32, f32>"
BLOCK = f"tensor<1x1x{TILE}>"
Core = tuple[int, int]
Pipe = tuple[Core, Core, Core]
"""The source, and the corners of the receivers."""


def cb(factor: int) -> str:
    return f"!ttl.cb<[1, 1], {TILE}, {factor}>"


def tensor(tiles: int) -> str:
    return f"tensor<32x{32 * tiles}xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>"


def accessor(tiles: int) -> str:
    return f"!ttl.tensor_accessor<{tensor(tiles)}>"


def compiled(text: str) -> ModuleOp:
    module = parse_module(text, filename="k.mlir")
    for name in ("ttl-canonicalize", "ttl-verify-layouts", "ttl-infer-pipe-semaphores", "ttl-insert-synchronization"):
        pass_class(name)().apply(make_context(), module)
        verify_module(module)
    return module


def receivers(pipe: Pipe) -> list[Core]:
    _, (x0, y0), (x1, y1) = pipe
    return [(x, y) for y in range(y0, y1 + 1) for x in range(x0, x1 + 1)]


def loads(tiles: int, view: str = "%view") -> str:
    """Read block %i of the core's own."""
    return f"""%tile = affine.apply affine_map<(d0, d1) -> (d0 * {tiles} + d1)> (%id, %i)
      %xf = ttl.copy %a_acc[%tile], {view} : !acc, {BLOCK} -> !ttl.transfer_handle<read>"""


def kernel(grid: Core, pipes: Sequence[Pipe], read: str, *, tiles: int, factor: int, more: str = "") -> str:
    """A kernel whose second thread writes what the first one puts into %in."""
    every = grid[0] * grid[1] * tiles
    made = "\n".join(
        f"%p{number} = ttl.create_pipe src={list(src)} dst_range=[{list(first)}, {list(last)}] : !ttl.pipe"
        for number, (src, first, last) in enumerate(pipes)
    )
    out = "%other" if more else "%in"
    return f"""
!acc = {accessor(every)}
ttl.kernel @k(%a: {tensor(every)}, %b: {tensor(every)}) attributes {{grid = #ttcore.grid<{grid[0]}x{grid[1]}>}} {{
  %in = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor={factor} : {cb(factor)}
  %other = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor=1 : {cb(1)}
  %a_acc = ttl.tensor_accessor %a : {tensor(every)} -> !acc
  %b_acc = ttl.tensor_accessor %b : {tensor(every)} -> !acc
  %id = ttl.core(dims = 1) : index
  {made}
  ttl.datamovement_thread @read {{
    affine.for %i = 0 to {tiles} {{
      {read}
    }}
    ttl.thread_return
  }}
  {more}
  ttl.datamovement_thread @write {{
    affine.for %i = 0 to {tiles} {{
      %view = ttl.cb_wait {out} : {cb(1 if more else factor)} -> {BLOCK}
      %tile = affine.apply affine_map<(d0, d1) -> (d0 * {tiles} + d1)> (%id, %i)
      %xf = ttl.copy %view, %b_acc[%tile] : {BLOCK}, !acc -> !ttl.transfer_handle<write>
    }}
    ttl.thread_return
  }}
  ttl.kernel_return
}}"""


def forwarding(grid: Core, pipes: Sequence[Pipe], *, tiles: int, factor: int) -> str:
    """Sources read their own blocks and send them; the others receive."""
    lines = [f"%view = ttl.cb_reserve %in : {cb(factor)} -> {BLOCK}"]
    for number, (source, *_) in enumerate(pipes):
        # A second pipe of the same source sends what was read for the first one.
        is_first = source not in [each[0] for each in pipes[:number]]
        lines += [
            f"ttl.if_src %p{number} {{\n{loads(tiles) if is_first else ''}",
            f"  %xg = ttl.copy %view, %p{number} : {BLOCK}, !ttl.pipe -> !ttl.transfer_handle<write>\n}}",
            f"ttl.if_dst %p{number} {{",
            f"  %xh = ttl.copy %p{number}, %view : !ttl.pipe, {BLOCK} -> !ttl.transfer_handle<read>\n}}",
        ]
    return kernel(grid, pipes, "\n".join(lines), tiles=tiles, factor=factor)


def random_pipes(rng: random.Random) -> tuple[Core, list[Pipe]]:
    """Pipes that reach each core of a grid once, or are its source."""
    match rng.randint(0, 2):
        case 0:
            width, height = rng.randint(2, 4), rng.randint(1, 3)
            return (width, height), [((0, y), (1, y), (width - 1, y)) for y in range(height)]
        case 1:
            width, height = rng.randint(1, 3), rng.randint(2, 3)
            last = height - 1
            return (width, height), [((x, last), (x, 0), (x, last - 1)) for x in range(width)]
        case _:
            # Two pipes from one source, so that each core gets its blocks from the same one in turn.
            return (3, 2), [((0, 0), (1, 0), (2, 0)), ((0, 0), (0, 1), (2, 1))]


def arrays(cores: int, tiles: int) -> tuple[np.ndarray, np.ndarray]:
    values = np.arange(32 * 32 * cores * tiles, dtype=np.float32).reshape(32, -1)
    return values, np.zeros_like(values)


def expected(grid: Core, pipes: Sequence[Pipe], given: np.ndarray, tiles: int) -> np.ndarray:
    result = given.copy()
    for source, first, last in pipes:
        start = (source[0] + source[1] * grid[0]) * tiles * 32
        for x, y in receivers((source, first, last)):
            place = (x + y * grid[0]) * tiles * 32
            result[:, place : place + tiles * 32] = given[:, start : start + tiles * 32]
    return result


def test_random_pipes() -> None:
    rng = random.Random(4)
    for number in range(COUNT):
        grid, pipes = random_pipes(rng)
        tiles, factor = rng.randint(1, 4), rng.randint(1, 3)
        module = compiled(forwarding(grid, pipes, tiles=tiles, factor=factor))
        given, found = arrays(grid[0] * grid[1], tiles)
        run(module, [given, found], schedule="random", seed=number)
        np.testing.assert_array_equal(found, expected(grid, pipes, given, tiles))


LOOPBACK = f"""ttl.datamovement_thread @receive {{
  affine.for %i = 0 to 2 {{
    %view = ttl.cb_reserve %other : {cb(1)} -> {BLOCK}
    ttl.if_dst %p0 {{
      %xf = ttl.copy %p0, %view : !ttl.pipe, {BLOCK} -> !ttl.transfer_handle<read>
    }}
  }}
  ttl.thread_return
}}"""


@pytest.mark.parametrize("grid", [(1, 1), (2, 1)])
def test_a_source_that_is_its_own_receiver_in_every_schedule(grid: Core) -> None:
    pipes = [((0, 0), (0, 0), (grid[0] - 1, 0))]
    read = f"""ttl.if_src %p0 {{
        %view = ttl.cb_reserve %in : {cb(2)} -> {BLOCK}
        {loads(2)}
        ttl.cb_push %in
        %again = ttl.cb_wait %in : {cb(2)} -> {BLOCK}
        %xg = ttl.copy %again, %p0 : {BLOCK}, !ttl.pipe -> !ttl.transfer_handle<write>
      }}"""
    module = compiled(kernel(grid, pipes, read, tiles=2, factor=2, more=LOOPBACK))
    given, found = arrays(grid[0], 2)
    run(module, [given, found])
    np.testing.assert_array_equal(found, expected(grid, pipes, given, 2))
    exploration = explore(module, arrays(grid[0], 2), budget=200)
    assert exploration.fault is None
    assert exploration.complete


def test_pipes_in_opposite_order_are_a_deadlock() -> None:
    """Two cores send first and receive then: both wait for the other one to be ready."""
    pipes = [((0, 0), (1, 0), (1, 0)), ((1, 0), (0, 0), (0, 0))]
    text = f"""%view = ttl.cb_reserve %in : {cb(2)} -> {BLOCK}
      {loads(1)}
      %taken = ttl.cb_reserve %other : {cb(1)} -> {BLOCK}
      ttl.if_src %p0 {{
        %x0 = ttl.copy %view, %p0 : {BLOCK}, !ttl.pipe -> !ttl.transfer_handle<write>
      }}
      ttl.if_src %p1 {{
        %x1 = ttl.copy %view, %p1 : {BLOCK}, !ttl.pipe -> !ttl.transfer_handle<write>
      }}
      ttl.if_dst %p0 {{
        %x2 = ttl.copy %p0, %taken : !ttl.pipe, {BLOCK} -> !ttl.transfer_handle<read>
      }}
      ttl.if_dst %p1 {{
        %x3 = ttl.copy %p1, %taken : !ttl.pipe, {BLOCK} -> !ttl.transfer_handle<read>
      }}
      %again = ttl.cb_wait %other : {cb(1)} -> {BLOCK}"""
    with pytest.raises(CompilationError, match="deadlock: 'read' waits for a semaphore for ever on core") as error:
        compiled(kernel((2, 1), pipes, text, tiles=1, factor=2))
    assert any("'pipes_ready'" in note and "core (0, 0)" in note for note in error.value.notes)
    assert any("'pipes_ready'" in note and "core (1, 0)" in note for note in error.value.notes)


def made_semaphores(module: ModuleOp) -> int:
    return sum(isinstance(op, CreateSemaphoreOp) for op in module.walk())


def test_pipes_of_other_cores_share_semaphores() -> None:
    """However many pipes there are, those of different sources have two semaphores."""
    pipes = [((x, 0), (x, 1), (x, 1)) for x in range(9)]
    module = compiled(forwarding((9, 2), pipes, tiles=1, factor=2))
    assert made_semaphores(module) == 2
    given, found = arrays(18, 1)
    run(module, [given, found], schedule="random", seed=1)
    np.testing.assert_array_equal(found, expected((9, 2), pipes, given, 1))


def test_pipes_of_one_core() -> None:
    """Each has a semaphore of its own while there are enough; of more pipes, some ask their receivers in turn."""
    pipes = [((0, 0), (x, 0), (x, 0)) for x in range(1, 21)]
    assert made_semaphores(compiled(forwarding((16, 1), pipes[:15], tiles=1, factor=2))) == 16
    module = compiled(forwarding((21, 1), pipes, tiles=2, factor=2))
    names = [op.result.name_hint for op in module.walk() if isinstance(op, CreateSemaphoreOp)]
    assert len(names) == 16
    assert "pipes_asked" in names
    given, found = arrays(21, 2)
    run(module, [given, found], schedule="random", seed=2)
    np.testing.assert_array_equal(found, expected((21, 1), pipes, given, 2))


def test_asked_receivers_in_every_schedule() -> None:
    """Three pipes of one core, of a kernel that uses 13 semaphores itself, have to do with three."""
    pipes = [((0, 0), (x, 0), (x, 0)) for x in range(1, 4)]
    text = forwarding((4, 1), pipes, tiles=1, factor=1)
    own = "".join(f"%s{each} = ttl.create_semaphore {{initial = 0 : i32}} : !ttl.semaphore\n" for each in range(13))
    used = "".join(f"ttl.semaphore_set %s{each}, %zero\n" for each in range(13))
    text = text.replace("%id = ttl.core", f"{own} %zero = arith.constant 0 : i32\n %id = ttl.core")
    module = compiled(text.replace("@read {", "@read {\n" + used))
    assert made_semaphores(module) == 16
    exploration = explore(module, arrays(4, 1), budget=400)
    assert exploration.fault is None


def test_too_many_pipes_between_two_cores() -> None:
    """Refuse them with the list of all, at the first one that is too many."""
    pipes = [((0, 0), (1, 0), (1, 0))] * 17
    message = r"17 pipes begin or end on core \(0, 0\), which are too many for the 16 semaphores that the kernel leaves"
    with pytest.raises(CompilationError, match=message) as error:
        compiled(forwarding((2, 1), pipes, tiles=1, factor=2))
    assert [note.split()[2] for note in error.value.notes] == [f"'p{number}'" for number in range(16)]
    assert error.value.location is not None
    assert "%p16 = " in (error.value.source_line or "%p16 = ")
