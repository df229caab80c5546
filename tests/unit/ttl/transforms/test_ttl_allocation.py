"""Places of circular buffers: in random threads, no two buffers that hold data have bytes in common.

The threads are followed step by step, without knowledge of lifetimes: a buffer holds data from a reserve to the pop
that empties it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations

import pytest
from xdsl.dialects.affine import ForOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from tests.unit import volume
from tlx_xdsl.errors import CompilationError, OverBudgetError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.transforms.rewriting import ops_of
from tlx_xdsl.ttl.dialects.ttl import CBOp, CreateCBOp, KernelOp
from tlx_xdsl.ttl.transforms.allocate_circular_buffers import AllocateCircularBuffersPass

pytestmark = pytest.mark.quick

TILE = "!ttcore.tile<32x32, f32>"
PROGRAMS = 2000 if volume.is_full() else 100


def cb_type(shape: tuple[int, int] = (1, 1), factor: int = 1) -> str:
    return f"!ttl.cb<[{shape[0]}, {shape[1]}], {TILE}, {factor}>"


def create(name: str, shape: tuple[int, int] = (1, 1), factor: int = 1, flags: str = "") -> str:
    size = f"shape=[{shape[0]}, {shape[1]}], element_type={TILE}, buffer_factor={factor}"
    return f"%{name} = ttl.create_cb {size}{flags} : {cb_type(shape, factor)}\n"


class RandomThread:
    """The text of a compute thread that fills and empties the compiler's own buffers, in loops, too."""

    def __init__(self, rng: random.Random):
        self._rng = rng
        self._shapes = [(1, rng.randint(1, 4)) for _ in range(rng.randint(2, 6))]
        self._full = [False] * len(self._shapes)
        self._names = 0
        self.steps = 0
        body = self._body(0) + self._restore([False] * len(self._shapes))
        buffers = "".join(create(f"cb{n}", shape, flags=" {internal}") for n, shape in enumerate(self._shapes))
        self.text = (
            f"ttl.kernel @k() {{\n{buffers}ttl.compute_thread {{\n{body}ttl.thread_return\n}}\nttl.kernel_return\n}}\n"
        )

    def _toggle(self, number: int) -> str:
        """Fill an empty buffer, or empty a full one."""
        shape, type_ = self._shapes[number], cb_type(self._shapes[number])
        acquire, release = ("cb_wait", "cb_pop") if self._full[number] else ("cb_reserve", "cb_push")
        self._full[number] = not self._full[number]
        self._names += 1
        view = f"memref<{shape[0]}x{shape[1]}x{TILE}>"
        return f"%v{self._names} = ttl.{acquire} %cb{number} : {type_} -> {view}\nttl.{release} %cb{number}\n"

    def _restore(self, states: list[bool]) -> str:
        changed = [number for number, state in enumerate(states) if state != self._full[number]]
        return "".join(self._toggle(number) for number in changed)

    def _body(self, depth: int) -> str:
        text = ""
        for _ in range(self._rng.randint(1, 6)):
            if depth < 2 and self._rng.random() < 0.3:
                before = list(self._full)
                # An iteration leaves what it found.
                text += f"affine.for %i{depth} = 0 to 2 {{\n{self._body(depth + 1)}{self._restore(before)}}}\n"
            else:
                text += self._toggle(self._rng.randrange(len(self._shapes)))
        return text


def steps(block: Block) -> Iterator[CBOp]:
    """The steps of a thread as they happen."""
    for op in block.ops:
        if isinstance(op, ForOp):
            for _ in range(2):
                yield from steps(op.body.block)
        elif isinstance(op, CBOp):
            yield op


def allocated(text: str, budget: int = 1_499_136) -> ModuleOp:
    module = parse_module(text)
    AllocateCircularBuffersPass(budget).run(module)
    return module


def overlap(*buffers: SSAValue) -> bool:
    """Return whether two buffers have bytes in common."""
    spans: list[range] = []
    for buffer in buffers:
        op = buffer.owner
        assert isinstance(op, CreateCBOp)
        assert op.l1_address is not None
        spans.append(range(op.l1_address.value.data, op.l1_address.value.data + op.type.bytes))
    return max(each.start for each in spans) < min(each.stop for each in spans)


def test_buffers_that_hold_data_never_overlap():
    rng = random.Random(3)
    shared = 0
    for _ in range(PROGRAMS):
        module = allocated(RandomThread(rng).text)
        (kernel,) = ops_of(module, KernelOp)
        holding: set[SSAValue] = set()
        for op in steps(kernel.threads[0].body.block):
            if op.PRODUCES and op.ACQUIRES:
                for other in holding:
                    assert not overlap(op.cb, other)
                holding.add(op.cb)
            elif not op.PRODUCES and not op.ACQUIRES:
                holding.remove(op.cb)
        buffers = [op.result for op in ops_of(module, CreateCBOp)]
        shared += any(overlap(*pair) for pair in combinations(buffers, 2))
    # The test would be empty if nothing was ever shared.
    assert shared > PROGRAMS // 10


@pytest.mark.parametrize("waits", [True, False])
def test_one_after_the_other_in_two_threads(waits: bool):
    """The first thread fills `b` when it knows that `a` is empty, because something came back; or at any time."""
    wait = f"%1 = ttl.cb_wait %back : {cb_type()} -> tensor<1x1x{TILE}>\nttl.cb_pop %back"
    early, late = (wait, "") if waits else ("", wait)
    view = f"tensor<1x1x{TILE}>"
    kernel = f"""ttl.kernel @k() {{
      {create("a")} {create("back")} {create("b")}
      ttl.datamovement_thread @one {{
        %0 = ttl.cb_reserve %a : {cb_type()} -> {view}
        ttl.cb_push %a
        {early}
        %2 = ttl.cb_reserve %b : {cb_type()} -> {view}
        ttl.cb_push %b
        {late}
        ttl.thread_return
      }}
      ttl.datamovement_thread @two {{
        %0 = ttl.cb_wait %a : {cb_type()} -> {view}
        ttl.cb_pop %a
        %1 = ttl.cb_reserve %back : {cb_type()} -> {view}
        ttl.cb_push %back
        %2 = ttl.cb_wait %b : {cb_type()} -> {view}
        ttl.cb_pop %b
        ttl.thread_return
      }}
      ttl.kernel_return
    }}"""
    first, back, second = (op.result for op in ops_of(allocated(kernel), CreateCBOp))
    assert overlap(first, second) == waits
    assert overlap(back, second) == waits


def test_data_that_waits_for_the_next_iteration_keeps_its_place():
    """The text has all of `a` before `b`, but `a` is full while `b` is filled."""
    view = f"memref<1x1x{TILE}>"
    kernel = f"""ttl.kernel @k() {{
      {create("a", flags=" {internal}")} {create("b", flags=" {internal}")}
      ttl.compute_thread {{
        %zero = arith.constant 0 : index
        affine.for %i = 0 to 2 {{
          %first = arith.cmpi eq, %i, %zero : index
          scf.if %first {{
            %0 = ttl.cb_reserve %a : {cb_type()} -> {view}
            ttl.cb_push %a
          }} else {{
            %1 = ttl.cb_wait %a : {cb_type()} -> {view}
            ttl.cb_pop %a
          }}
          %2 = ttl.cb_reserve %b : {cb_type()} -> {view}
          ttl.cb_push %b
          %3 = ttl.cb_wait %b : {cb_type()} -> {view}
          ttl.cb_pop %b
        }}
        ttl.thread_return
      }}
      ttl.kernel_return
    }}"""
    assert not overlap(*(op.result for op in ops_of(allocated(kernel), CreateCBOp)))


def full(count: int, shape: tuple[int, int], factor: int) -> str:
    """A kernel with so many buffers that are in use at once."""
    names = [f"b{number}" for number in range(count)]
    view = f"tensor<{shape[0]}x{shape[1]}x{TILE}>"
    reserves = "".join(f"%v{n} = ttl.cb_reserve %{n} : {cb_type(shape, factor)} -> {view}\n" for n in names)
    pushes = "".join(f"ttl.cb_push %{name}\n" for name in names)
    made = "".join(create(name, shape, factor) for name in names)
    thread = f"ttl.datamovement_thread {{\n{reserves}{pushes}ttl.thread_return\n}}\n"
    return f"ttl.kernel @full() {{\n{made}{thread}ttl.kernel_return\n}}\n"


def test_thirty_two_buffers_fit_and_one_more_does_not():
    indices = [op.cb_index for op in ops_of(allocated(full(32, (1, 1), 1)), CreateCBOp)]
    assert [index.value.data for index in indices if index is not None] == list(range(32))
    with pytest.raises(CompilationError, match="a core has 32 circular buffers, the kernel makes 33"):
        allocated(full(33, (1, 1), 1))


def test_over_budget_lists_every_buffer():
    with pytest.raises(OverBudgetError) as caught:
        allocated(full(3, (2, 2), 2), budget=65536)
    error = caught.value
    assert (error.required, error.limit) == (98304, 65536)
    assert error.message == (
        "the circular buffers of 'full' need 98,304 B of a core's memory, there are 65,536: use a smaller buffer_factor"
    )
    assert len(error.notes) == 3
    assert error.notes[1].startswith("'b1': 2x2 tiles of f32, buffer_factor 2, 32,768 B")


def test_the_budget_is_exact():
    assert allocated(full(3, (2, 2), 2), budget=98304)
    with pytest.raises(OverBudgetError):
        allocated(full(3, (2, 2), 2), budget=98303)
