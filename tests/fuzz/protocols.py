"""Random protocols: the prover against a simulator of all schedules that knows nothing of it.

`python -m tests.fuzz.protocols 2000` tries so many, from a seed on (`--first 0`), and says which are proved and wrong
(there must be none), and how many of the right ones are proved.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import tlx_xdsl
from tests.fuzz.protocol_model import Act, Barriers, Buffers, For, If, Let, Protocol, Statement, text_of
from tests.fuzz.protocol_simulator import TooLargeError, wrong
from tlx_xdsl.analysis.protocol.prove import Proof, prove
from tlx_xdsl.runtime.check.run import any_values
from tlx_xdsl.runtime.simulate.interpret import source_of_kernel
from tlx_xdsl.runtime.simulate.options import Options

SECONDS = 10.0
"""Time for a proof."""
SIZES = [{"n": n, "m": m} for n in range(11) for m in range(3) if n < 5 or m == 1]
"""The arguments with which a protocol is simulated."""


# --- right ones -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Way:
    """A task's way through a ring."""

    head: tuple[Statement, ...]
    index: str
    phase: str
    """0 or 1: that of the items, not yet the other way round for who waits for free slots."""
    tail: tuple[Statement, ...]
    """After each item."""


def _way(choice: random.Random, name: str, slots: int, turn: str | None) -> _Way:
    """A way to count; by the number of the turn only where all turns have an item."""
    kinds = ["counter", "parity"] if turn is None else ["turn", "turn", "counter", "parity"]
    match choice.choice(kinds):
        case "turn":
            quotient = turn if slots == 1 else f"({turn} // {slots})"
            return _Way((), f"{turn} % {slots}" if slots > 1 else "0", f"({quotient} & 1)", ())
        case "counter":
            count = f"c{name}"
            more = (Let(count, f"{count} + 1"),)
            return _Way((Let(count, "0"),), f"{count} % {slots}", f"(({count} // {slots}) & 1)", more)
        case _:
            slot, phase = f"s{name}", f"p{name}"
            more: tuple[Statement, ...] = (
                Let(slot, f"{slot} + 1"), If(f"{slot} == {slots}", (Let(slot, "0"), Let(phase, f"{phase} ^ 1")))
            )  # fmt: skip
            if slots == 1:
                more = (Let(phase, f"{phase} ^ 1"),)
            return _Way((Let(slot, "0"), Let(phase, "0")), slot, phase, more)


def _loops(choice: random.Random, kind: str, item: Sequence[Statement]) -> tuple[Statement, ...]:
    """Code that does an item as often as the kind says, in one of the ways to say so."""
    body = tuple(item)
    match kind:
        case "ceil":
            return (For("t", "0", choice.choice(("count", "(n + 1) // 2")), 1, body),)
        case "half":
            return (For("t", "0", "n // 2", 1, body),)
        case "steps":
            return (For("u", "0", "n", 2, (Let("t", "u // 2"), *body)),)
        case "nested":
            return (For("i", "0", "n", 1, (For("k", "0", "m", 1, body),)),)
        case "nested constant":
            return (For("i", "0", "n", 1, (For("k", "0", "2", 1, body),)),)
        case "some":
            return (For("t", "0", "n", 1, (If("t % 2 == 0", body),)),)
        case "less":
            return (For("t", "0", "n - 1", 1, body),)
        case "sum":
            return (For("t", "0", "n + m", 1, body),)
        case "tail":
            tail = If("n > 0", (Let("t", "n - 1"), *body))
            if choice.random() < 0.5:
                return (For("t", "0", "n", 1, body),)
            return (For("t", "0", "n - 1", 1, body), tail)
        case _:
            return (For("t", "0", "n", 1, body),)


KINDS = ("all", "all", "all", "ceil", "half", "steps", "nested", "nested constant", "some", "less", "sum", "tail")


def right(choice: random.Random) -> Protocol:
    """A protocol that is right: tasks with rings from each to the next, or two that take turns with one memory."""
    if choice.random() < 0.12:
        return _turns(choice)
    tasks = choice.choice((2, 2, 2, 3))
    kind = choice.choice(KINDS)
    turn = "t" if kind in ("all", "ceil", "half", "steps", "less", "sum", "tail") else None
    barriers: list[Barriers] = []
    buffers: list[Buffers] = []
    gives: list[list[tuple[str, int, bool]]] = [[] for _ in range(tasks)]
    takes: list[list[tuple[str, int, bool]]] = [[] for _ in range(tasks)]
    rings = [(number, number + 1) for number in range(tasks - 1)]
    if tasks == 2 and choice.random() < 0.3:
        rings.append(choice.choice(((0, 1), (1, 0))))
    for number, (giver, taker) in enumerate(rings):
        slots, is_load = choice.choice((1, 1, 2, 2, 3)), choice.random() < 0.3
        name = "abc"[number]
        barriers += [Barriers(f"full_{name}", slots), Barriers(f"empty_{name}", slots)]
        buffers.append(Buffers(f"tile_{name}", slots))
        gives[giver].append((name, slots, is_load))
        takes[taker].append((name, slots, is_load))
    code: list[tuple[Statement, ...]] = []
    for number in range(tasks):
        head: list[Statement] = []
        item: list[Statement] = []
        tail: list[Statement] = []
        for name, slots, _ in takes[number]:
            way = _way(choice, f"{name}{number}", slots, turn)
            head += way.head
            tail += way.tail
            item += [
                Act("wait", f"full_{name}", way.index, way.phase), Act("read", f"tile_{name}", way.index),
                Act("arrive", f"empty_{name}", way.index),
            ]  # fmt: skip
        for name, slots, is_load in gives[number]:
            way = _way(choice, f"{name}{number}", slots, turn)
            head += way.head
            tail += way.tail
            item.append(Act("wait", f"empty_{name}", way.index, f"{way.phase} ^ 1"))
            if is_load:
                item += [
                    Act("expect", f"full_{name}", way.index), Act("load", f"tile_{name}", way.index, f"full_{name}")
                ]  # fmt: skip
            else:
                item += [Act("write", f"tile_{name}", way.index), Act("arrive", f"full_{name}", way.index)]
        code.append((*head, *_loops(choice, kind, [*item, *tail])))
    before = (Let("count", "(n + 1) // 2"),) if kind == "ceil" else ()
    return Protocol(tuple(barriers), tuple(buffers), before, tuple(code))


def _turns(choice: random.Random) -> Protocol:
    """Two tasks that take turns with an array each, in one memory."""
    slots = choice.choice((1, 1, 2))
    kind = choice.choice(("all", "ceil", "half", "less"))
    code: list[tuple[Statement, ...]] = []
    for number, (mine, other, array, flip) in enumerate((("ours", "theirs", "a", " ^ 1"), ("theirs", "ours", "b", ""))):
        way = _way(choice, str(number), slots, "t")
        item: list[Statement] = [
            Act("wait", mine, way.index, way.phase + flip), Act("write", array, way.index),
            Act("read", array, way.index), Act("arrive", other, way.index), *way.tail,
        ]  # fmt: skip
        code.append((*way.head, *_loops(choice, kind, item)))
    before = (Let("count", "(n + 1) // 2"),) if kind == "ceil" else ()
    buffers = tuple(Buffers(name, slots, "spec") for name in "ab")
    return Protocol((Barriers("ours", slots), Barriers("theirs", slots)), buffers, before, tuple(code))


# --- wrong ones -------------------------------------------------------------------------------------------------------


def damaged(protocol: Protocol, choice: random.Random) -> Protocol:
    """The protocol with one or two changes, which may make it wrong."""
    for _ in range(choice.choice((1, 1, 1, 2))):
        if choice.random() < 0.06:
            number = choice.randrange(len(protocol.barriers))
            barriers = list(protocol.barriers)
            barriers[number] = replace(barriers[number], count=2)
            protocol = replace(protocol, barriers=tuple(barriers))
            continue
        task = choice.randrange(len(protocol.tasks))
        places = list(_places(protocol.tasks[task]))
        if not places:
            continue
        tasks = list(protocol.tasks)
        tasks[task] = _changed(tasks[task], choice.choice(places), choice)
        protocol = replace(protocol, tasks=tuple(tasks))
    return protocol


def _places(code: Sequence[Statement]) -> Iterator[tuple[int, ...]]:
    for number, each in enumerate(code):
        if isinstance(each, Act | For):
            yield (number,)
        if isinstance(each, For | If):
            yield from ((number, *more) for more in _places(each.body))


def _changed(code: tuple[Statement, ...], place: tuple[int, ...], choice: random.Random) -> tuple[Statement, ...]:
    number, *more = place
    each = code[number]
    if more:
        assert isinstance(each, For | If)
        return (*code[:number], replace(each, body=_changed(each.body, tuple(more), choice)), *code[number + 1 :])
    if isinstance(each, For):
        stop = choice.choice((f"{each.stop} + 1", f"{each.stop} - 1", f"{each.stop} - n // 5", "n", f"{each.stop} + n"))
        return (*code[:number], replace(each, stop=stop), *code[number + 1 :])
    assert isinstance(each, Act)
    if choice.random() < 0.15 and number + 1 < len(code):
        return (*code[:number], code[number + 1], each, *code[number + 2 :])
    return (*code[:number], *_instead(each, choice), *code[number + 1 :])


def _instead(act: Act, choice: random.Random) -> tuple[Statement, ...]:
    late = choice.choice((1, 2, 3, 4))
    conditions = (f"n < {late + 2}", f"n != {late + 1}", f"n % {late + 1} != 0")
    ways = ["none", "twice", "at times", "at times"]
    if act.what == "wait":
        ways += ["flipped", "negative", "negative", "later"]
    if act.what in ("read", "write"):
        ways += ["beside"]
    match choice.choice(ways):
        case "none":
            return ()
        case "twice":
            return (act, act)
        case "at times":
            return (If(choice.choice(conditions), (act,)),)
        case "flipped":
            return (replace(act, more=f"{act.more} ^ 1"),)
        case "negative":
            # A number less, before or after the division by the length of the ring.
            less = choice.choice((1, 2, 3, 4))
            changed = re.sub(r"\b(t|c[a-c]?\d) //", rf"(\1 - {less}) //", act.more)
            return (replace(act, more=changed if changed != act.more else f"({act.more} + {2 * less}) & 1"),)
        case "later":
            return (replace(act, more=f"({act.more} + n // {late + 2}) & 1"),)
        case _:
            # The same block for rings of one, else another one.
            return (replace(act, index=f"({act.index}) // 2"),)


# --- answers ----------------------------------------------------------------------------------------------------------


def protocol_of(seed: int) -> Protocol:
    """The protocol of a seed."""
    choice = random.Random(seed)
    found = right(choice)
    return damaged(found, choice) if choice.random() < 0.6 else found


@dataclass(frozen=True)
class Answer:
    """Answers of the simulator and the prover to a protocol."""

    seed: int
    wrong: str
    """What goes wrong with some arguments; empty for nothing."""
    proof: Proof
    text: str

    @property
    def is_false(self) -> bool:
        """True if something wrong is proved."""
        return bool(self.wrong) and bool(self.proof)


def answer(seed: int, sizes: Sequence[Mapping[str, int]] = SIZES) -> Answer | None:
    """Ask both about a protocol; None for one that has too many states."""
    protocol = protocol_of(seed)
    text = text_of(protocol)
    proof = _proof(text, seed)
    found = ""
    try:
        for at in sizes:
            message, turn = wrong(protocol, at)
            # A proof may be for loops that turn only.
            if message and (turn or not proof.required):
                found = f"{at}: {message}"
                break
    except TooLargeError:
        return None
    return Answer(seed, found, proof, text)


def _proof(text: str, seed: int) -> Proof:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"protocol_{seed}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        arrays = [np.zeros(256, np.float32) for _ in range(2)]
        desc = tlx_xdsl.TensorDescriptor.from_tensor(np.zeros((16, 16), np.float32), [16, 16])
        arguments = {"desc": desc, "src": arrays[0], "dst": arrays[1], "n": 37, "m": 37}
        kernel = any_values(source_of_kernel(module.kernel), arguments, Options())
        del sys.modules[path.stem]
    (found,) = prove(kernel, seconds=SECONDS)
    return found


def main() -> int:
    """Try as many as the command line says; returns 1 where something wrong is proved."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.protocols", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print what is right and not proved")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    slow: list[tuple[float, int]] = []
    for seed in range(args.first, args.first + args.count):
        found = answer(seed)
        if found is None:
            counts["too large"] += 1
            continue
        slow.append((found.proof.seconds, seed))
        counts[f"{'wrong' if found.wrong else 'right'}, {found.proof.answer}"] += 1
        if found.is_false:
            print(f"FALSE PROOF of seed {seed}: {found.wrong}\n{found.text}", flush=True)
        if not found.wrong and not found.proof:
            assert found.proof.reason is not None
            reasons[found.proof.reason.message] += 1
            if args.show:
                print(f"seed {seed}, right: {found.proof.reason}\n{found.text}", flush=True)
        counts["false"] += found.is_false
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    for reason, count in reasons.most_common(12):
        print(f"{count:6} right, but: {reason}")
    print("slowest:", ", ".join(f"{seed} ({seconds:.1f} s)" for seconds, seed in sorted(slow)[-5:]))
    return 1 if counts["false"] else 0


if __name__ == "__main__":
    sys.exit(main())
