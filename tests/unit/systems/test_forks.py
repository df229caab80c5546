"""Processes of ours, whatever way of starting them is the default, and where they can't be forked."""

import os
import subprocess
import sys

import pytest

from tests.unit.volume import is_full
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.forks import can_fork, forked
from tlx_xdsl.gate import spread as gate

forks = pytest.mark.skipif(not can_fork(), reason="processes can't be forked here")


@forks
@pytest.mark.quick
def test_a_body_gets_its_link_and_the_ends_that_it_must_close():
    def body(link, parents, word):
        for each in parents:
            each.close()
        link.send((word, len(parents), os.getpid()))
        link.recv()

    first, to_first = forked(body, [], "one")
    second, to_second = forked(body, [to_first], "two")
    assert to_first.recv() == ("one", 1, first.pid)
    assert to_second.recv() == ("two", 2, second.pid)
    # That our end is closed is seen by the one, though the other was started while it was open.
    to_first.close()
    first.join(30)
    assert first.exitcode == 1
    to_second.send(None)
    second.join(30)
    assert second.exitcode == 0


def test_the_gate_says_that_it_needs_forks(monkeypatch):
    monkeypatch.setattr(gate, "can_fork", lambda: False)
    with pytest.raises(CompilationError, match="in forked processes, which this system lacks"):
        next(gate.spread(lambda number: iter([number]), [1], 1, 1.0))


@forks
@pytest.mark.parametrize("method", ["forkserver", *(["spawn"] if is_full() else [])])
def test_the_default_of_a_script_changes_nothing(method):
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.systems.start_methods", method], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
