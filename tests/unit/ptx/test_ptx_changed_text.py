"""Text that is changed at random gives an error of one line, or runs: never a traceback, and never without an end."""

import random
import re
import time

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.ptx.snippets import kernel
from tests.unit.ptx.test_ptx_faults import MBARRIER
from tests.unit.ptx.test_ptx_threads import REVERSE, SHARED
from tlx_xdsl.errors import CompilationError, InputError, InputTypeError
from tlx_xdsl.ptx import run_ptx

TEXTS = [
    kernel(REVERSE, threads=128, shared=SHARED),
    kernel(MBARRIER.replace("{count}", "1"), threads=64, shared=SHARED),
]
_TOKEN = re.compile(r"[%$\w.:]+|\S")


def changed(text: str, rng: random.Random) -> str:
    """A text with one to three changes: of lines, words, numbers or characters."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
        words, others = list(_TOKEN.finditer(lines[here])), list(_TOKEN.finditer(lines[there]))
        match rng.randrange(6):
            case 0:
                lines[here] = ""
            case 1:
                lines[here], lines[there] = lines[there], lines[here]
            case 2:
                number = str(rng.choice([0, -1, 1 << 31, 1 << 70, 7]))
                lines[here] = re.sub(r"\d+", lambda _match, number=number: number, lines[here], count=1)
            case 3 if words and others:
                word = rng.choice(words)
                new = rng.choice(others)[0]
                lines[here] = lines[here][: word.start()] + new + lines[here][word.end() :]
            case 4:
                at = rng.randrange(len(lines[here]) + 1)
                lines[here] = lines[here][:at] + rng.choice("{}[]%.;,@!é\x7f") + lines[here][at:]
            case _ if words:
                word = rng.choice(words)
                lines[here] = lines[here][: word.start()] + lines[here][word.end() :]
            case _:
                pass
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(2000 if volume.is_full() else 200))
def test_changed_text(seed):
    text = changed(TEXTS[seed % len(TEXTS)], random.Random(seed))
    before = time.monotonic()
    said = ""
    try:
        run_ptx(text, 1, [np.zeros(128, np.uint32)], num_warps=2, max_blocks=20_000, max_seconds=2)
    except (CompilationError, InputError, InputTypeError) as error:
        said = str(error)
    assert "internal error" not in said
    assert time.monotonic() - before < 5
