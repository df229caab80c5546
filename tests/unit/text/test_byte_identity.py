"""Round trips with stock Triton: we read what it prints, and it prints what we print as the same text.

With T(x) = stock's parse and print, t a text that stock printed: T(ours(t)) == t, with locations; and once more after
the module was cloned, printed in generic form, re-read and printed, so that no source text can be replayed.
"""

import pytest

pytest.importorskip("triton", reason="stock Triton is not installed")

from tests.corpus.generate import corpus
from tests.corpus.stock import reprint_in_subprocess
from tests.versions import INSTALLED
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module

pytestmark = pytest.mark.backend

KNOWN_FAILURES: dict[str, str] = {}
"""Texts that are not identical, with the reason."""


@pytest.fixture(scope="module")
def profile():
    return profile_for(INSTALLED)


def texts(level):
    return {
        f"{entry.name}.{entry.level}.{entry.arch}": entry.text
        for entry in corpus(level)
        if entry.skipped_reason is None
    }


@pytest.mark.parametrize("level", ["ttir", "ttgir"])
def test_the_corpus_is_reproduced(level, profile):
    originals = texts(level)
    assert len(originals) >= 40
    faults: dict[str, str] = {}
    direct: dict[str, str] = {}
    by_way_of_generic: dict[str, str] = {}
    for name, text in originals.items():
        try:
            module = parse_module(text, filename=name)
            verify_module(module)
            direct[name] = print_module(module, profile=profile)
            generic = print_module(module.clone(), generic=True)
            by_way_of_generic[name] = print_module(parse_module(generic, filename=name), profile=profile)
        except Exception as error:
            faults[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    for ours in (direct, by_way_of_generic):
        for name, answer in zip(ours, reprint_in_subprocess(list(ours.values())), strict=True):
            if answer.text != originals[name]:
                faults.setdefault(name, answer.error or "another text")
    assert set(faults) == {name for name in KNOWN_FAILURES if name in originals}, faults
