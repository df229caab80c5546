"""The public surface only grows: what `reference.json` lists is still there, under the same dotted names.

The file was written at commit c5e55fa. It lists the public names of `tlx_xdsl`, its languages, its kernels to import,
`tlx_xdsl.torch` and `tlx_xdsl.compat`, and what the reference pages of the site document, with signatures and the
members of classes; the options of the command lines; passes and their options; operations and attributes of the
dialects. More is fine; a removal, or a signature that refuses calls that were right, is a failure.

`python -m tests.unit.reference` writes the file anew, when a release may drop names.
"""

import pytest

from tests.unit import reference
from tests.unit.reference import accepts, members, resolve, signature

KEPT = reference.load()
MODULES = sorted({path.rpartition(".")[0] for path in KEPT["names"]})
NOT_EVERYWHERE = ("torch", "triton")
"""Packages that a name may need."""


@pytest.mark.parametrize("module", MODULES)
def test_names_are_still_there(module):
    for path, kept in KEPT["names"].items():
        if path.rpartition(".")[0] != module:
            continue
        try:
            value = resolve(path)
        except ModuleNotFoundError as error:
            if error.name in NOT_EVERYWHERE:
                pytest.skip(f"{error.name} is not installed")
            raise
        if (old := kept.get("signature")) is not None:
            new = signature(value)
            assert new is not None, f"{path} is no longer callable"
            assert accepts(new, old), f"{path}{new} was {path}{old}"
        lost = set(kept.get("members", ())) - set(members(value))
        assert not lost, f"{path} has lost {sorted(lost)}"


@pytest.mark.parametrize("module", KEPT["exports"])
def test_modules_still_export_their_names(module):
    """`from tlx_xdsl.language import *`, for one, gives what it gave; a topic's module has what it had."""
    found = resolve(module)
    exported = getattr(found, "__all__", vars(found)) if hasattr(found, "__path__") else vars(found)
    assert set(KEPT["exports"][module]) <= set(exported)


def test_options_are_still_accepted():
    now = dict(reference.command_lines())
    for command, kept in KEPT["commands"].items():
        assert command in now, f"`{command}` is gone"
        for option, choices in kept.items():
            assert option in now[command], f"`{command}` has lost {option}"
            assert not now[command][option] or set(choices) <= set(now[command][option]), f"`{command}` {option}"


def test_passes_are_still_known():
    now = reference.passes()
    for name, kept in KEPT["passes"].items():
        assert name in now, f"the pass {name} is gone"
        assert set(kept) <= set(now[name]), f"the pass {name} has lost options"


def test_operations_are_still_known():
    now = reference.dialects()
    for dialect, kept in KEPT["dialects"].items():
        assert set(kept) <= set(now[dialect]), dialect


@pytest.mark.parametrize(
    ("new", "old", "fits"),
    [
        ("(a, b)", "(a, b)", True),
        ("(a, b, c=1)", "(a, b)", True),
        ("(a, b, *, c=1)", "(a, b)", True),
        ("(a, b=2)", "(a, b)", True),
        ("(a, b=2)", "(a, *, b=2)", True),
        ("(a)", "(a, b)", False),
        ("(b, a)", "(a, b)", False),
        ("(a, b, c)", "(a, b)", False),
        ("(a, b=3)", "(a, b=2)", False),
        ("(a, *, b)", "(a, b)", False),
        ("(a, *, b)", "(a, *, b=Ellipsis)", False),
        ("(a)", "(a, **others)", False),
    ],
)
def test_what_a_signature_may_become(new, old, fits):
    assert accepts(new, old) is fits
