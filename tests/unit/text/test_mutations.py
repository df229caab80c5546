"""Damaged text gets a clean diagnostic or is accepted: no other exception, no endless loop."""

import os
import random
import re
import signal

import pytest

pytest.importorskip("triton", reason="stock Triton is not installed")

from tests.corpus.generate import corpus
from tlx_xdsl import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.verify import verify_module

pytestmark = pytest.mark.backend

COUNT = 200 if os.environ.get("TLX_TEST_VOLUME") == "full" else 60
TOKEN = re.compile(r"[%#!@^]?[\w.$-]+|\S")
SECONDS = 10


def mutate(text: str, choice: random.Random) -> str:
    """`text` with one token dropped, doubled, or replaced by another token of it."""
    tokens = list(TOKEN.finditer(text))
    token = choice.choice(tokens)
    replacement = choice.choice(["", token[0] * 2, f"{token[0]} {token[0]}", choice.choice(tokens)[0], "-1", "0", "{"])
    return text[: token.start()] + replacement + text[token.end() :]


def too_slow(_signal, _frame):
    raise TimeoutError(f"no answer within {SECONDS} s")


def test_mutations():
    entries = [entry for level in ("ttir", "ttgir") for entry in corpus(level) if entry.text]
    choice = random.Random(20261120)
    outer = signal.signal(signal.SIGALRM, too_slow)
    refused: list[tuple[str, CompilationError]] = []
    try:
        for number in range(COUNT):
            entry = choice.choice(entries)
            text = mutate(entry.text, choice)
            signal.alarm(SECONDS)
            try:
                module = parse_module(text, filename=f"{entry.name}-{number}")
                verify_module(module)
                print_module(module)
            except CompilationError as error:
                refused.append((text, error))
            finally:
                signal.alarm(0)
    finally:
        signal.signal(signal.SIGALRM, outer)
    # Most damage is noticed; some, as in a name or a hint, is not damage.
    assert len(refused) > COUNT // 3
    for text, error in refused:
        assert error.message
        assert error.location is not None, text
