"""Faults of lowered kernels, found at the line that is wrong: one small change each, and the message.

A change blanks, doubles, moves or alters a line of a correct program. It counts as found when the machine says where:
at a line that has the expected words, in the message or in a note of it.
"""

# The lines of the IR are as long as they are.
# ruff: noqa: E501

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tests.unit.ttl.interpreter.ttkernel_programs import add, multicast, parse
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.ttl.interpreter.ttkernel import explore, make_plan, run

Change = Callable[[list[str]], None]


def find(lines: list[str], words: str, nth: int = 0) -> int:
    """The number of the nth line that has some words."""
    found = [number for number, line in enumerate(lines) if words in line]
    assert len(found) > nth, f"no line {nth} has {words!r}"
    return found[nth]


def drop(words: str, nth: int = 0) -> Change:
    """Blank a line."""

    def change(lines: list[str]) -> None:
        lines[find(lines, words, nth)] = ""

    return change


def double(words: str, nth: int = 0) -> Change:
    """Do a line twice."""

    def change(lines: list[str]) -> None:
        at = find(lines, words, nth)
        lines.insert(at, lines[at])

    return change


def move(words: str, after: str, nth: int = 0, nth_after: int = 0) -> Change:
    """Do a line later, or earlier: after another one."""

    def change(lines: list[str]) -> None:
        line = lines.pop(find(lines, words, nth))
        lines.insert(find(lines, after, nth_after) + 1, line)

    return change


def alter(words: str, old: str, new: str, nth: int = 0) -> Change:
    """Put something else into a line."""

    def change(lines: list[str]) -> None:
        at = find(lines, words, nth)
        assert old in lines[at], lines[at]
        lines[at] = lines[at].replace(old, new, 1)

    return change


def both(*changes: Change) -> Change:
    """Several changes of one line."""

    def change(lines: list[str]) -> None:
        for each in changes:
            each(lines)

    return change


@dataclass(frozen=True)
class Mutation:
    """A change of a program, and what is said."""

    name: str
    program: str
    change: Change
    line: str
    """Words of the line that the fault, or one of its notes, is at."""
    message: str


PROGRAMS = {"add": add(2, 2), "multicast": multicast(2, 2)}


def add_mutations() -> Iterator[Mutation]:
    def case(name: str, change: Change, line: str, message: str) -> Mutation:
        return Mutation(name, "add", change, line, message)

    # Producers.
    yield case(
        "no read barrier",
        drop("read_barrier"),
        "push_back(%cb0",
        "before a barrier for its read of tile 0 of tensor 'a'",
    )
    yield case(
        "no second read barrier",
        drop("read_barrier", 1),
        "push_back(%cb1",
        "before a barrier for its read of tile 0 of tensor 'b'",
    )
    yield case("barrier after the push", move("read_barrier", "push_back(%cb0"), "push_back(%cb0", "before a barrier")
    yield case(
        "barrier of writes",
        alter("read_barrier", "read_barrier", "write_barrier"),
        "push_back(%cb0",
        "before a barrier",
    )
    yield case("no reserve", drop("reserve_back(%cb0"), "get_write_ptr(%cb0", "asks where to write")
    yield case("reserve twice", double("reserve_back(%cb0"), "reserve_back(%cb0", "again before it has pushed")
    yield case("no push", drop("push_back(%cb0"), "reserve_back(%cb0", "again before it has pushed")
    yield case(
        "push twice",
        double("push_back(%cb0"),
        "push_back(%cb0",
        "pushes 2 pages of circular buffer 0, but has reserved 0",
    )
    yield case(
        "push before the reads", move("push_back(%cb0", "get_write_ptr(%cb0"), "push_back(%cb0", "which was not written"
    )
    yield case(
        "reserve fewer pages", alter("reserve_back(%cb0", "%pages", "%n1"), "read_tile(%ida", "but has reserved 1 page"
    )
    yield case("reserve an odd number", alter("reserve_back(%cb0", "%pages", "%n3"), "reserve_back(%cb0", "no multiple")
    yield case(
        "reserve more than there are", alter("reserve_back(%cb0", "%pages", "%n8"), "reserve_back(%cb0", "which has 4"
    )
    yield case(
        "push fewer pages", alter("push_back(%cb0", "%pages", "%n1"), "reserve_back(%cb0", "again before it has pushed"
    )
    yield case("push more pages", alter("push_back(%cb0", "%pages", "%n4"), "push_back(%cb0", "but has reserved 2")
    yield case(
        "reserve the other buffer",
        alter("reserve_back(%cb0", "%cb0", "%cb1"),
        "get_write_ptr(%cb0",
        "asks where to write",
    )
    yield case("push the other buffer", alter("push_back(%cb0", "%cb0", "%cb1"), "push_back(%cb1", "but has reserved 0")
    yield case(
        "read into the other buffer",
        alter("get_write_ptr(%cb0", "%cb0", "%cb1"),
        "get_write_ptr(%cb1",
        "asks where to write",
    )
    yield case("read to one place twice", alter("%da =", "%oa", "%n0"), "read_tile(%ida", "still under way")
    yield case("read to an odd address", alter("%oa =", "%bytes", "%n1"), "read_tile(%ida", "expected a multiple of 16")
    yield case(
        "read beyond the buffer",
        alter("%da =", "%oa", "%n8"),
        "read_tile(%ida",
        "at address 8: expected a multiple of 16",
    )
    yield case(
        "read a tile beyond the tensor",
        alter("%ka =", "%ta", "%block"),
        "read_tile(%ida",
        "asks for tile 4 of tensor 'a'",
    )
    yield case(
        "read one tile twice", alter("%ka =", "%ta", "%c0"), "read_tile(%ida", "is read again, while page 1 never is"
    )
    yield case("drop a read", drop("read_tile(%ida"), "push_back(%cb0", "which was not written")
    yield case(
        "the other tensor's arguments",
        alter("%argsa =", "cta = 3", "cta = 4"),
        "%argsa =",
        "takes common runtime argument 0 for tensor 1",
    )
    yield case("no tensor's arguments", alter("%argsa =", "cta = 3", "cta = 2"), "%argsa =", "begin at 3")
    yield case(
        "the other runtime argument",
        alter("%argsa =", "crta = 0", "crta = 1"),
        "%argsa =",
        "takes common runtime argument 1",
    )
    yield case(
        "the other tensor's address",
        alter("%basea =", "index = 0", "index = 1"),
        "%acca =",
        "for the address of tensor 'a'",
    )
    yield case("wrong bytes of a page", alter("%acca =", "%bytes", "%n8"), "%acca =", "takes pages of 8 bytes")
    yield case("wrong layout", alter("%acca =", "tiled", "interleaved"), "%acca =", "for interleaved, but it is tiled")
    yield case("wrong shape", alter("%acca =", "64 : i32, 64", "64 : i32, 32"), "%acca =", "for one of \\[64, 32\\]")
    yield case("one round fewer", alter("scf.for %i", "%c0", "%c1"), "wait_front(%cb0", "deadlock: thread 'compute'")
    yield case("one round more", alter("%blocks =", "2", "3"), "read_tile(%ida", "asks for tile 4 of tensor 'a'")
    # Resources.
    yield case(
        "buffers at one address",
        alter("%cb1 = ttl", "l1_address = 16384", "l1_address = 0"),
        "reserve_back(%cb1",
        "circular buffer 0 uses, too",
    )
    yield case(
        "buffers that overlap",
        alter("%cb2 = ttl", "l1_address = 32768", "l1_address = 28672"),
        "reserve_back(%cb2",
        "bytes 28672 to 32768",
    )
    yield case(
        "an odd address",
        alter("%cb1 = ttl", "l1_address = 16384", "l1_address = 16392"),
        "%cb1 = ttl",
        "expected a multiple of 32",
    )
    yield case(
        "beyond the memory",
        alter("%cb2 = ttl", "l1_address = 32768", "l1_address = 1490944"),
        "%cb2 = ttl",
        "but a core has 1499136",
    )
    half = both(
        alter("%cb0 = ttl", "buffer_factor = 2", "buffer_factor = 1"), alter("%cb0 = ttl", "f32>, 2>", "f32>, 1>")
    )
    yield case("half the pages", half, "%cb0 = ttk", "but the driver has made !ttkernel.cb<2,")
    yield case(
        "another data format", alter("%cb0 = ttl", "32x32, f32", "32x32, bf16"), "%cb0 = ttk", "but the driver has made"
    )
    yield case(
        "a buffer that there is not",
        alter("%cb0 = ttk", "index = 0", "index = 7"),
        "%cb0 = ttk",
        "takes circular buffer 7",
    )
    # The compute thread.
    wait, pop = "wait_front(%cb0", "pop_front(%cb0"
    yield case("no wait", drop(wait), "copy_tile(%cb0", "reads tile 0 of circular buffer 0, but has waited for 0 pages")
    yield case("wait for fewer", alter(wait, "%pages", "%n1"), "copy_tile(%cb0", "reads tile 1")
    yield case(
        "wait for more", alter(wait, "%pages", "%n4"), wait, "waits for 4 pages of circular buffer 0, which has 2"
    )
    yield case("no pop", drop(pop), wait, "again before it has popped")
    yield case("pop twice", double(pop), pop, "but has waited for 0")
    yield case("pop fewer", alter(pop, "%pages", "%n1"), wait, "again before it has popped")
    yield case("pop before the last read", move(pop, "init_sfpu"), "copy_tile(%cb0", "has waited for 0 pages")
    yield case("pop the other buffer", alter(pop, "%cb0", "%cb1"), "pop_front(%cb1", "but has waited for 0")
    yield case("no reserve of the result", drop("reserve_back(%cb2"), "pack_tile(", "but has reserved 0 pages")
    yield case("no push of the result", drop("push_back(%cb2"), "reserve_back(%cb2", "again before it has pushed")
    yield case("push before packing", move("push_back(%cb2", "init_sfpu"), "push_back(%cb2", "which was not written")
    yield case("no acquire", drop("regs_acquire"), "copy_tile(%cb0", "when the registers are released")
    yield case("no commit", drop("regs_commit"), "regs_wait", "with the math processor")
    yield case("no wait for registers", drop("regs_wait"), "pack_tile(", "expected 'tile_regs_wait' before")
    yield case("no release", drop("regs_release"), "regs_acquire", "with the pack processor")
    yield case("commit after the wait", move("regs_commit", "regs_wait"), "regs_wait", "with the math processor")
    yield case(
        "release before packing",
        move("regs_release", "regs_wait"),
        "add_binary_tile(",
        "nothing reads before it is released",
    )
    yield case(
        "pack before the commit", move("pack_tile(", "add_binary_tile("), "pack_tile(", "with the math processor"
    )
    yield case("acquire twice", double("regs_acquire"), "regs_acquire", "with the math processor")
    yield case("no first operand", drop("copy_tile(%cb0"), "add_binary_tile(", "reads register 0, which holds nothing")
    yield case("no second operand", drop("copy_tile(%cb1"), "add_binary_tile(", "reads register 1, which holds nothing")
    yield case("no addition", drop("add_binary_tile("), "copy_tile(%cb1", "nothing reads before it is released")
    yield case("no pack", drop("pack_tile("), "add_binary_tile(", "nothing reads before it is released")
    yield case(
        "both operands in one register",
        alter("copy_tile(%cb1", "%d1", "%d0"),
        "copy_tile(%cb1",
        "overwrites register 0",
    )
    yield case(
        "too large a register", alter("copy_tile(%cb1", "%d1", "%n4"), "copy_tile(%cb1", "the registers are 0 to 3"
    )
    yield case(
        "add an empty register",
        alter("add_binary_tile(", "%d1", "%n3"),
        "add_binary_tile(",
        "reads register 3, which holds nothing",
    )
    yield case(
        "add to another register",
        alter("add_binary_tile(", "%d1, %d0", "%d1, %n3"),
        "add_binary_tile(",
        "writes register 3, which nothing reads",
    )
    yield case(
        "pack another register",
        alter("pack_tile(", "%d0", "%d1"),
        "add_binary_tile(",
        "writes register 0, which nothing reads",
    )
    yield case("pack to one place twice", alter("pack_tile(", "%t)", "%c0)"), "pack_tile(", "once more")
    yield case("pack beyond the reservation", alter("pack_tile(", "%t)", "%block)"), "pack_tile(", "packs into tile 2")
    yield case(
        "pack into an operand",
        alter("pack_tile(", "%cb2", "%cb0"),
        "pack_tile(",
        "packs into tile 0 of circular buffer 0",
    )
    yield case("compute with one tile twice", alter("copy_tile(%cb0", "%t,", "%c0,"), "copy_tile(%cb0", "was not read")
    yield case("compute with one operand twice", alter("copy_tile(%cb0", "%cb0", "%cb1"), pop, "none of which was read")
    yield case(
        "compute with a tile too far", alter("copy_tile(%cb0", "%t,", "%block,"), "copy_tile(%cb0", "reads tile 2"
    )
    # The consumer.
    yield case("no wait for the result", drop("wait_front(%cb2"), "get_read_ptr(%cb2", "asks where to read")
    yield case("no pop of the result", drop("pop_front(%cb2"), "wait_front(%cb2", "again before it has popped")
    yield case(
        "no write barrier",
        drop("write_barrier"),
        "pop_front(%cb2",
        "before a barrier for its write of tile 0 of tensor 'c'",
    )
    yield case(
        "write barrier after the pop", move("write_barrier", "pop_front(%cb2"), "pop_front(%cb2", "before a barrier"
    )
    yield case(
        "write one tile twice",
        alter("%kc =", "%tc", "%c0"),
        "write_tile(%idc",
        "is written once more, while page 1 never is",
    )
    yield case("write the same block twice", alter("%dc =", "%oc", "%n0"), "write_tile(%idc", "was not read")
    yield case(
        "write beyond the tensor", alter("%kc =", "%tc", "%block"), "write_tile(%idc", "asks for tile 4 of tensor 'c'"
    )
    yield case(
        "write beyond the block", alter("%oc =", "%bytes", "%n8"), "write_tile(%idc", "expected a multiple of 16"
    )
    yield case(
        "one round of writes fewer", alter("scf.for %i", "%c0", "%c1", 2), "reserve_back(%cb2", "are left at the end"
    )
    yield case(
        "a second consumer",
        alter("%cb2 = ttk", "index = 2", "index = 1", 1),
        "wait_front(%cb2",
        "its consumer is thread 'compute'",
    )


def multicast_mutations() -> Iterator[Mutation]:
    def case(name: str, change: Change, line: str, message: str) -> Mutation:
        return Mutation(name, "multicast", change, line, message)

    inc, set_zero = "noc_semaphore_inc(", "noc_semaphore_set(%valid, %zero"
    wait_ready, wait_valid = "noc_semaphore_wait(%ready", "noc_semaphore_wait(%valid"
    write, announce = "write_multicast(", "set_multicast("
    yield case("a receiver is not ready", drop(inc), wait_ready, "deadlock")
    yield case("the source does not wait", drop(wait_ready), write, "is not reserved on core")
    yield case("ready is not taken back", drop("noc_semaphore_set(%ready"), wait_ready, "deadlock|when it last waited")
    yield case("valid is not taken back", drop(set_zero), wait_valid, "when it last waited")
    yield case("valid is taken back late", move(set_zero, inc), f"{set_zero}|{announce}", "it is lost")
    yield case(
        "a receiver does not wait", drop(wait_valid), f"push_back|{set_zero}", "which was not written|it is lost"
    )
    # On a Wormhole the network keeps their order (test_ttkernel_noc_order.py).
    blackhole = alter("kernel_driver @", "attributes {", 'attributes {arch = "blackhole", ')
    change = both(drop("write_barrier"), blackhole)
    yield case("no barrier before valid", change, f"push_back|{write}", "not written|before a barrier")
    yield case(
        "no barrier after valid",
        drop("write_barrier", 1),
        announce,
        "before a 'noc_async_write_barrier'|while a copy of it",
    )
    yield case("valid before the data", move(write, announce), "push_back", "not written")
    yield case("no data", drop(write), "push_back", "not written")
    yield case("valid is not announced", drop(announce), wait_valid, "deadlock")
    yield case("too many answers", alter(write, "%receivers", "%blocks_i"), write, "says num_dests = 3")
    yield case("too many answers for valid", alter(announce, "%receivers", "%blocks_i"), announce, "says num_dests = 3")
    yield case("half a tile", alter(write, "%bytes", "%half"), write, "expected a multiple")
    yield case(
        "coordinates of the grid",
        alter("%ready_there", "%source_x, %source_y", "%zero, %zero"),
        "%ready_there",
        "coordinates of the grid",
    )
    yield case("one core too far", alter("%data_there", "%last_x", "%blocks_x"), "%data_there", "names the core .4, 2.")
    yield case(
        "one core fewer",
        alter("%data_there", "%last_x", "%first_x"),
        write,
        "multicasts to 1 cores, but says num_dests = 2",
    )
    yield case("to another core", alter("%ready_there", "%source_x", "%first_x"), inc, "set|deadlock")
    yield case("another address", alter("%data_there", "%place", "%zero"), write, "is not reserved on core")
    yield case(
        "a semaphore's address for data",
        alter("%data_there", "%place", "%valid_address"),
        write,
        "is not reserved on core",
    )
    yield case(
        "data's address for a semaphore", alter("%valid_there", "%valid_address", "%place"), announce, "where none is"
    )
    yield case(
        "with loopback",
        alter(write, "multicast(", "multicast_loopback_src("),
        "write_multicast",
        "without its own core",
    )
    yield case(
        "the other semaphore",
        alter("%valid_there", "%valid_address", "%ready_address"),
        f"{announce}|{wait_valid}",
        "deadlock|afterwards",
    )
    yield case(
        "the other word",
        alter(announce, "%valid_word", "%ready_word"),
        f"{announce}|{wait_valid}",
        "deadlock|afterwards",
    )
    yield case("wait for too many", alter(wait_ready, "%receivers", "%blocks_i"), wait_ready, "to be 3")
    yield case(
        "wait for too few",
        alter(wait_ready, "%receivers", "%one"),
        f"{write}|noc_semaphore_set(%ready",
        "is not reserved|it is lost|deadlock",
    )
    yield case(
        "a semaphore that there is not",
        alter("%valid_word =", "index = 1", "index = 5"),
        "%valid_word =",
        "takes semaphore 5",
    )
    yield case(
        "an initial value",
        alter("%s0 =", "initial = 0", "initial = 1"),
        f"{write}|{wait_ready}",
        "deadlock|not reserved",
    )


EQUIVALENT = [
    # The source waits for the increment before it says that its data is there, and the receiver waits for that: when
    # the thread goes on, its increment has long taken effect.
    Mutation("no atomic barrier", "multicast", drop("atomic_barrier"), "", ""),
    # Both sides set the semaphore before they use it.
    Mutation("an initial value of valid", "multicast", alter("%s1 =", "initial = 0", "initial = 1"), "", ""),
    # The sum of two tiles is that of the same tiles.
    Mutation("operands exchanged", "add", alter("add_binary_tile(", "%d0, %d1", "%d1, %d0"), "", ""),
    # The sum may be in any of the registers that its operands have had.
    Mutation(
        "the sum in the other register",
        "add",
        both(alter("add_binary_tile(", "%d1, %d0", "%d1, %d1"), alter("pack_tile(", "%d0", "%d1")),
        "",
        "",
    ),
    # Nothing is computed between the two calls.
    Mutation("reserve the result first", "add", move("reserve_back(%cb2", "scf.for %i", nth_after=1), "", ""),
    # Each of the two pages of the block was read by then.
    Mutation("push the result before the pops", "add", move("push_back(%cb2", "    }", nth_after=2), "", ""),
]
"""Changes after which the program is as right as before, with the reason."""

MUTATIONS = [*add_mutations(), *multicast_mutations()]


def constants(text: str) -> str:
    """Numbers that a mutation puts into the program of pipes."""
    more = "  %half = arith.constant 2048 : i32\n  %blocks_i = arith.constant 3 : i32\n  %blocks_x = arith.constant 4 : i32\n"
    return text.replace("  %source_x =", f"{more}  %source_x =", 1)


def mutated(mutation: Mutation) -> list[str]:
    lines = constants(PROGRAMS[mutation.program]).split("\n")
    mutation.change(lines)
    return lines


def arrays_of(program: str) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    if program == "add":
        return [random.standard_normal((64, 64), dtype=np.float32) for _ in range(2)] + [np.zeros((64, 64), np.float32)]
    return [random.standard_normal((32, 64), dtype=np.float32), np.zeros((96, 64), np.float32)]


def said(mutation: Mutation, lines: list[str]) -> str:
    """All that is said about a program: the fault of a first run, or of another order, or what the report warns of."""
    try:
        plan = make_plan(parse("\n".join(lines)))
        arrays = arrays_of(mutation.program)
        report = run(plan, arrays)
        found = explore(plan, arrays, 500).fault
    except Fault as fault:
        return str(fault)
    return "\n".join(map(str, [*report.warnings, *([] if found is None else [found])]))


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_a_change_nothing_is_said(program: str):
    plan = make_plan(parse(constants(PROGRAMS[program])))
    arrays = arrays_of(program)
    assert run(plan, arrays).warnings == ()
    assert explore(plan, arrays, 500).complete
    assert explore(plan, arrays, 500).fault is None


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_a_mutation_is_found(mutation: Mutation):
    lines = mutated(mutation)
    text = said(mutation, lines)
    assert re.search(mutation.message, text), text or "nothing is said"
    places = [lines[int(number) - 1] for number in re.findall(r"kernel\.py:(\d+)", text)]
    assert any(words in place for place in places for words in mutation.line.split("|")), text


@pytest.mark.parametrize("mutation", EQUIVALENT, ids=lambda each: each.name)
def test_an_equivalent_change_is_none(mutation: Mutation):
    lines = mutated(mutation)
    assert said(mutation, lines) == ""
    changed, unchanged = arrays_of(mutation.program), arrays_of(mutation.program)
    run(parse("\n".join(lines)), changed)
    run(parse(constants(PROGRAMS[mutation.program])), unchanged)
    np.testing.assert_array_equal(changed[-1], unchanged[-1])


def test_there_are_many():
    assert len(MUTATIONS) >= 100
    assert len({each.name for each in MUTATIONS}) == len(MUTATIONS)
