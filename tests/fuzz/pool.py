"""Run many small trials in forked processes, each with a bound on its time and memory."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from tlx_xdsl.lifeline import when_abandoned

SECONDS = 20
"""Time of a processor after which a trial hangs: by the clock, a busy machine would be to blame."""
PATIENCE = 300
"""Seconds by the clock: it may wait for something that never comes."""
MEMORY = 4 << 30
"""Bytes of address space of a process."""
CHUNK = 25
BAD = ("traceback", "internal", "hang", "died", "wrong")
"""How no trial may end."""


@dataclass(frozen=True)
class Ending:
    """Ending of one trial."""

    kind: str
    """`ok`, `located`, `unlocated`, or one of `BAD`."""
    detail: str = ""


class Hang(BaseException):
    """A trial takes too long; no Exception, which what is tried might catch."""


def _too_long(_signal: int, _frame: object) -> None:
    raise Hang


def ending(trial: Callable[[int], Ending], number: int, seconds: float = SECONDS) -> Ending:
    """Run one trial in this process."""
    before = [(each, signal.signal(each, _too_long)) for each in (signal.SIGALRM, signal.SIGPROF)]
    signal.alarm(PATIENCE)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return trial(number)
    except Hang:
        return Ending("hang", traceback.format_exc())
    except Exception:
        return Ending("traceback", traceback.format_exc())
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for each, handler in before:
            signal.signal(each, handler)


def _work(link: Connection, inherited: Sequence[Connection], trial: Callable[[int], Ending], seconds: float) -> None:
    for each in inherited:
        each.close()
    when_abandoned(link.fileno(), lambda: os._exit(1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while (numbers := link.recv()) is not None:
        for number in numbers:
            link.send((number, ending(trial, number, seconds)))


@dataclass
class _Worker:
    process: BaseProcess
    link: Connection
    pending: list[int] = field(default_factory=list[int])


def endings(
    trial: Callable[[int], Ending], numbers: Sequence[int], jobs: int, seconds: float = SECONDS
) -> Iterator[tuple[int, Ending]]:
    """Run the trials of these numbers, in any order; a process that dies is the end of the trial that it was at."""
    context = multiprocessing.get_context("fork")
    chunks = [list(numbers[at : at + CHUNK]) for at in range(0, len(numbers), CHUNK)][::-1]
    workers: list[_Worker] = []

    def start(pending: list[int]) -> None:
        here, there = context.Pipe()
        inherited = [here, *(worker.link for worker in workers)]
        process = context.Process(target=_work, args=(there, inherited, trial, seconds), daemon=True)
        process.start()
        there.close()
        here.send(pending)
        workers.append(_Worker(process, here, pending))

    while chunks or workers:
        while chunks and len(workers) < jobs:
            start(chunks.pop())
        for link in wait([worker.link for worker in workers]):
            worker = next(each for each in workers if each.link is link)
            try:
                number, how = worker.link.recv()
            except EOFError:
                workers.remove(worker)
                worker.process.join()
                yield worker.pending[0], Ending("died", f"exit code {worker.process.exitcode}")
                if worker.pending[1:]:
                    start(worker.pending[1:])
                continue
            worker.pending.remove(number)
            yield number, how
            if worker.pending:
                continue
            if chunks:
                worker.pending = chunks.pop()
                worker.link.send(worker.pending)
            else:
                worker.link.send(None)
                worker.process.join()
                workers.remove(worker)


def report(name: str, trial: Callable[[int], Ending], show: Callable[[int], str], *, each: int = 1) -> int:
    """Run the command line of a fuzzer: `N --seed S --jobs J`, or `--only NUMBER`; 1 if a trial ended badly.

    N counts inputs, of which a trial runs `each` and ends at the first bad one.
    """
    parser = argparse.ArgumentParser(prog=f"python -m tests.fuzz.{name}")
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first number is a million times this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, help="show one input and how it ends")
    args = parser.parse_args()
    if args.only is not None:
        print(show(args.only))
        how = ending(trial, args.only)
        print(f"--- {how.kind}\n{how.detail}")
        return how.kind in BAD
    first = args.seed * 1_000_000
    totals: Counter[str] = Counter()
    trials = -(-args.count // each)
    for number, how in endings(trial, range(first, first + trials), args.jobs):
        totals[how.kind] += 1
        if how.kind in (*BAD, "unlocated"):
            print(f"{number}: {how.kind}: {how.detail.strip()[-600:]}", flush=True)
        if totals.total() % 1000 == 0:
            print(f"... {totals.total()}: {dict(totals)}", file=sys.stderr, flush=True)
    inputs = f"{totals.total() * each} inputs" + (f" in {totals.total()} trials" if each > 1 else "")
    print(f"{name}: {inputs}: {', '.join(f'{count} {kind}' for kind, count in totals.most_common())}")
    return any(totals[kind] for kind in BAD)


def volume(small: int, full: int) -> int:
    """The number of trials of a test: `full` where TLX_TEST_VOLUME asks for it."""
    return full if os.environ.get("TLX_TEST_VOLUME") == "full" else small
