"""Waits for transfers in random datamovement threads: no operation meets a transfer, and no wait is in vain."""

from __future__ import annotations

import random
from collections import Counter

from tests.unit import volume
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.analysis.core_values import ThreadWalk, cores_of
from tlx_xdsl.ttl.dialects.ttl import CopyOp, Direction, DMABarrierOp, KernelOp, ReleaseOp, ThreadReturnOp, WaitOp
from tlx_xdsl.ttl.transforms.transfer_waits import insert_waits

COUNT = 600 if volume.is_full() else 40
TILE = "!ttcore.tile<32x32, f32>"
CB = f"!ttl.cb<[1, 1], {TILE}, 2>"
BLOCK = f"tensor<1x1x{TILE}>"
TENSOR = "tensor<256x256xf32, #ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>>"
ACCESSOR = f"!ttl.tensor_accessor<{TENSOR}>"


class Generator:
    """A thread that fills `produced` buffers from tensors and empties `consumed` ones into them."""

    def __init__(self, rng: random.Random, *, branches: bool):
        self.rng, self.branches = rng, branches
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def move(self, buffer: int, loops: list[str]) -> list[str]:
        """The steps of one block, to be mixed with those of other buffers."""
        reads = buffer < 3
        view, handle, row = self.name(), self.name(), self.name()
        steps = [f"{view} = ttl.cb_{'reserve' if reads else 'wait'} %b{buffer} : {CB} -> {BLOCK}"]
        offset, scale = self.rng.randint(0, 3), self.rng.choice([0, 1, 2])
        index = self.rng.choice(loops) if loops else "%zero"
        tensor = self.rng.randint(0, 1)
        place = f"{row} = affine.apply affine_map<(d0) -> (d0 * {scale} + {offset})> ({index})"
        near, far = view, f"%t{tensor}[{row}]"
        types = f"{ACCESSOR}, {BLOCK}" if reads else f"{BLOCK}, {ACCESSOR}"
        sides = f"{far}, {near}" if reads else f"{near}, {far}"
        copy = f"{handle} = ttl.copy {sides} : {types} -> !ttl.transfer_handle<{'read' if reads else 'write'}>"
        waits = self.rng.choice([True, False])
        release = f"ttl.cb_{'push' if reads else 'pop'} %b{buffer}"
        if self.branches and self.rng.random() < 0.3:
            inside = [place, copy, *([f"ttl.wait {handle}"] if waits else [])]
            return [*steps, "scf.if %first {\n" + "\n".join(inside) + "\n}", release]
        return [*steps, place, copy, *([f"ttl.wait {handle}"] if waits else []), release]

    def body(self, depth: int, loops: list[str]) -> list[str]:
        chains = [self.move(buffer, loops) for buffer in self.rng.sample(range(5), self.rng.randint(1, 3))]
        lines: list[str] = []
        while chains:
            chain = self.rng.choice(chains)
            lines.append(chain.pop(0))
            chains = [each for each in chains if each]
        if depth:
            inner = self.rng.choice([None, "loop", "loop"])
            if inner:
                index = self.name()
                nested = self.body(depth - 1, [*loops, index])
                lines += [f"affine.for {index} = 0 to {self.rng.randint(1, 3)} {{", *nested, "}"]
                lines += self.body(0, loops) if self.rng.random() < 0.5 else []
        return lines

    def kernel(self) -> KernelOp:
        buffers = [
            f"%b{number} = ttl.create_cb shape=[1, 1], element_type={TILE}, buffer_factor=2 : {CB}"
            for number in range(5)
        ]
        accessors = [f"%t{number} = ttl.tensor_accessor %a{number} : {TENSOR} -> {ACCESSOR}" for number in range(2)]
        text = "\n".join(
            [
                f"ttl.kernel @k(%a0: {TENSOR}, %a1: {TENSOR}) attributes {{grid = #ttcore.grid<2x1>}} {{",
                *buffers,
                *accessors,
                "%zero = arith.constant 0 : index",
                "%x = ttl.core(dims = 1)",
                "%first = arith.cmpi eq, %x, %zero : index",
                "ttl.datamovement_thread @move {",
                *self.body(2, []),
                "ttl.thread_return\n}\nttl.kernel_return\n}",
            ]
        )
        return next(op for op in parse_module(text, filename="k.mlir").walk() if isinstance(op, KernelOp))


class Transfer:
    def __init__(self, op: CopyOp, place: int, acquired: object):
        self.op, self.place, self.acquired = op, place, acquired
        self.tensor = op.far
        self.writes = op.direction is Direction.WRITE


def check(kernel: KernelOp) -> Counter:
    """Run the only thread on each core; transfers are complete when waited for, and not before."""
    useful: Counter = Counter()
    waits = []
    for core in cores_of(kernel.grid):
        outstanding: list[Transfer] = []
        walk = ThreadWalk(kernel.threads[0], core, also=(CopyOp, WaitOp, DMABarrierOp))
        walk.relevant.update(
            op for each in walk.thread.walk() if isinstance(each, CopyOp | WaitOp | DMABarrierOp) for op in around(each)
        )
        for op in [*walk_values(walk), next(op for op in walk.thread.walk() if isinstance(op, ThreadReturnOp))]:
            place = None
            if isinstance(op, tuple):
                op, place = op
            match op:
                case CopyOp():
                    transfer = Transfer(op, place, op.view)
                    for other in outstanding:
                        meets = other.tensor is transfer.tensor and other.place == place
                        assert not (meets and (other.writes or transfer.writes)), (core, op, other.op)
                    outstanding.append(transfer)
                case ReleaseOp():
                    for other in outstanding:
                        assert other.op.view.owner.cb is not op.cb, (core, op, other.op)
                case WaitOp() | DMABarrierOp():
                    waits.append(op)
                    ended = [
                        each
                        for each in outstanding
                        if each.op.direction is op.direction
                        and (isinstance(op, DMABarrierOp) or each.op is op.handle.owner)
                    ]
                    useful[op] += bool(ended)
                    outstanding = [each for each in outstanding if each not in ended]
                case ThreadReturnOp():
                    assert not outstanding, (core, [each.op for each in outstanding])
    return useful


def around(op):
    while op is not None:
        yield op
        op = op.parent_op()


def walk_values(walk):
    for op in walk.steps():
        yield (op, walk.values.of(op.indices[0])) if isinstance(op, CopyOp) else op


def test_no_transfer_is_met_and_no_wait_is_in_vain() -> None:
    rng, total = random.Random(11), Counter()
    for number in range(COUNT):
        branches = number % 3 == 0
        kernel = Generator(rng, branches=branches).kernel()
        written = sum(isinstance(op, WaitOp) for op in kernel.walk())
        insert_waits(kernel)
        useful = check(kernel)
        if not branches:
            assert all(useful.values()), str(kernel)
        waits = [op for op in kernel.walk() if isinstance(op, WaitOp | DMABarrierOp)]
        assert len(waits) == len(useful)
        total.update(waits=len(waits), written=written, barriers=sum(isinstance(op, DMABarrierOp) for op in waits))
        again = str(kernel)
        insert_waits(kernel)
        assert str(kernel) == again
    print(dict(total))


def test_without_its_barriers_a_kernel_is_found_out() -> None:
    """The check of the test above is one: without any wait, it fails."""
    rng, failures = random.Random(5), 0
    for _ in range(20):
        kernel = Generator(rng, branches=False).kernel()
        insert_waits(kernel)
        for op in [op for op in kernel.walk() if isinstance(op, WaitOp | DMABarrierOp)]:
            op.detach()
        try:
            check(kernel)
        except AssertionError:
            failures += 1
    assert failures == 20
