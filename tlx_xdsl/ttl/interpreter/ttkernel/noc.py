"""The network on chip: transfers between the memories of cores and the pages of tensors in DRAM.

A transfer takes effect at the barrier of the thread that began it, and not before: what is read too early is poison,
and what is changed too early arrives changed. Bytes come from pages that the thread holds, and go to pages that are
reserved where they arrive.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from .accessors import Accessor
from .clocks import Moment
from .machine import CoreThread, Tensor, Transfer, wrong
from .places import claims_destination, claims_source
from .races import note_read, note_write
from .translate import Builder, Local, Step, Touch

# Tensors -------------------------------------------------------------------------------------------------------------


def _read(unit: str) -> Builder:
    return lambda op: _tensor_transfer(op, unit, is_read=True)


def _write(unit: str) -> Builder:
    return lambda op: _tensor_transfer(op, unit, is_read=False)


def _tensor_transfer(op: Operation, unit: str, *, is_read: bool) -> Local:
    """Begin to read, or to write, a tile, a page or a shard; operands are its number, the accessor, and the address."""
    verb = "read" if is_read else "write"

    def run(thread: CoreThread, number: int, accessor: Accessor, local: int, offset: int = 0) -> None:
        tensor = accessor.tensor
        first, count = _page_range(op, thread, tensor, unit, number)
        size = tensor.pages.shape[1]
        if not 0 <= offset < size:
            raise wrong(op, thread, f"{verb}s from byte {offset} of a page on, which has {size}")
        total = count * size - offset
        words = f"{verb} of {unit} {number} of tensor '{tensor.name}'"
        begun = thread.clock.now
        if is_read:
            claims_destination(op, thread, local, total, size, words)
            transfer = Transfer(
                op, words, True, local, local + total,
                lambda: _land_read(op, thread, tensor, first, count, local, offset, begun),
                (("dram read", tensor, first),), (thread.core,), local, local + total,
            )  # fmt: skip
        else:
            claims_source(op, thread, local, total, size, words)
            transfer = Transfer(
                op, words, False, local, local + total,
                lambda: _land_write(op, thread, tensor, first, count, local, offset, begun),
                (("dram write", tensor, first),),
            )  # fmt: skip
        thread.transfers.append(transfer)
        thread.machine.noc_bytes += total

    return run


def _page_range(op: Operation, thread: CoreThread, tensor: Tensor, unit: str, number: int) -> tuple[int, int]:
    """The first page of a tile, a page or a shard, and how many there are."""
    layout = tensor.layout
    if (unit == "page" and layout.kind != "interleaved") or (unit == "shard" and layout.kind != "sharded"):
        raise wrong(op, thread, f"asks for a {unit} of tensor '{tensor.name}', which is {layout.kind}")
    if unit == "tile" and layout.kind == "interleaved":
        raise wrong(op, thread, f"asks for a tile of tensor '{tensor.name}', which is {layout.kind}")
    count = layout.tiles_per_shard[0] * layout.tiles_per_shard[1] if unit == "shard" else 1
    units = len(tensor.pages) // count
    if unit == "tile":
        units = prod(layout.matrix_tiles(tensor.shape))
    if not 0 <= number < units:
        raise wrong(op, thread, f"asks for {unit} {number} of tensor '{tensor.name}', which has {units}")
    return layout.place(number, tensor.shape) if unit == "tile" else number * count, count


def _land_read(
    op: Operation, thread: CoreThread, tensor: Tensor, first: int, count: int, local: int, offset: int, begun: Moment
) -> None:
    for page in range(first, first + count):
        note_read(op, thread, tensor, page, begun)
    thread.core.store(local, tensor.pages[first : first + count].reshape(-1)[offset:])


def _land_write(
    op: Operation, thread: CoreThread, tensor: Tensor, first: int, count: int, local: int, offset: int, begun: Moment
) -> None:
    for page in range(first, first + count):
        note_write(op, thread, tensor, page, begun)
    target = tensor.pages[first : first + count].reshape(-1)[offset:]
    target[...] = thread.core.memory[local : local + len(target)]


# Barriers ------------------------------------------------------------------------------------------------------------


def _barrier(is_read: bool) -> Builder:
    """Let transfers of a kind take effect, when the updates of semaphores have."""

    def build(op: Operation) -> Step:
        def ready(thread: CoreThread) -> bool:
            return is_read or not any("set" in each.op.name for each in thread.posted)

        def run(thread: CoreThread) -> None:
            landing = [each for each in thread.transfers if each.is_read == is_read]
            if not landing:
                return
            thread.transfers = [each for each in thread.transfers if each.is_read != is_read]
            for each in thread.machine.in_any_order(landing):
                each.land()
            thread.clock.release()

        def touches(thread: CoreThread) -> tuple[Touch, ...]:
            return tuple(touch for each in thread.transfers if each.is_read == is_read for touch in each.touches)

        return Step(op, run, ready, _waits_for_updates, touches)

    return build


def _atomic_barrier(op: Operation) -> Step:
    """Wait until the increments have taken effect."""

    def ready(thread: CoreThread) -> bool:
        return not any("inc" in each.op.name for each in thread.posted)

    return Step(op, _nothing, ready, _waits_for_updates)


def _nothing(thread: CoreThread) -> None:
    pass


def _waits_for_updates(thread: CoreThread) -> str:
    return "waits for its updates of semaphores"


BUILDERS: dict[str, Builder] = {
    "ttkernel.noc_async_read_tile": _read("tile"),
    "ttkernel.noc_async_read_page": _read("page"),
    "ttkernel.noc_async_read_shard": _read("shard"),
    "ttkernel.noc_async_write_tile": _write("tile"),
    "ttkernel.noc_async_write_page": _write("page"),
    "ttkernel.noc_async_write_shard": _write("shard"),
    "ttkernel.noc_async_read_barrier": _barrier(True),
    "ttkernel.noc_async_write_barrier": _barrier(False),
    "ttkernel.noc_async_atomic_barrier": _atomic_barrier,
}
