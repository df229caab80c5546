"""The key of a kernel: what changes it, and what does not."""

from __future__ import annotations

import importlib.util
import itertools
import textwrap

import pytest

from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.fingerprint import kernel_fingerprint
from tlx_xdsl.runtime.jit import without_launching

HEAD = """
import enum
import math
import tlx_xdsl
import tlx_xdsl.language as tl
"""

BODY = """
SCALE: tl.constexpr = 2
LIMITS = (1, (2, 3))
UNUSED = 5

class Kind(enum.IntEnum):
    SMALL = 1
    LARGE = 2

class Shape:
    ROWS = 64
    def area(self):
        return self.ROWS

@tlx_xdsl.constexpr_function
def doubled(x):
    return 2 * x

def host_helper(x):
    return x + 1

@tlx_xdsl.jit
def inner(x):
    return x * SCALE

@tlx_xdsl.jit
def outer(x):
    return inner(x) + LIMITS[1][0]

@tlx_xdsl.jit
def kernel(x, n: tl.constexpr):
    y = tl.load(x) + math.pi + Shape.ROWS + Kind.LARGE
    tl.store(x, outer(y) + doubled(n) + host_helper(n))

@tlx_xdsl.jit
def recursive(x):
    return recursive(x)

@tlx_xdsl.jit
def elsewhere(x):
    return x
"""

counter = itertools.count()


@pytest.fixture
def fingerprint(tmp_path):
    """Gives the fingerprint of a kernel of a module with a text."""

    def of(body: str, name: str = "kernel"):
        path = tmp_path / f"kernels_{next(counter)}.py"
        path.write_text(HEAD + textwrap.dedent(body))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        with without_launching():
            spec.loader.exec_module(module)
        return kernel_fingerprint(source_of(getattr(module, name)))

    return of


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ math.pi", "+ math.e"),
        ("return x * SCALE", "return x + SCALE"),
        ("SCALE: tl.constexpr = 2", "SCALE: tl.constexpr = 3"),
        ("(1, (2, 3))", "(1, (4, 3))"),
        ("LARGE = 2", "LARGE = 3"),
        ("ROWS = 64", "ROWS = 32"),
        ("return 2 * x", "return 3 * x"),
        ("return x + 1", "return x + 2"),
        ("@tlx_xdsl.jit\ndef inner", "@tlx_xdsl.jit(noinline=True)\ndef inner"),
        # A line further down: it is in the debug information.
        ("@tlx_xdsl.jit\ndef outer", "\n@tlx_xdsl.jit\ndef outer"),
    ],
)
def test_what_a_kernel_reaches_changes_its_key(fingerprint, old, new):
    assert BODY.count(old) == 1
    assert fingerprint(BODY).digest != fingerprint(BODY.replace(old, new)).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("UNUSED = 5", "UNUSED = 6"),
        ("def elsewhere(x):\n    return x", "def elsewhere(x):\n    return x + 1"),
        ("@tlx_xdsl.jit\ndef kernel", "@tlx_xdsl.jit()\ndef kernel"),
    ],
)
def test_what_it_does_not_reach_leaves_its_key(fingerprint, old, new):
    assert BODY.count(old) == 1
    assert fingerprint(BODY).digest == fingerprint(BODY.replace(old, new)).digest


def test_a_kernel_that_calls_itself_has_a_key(fingerprint):
    assert fingerprint(BODY, "recursive").digest


def test_globals_that_may_change_are_remembered(fingerprint):
    values = {name: value for (name, _), (value, _) in fingerprint(BODY).global_values.items()}
    assert values == {"SCALE": 2, "LIMITS": (1, (2, 3)), "ROWS": 64}


def test_names_that_the_compiler_does_not_read_do_not_count(fingerprint):
    """Parameters, variables, decorators and defaults do not count: the last two run once."""
    body = """
    x, at, i, LATER, OPTION = {value}, {value}, {value}, 3, {value}
    @tlx_xdsl.jit(do_not_specialize=[OPTION])
    def kernel(x, n=LATER):
        at = tl.arange(0, 4)
        sizes = [i for i in (1, 2)]
        tl.store(x + at, n)
    LATER = {value}
    """
    one, other = (fingerprint(textwrap.dedent(body).replace("{value}", value)) for value in ("1", "2"))
    assert one.digest == other.digest
    assert not one.global_values


def test_defaults_count(fingerprint):
    body = """
    @tlx_xdsl.jit
    def helper(x, scale=tl.constexpr({value}), *, shift={value}):
        return x * scale + shift
    @tlx_xdsl.jit
    def kernel(x):
        tl.store(x, helper(tl.load(x)))
    SHIFT = {value}
    """
    one, other = (fingerprint(textwrap.dedent(body).replace("{value}", value)) for value in ("1", "2"))
    assert one.digest != other.digest


def test_objects_count_by_what_they_hold(fingerprint):
    body = """
    class Config:
        def __init__(self, tile):
            self.tile = tile
    config = Config({tile})
    @tlx_xdsl.jit
    def kernel(x):
        tl.store(x, config.tile)
    """
    one, same, other = (fingerprint(textwrap.dedent(body).replace("{tile}", text)) for text in ("1", "1", "2"))
    assert one.digest == same.digest != other.digest
