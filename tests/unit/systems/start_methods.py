"""Starts of processes, where a script has chosen how processes are started: `forkserver` is what Python
3.14 does by default, `spawn` what all systems have.

    python -m tests.unit.systems.start_methods forkserver
"""

import multiprocessing
import os
import sys

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.gate.spread import spread
from tlx_xdsl.runtime.jit.ahead import Answer, compiled_ahead
from tlx_xdsl.runtime.sweep.pool import SpawnPool


@tlx_xdsl.jit
def count(x):
    at = x + tl.program_id(0)
    tl.store(at, tl.load(at) + 1)


def main(method: str) -> None:
    """Start processes of each kind, with work that no pickle takes where they are to be forked."""
    multiprocessing.set_start_method(method)
    here = os.getpid()
    assert sorted(spread(lambda number: iter([number * 10, os.getpid() != here]), range(3), 2, 60.0)) == sorted(
        (number, item) for number in range(3) for item in (number * 10, True)
    )
    answers = list(compiled_ahead(lambda number: [][number:1], range(3), 2))
    assert {each.number for each in answers if isinstance(each, Answer) and not each.failure} == {0, 1, 2}, answers
    x = np.zeros(64, np.int32)
    report = count.interpret(64, x, jobs=2)
    assert report.jobs == 2, report
    assert x.tolist() == [1] * 64
    pool = SpawnPool(1)
    assert pool.submit(os.getpid).result() != here
    pool.close()
    assert multiprocessing.get_start_method() == method


if __name__ == "__main__":
    main(sys.argv[1])
