"""Versions of Triton: the supported ones, and the installed one; of xDSL the supported ones.

A test that is about one version asks `release` and the constants here; which operations and spellings a version has
is the business of `tlx_xdsl.text.profiles`. For a skip, use the decorators: their reason names both versions.
"""

import pytest

from tlx_xdsl.backend import installed_triton_version
from tlx_xdsl.text.profiles import parse_version

SUPPORTED = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")
"""One release of each supported minor version, oldest first: what `make test-all` runs on."""
OLDEST, NEWEST = SUPPORTED[0], SUPPORTED[-1]
"""NEWEST is also the reference: its language is ours, and its operations are those of the dialects."""

XDSL = ("0.74.0", "0.75.0")
"""One release of each supported minor version of xDSL, oldest first."""

INSTALLED = installed_triton_version()
"""The installed release as text, such as "3.9.0"; None if there is none."""


def release(version: str) -> tuple[int, int]:
    """Return major and minor number, which can be compared: "3.9.0" is (3, 9)."""
    return parse_version(version)


RELEASE = release(INSTALLED) if INSTALLED is not None else (99, 0)
"""Major and minor number of the installed release; without one a number above all: no version then forbids a test."""


def is_installed(version: str) -> bool:
    """Check that the installed release is of the same minor version as this one."""
    return INSTALLED is not None and release(version) == RELEASE


def why_not_installed(version: str, subject: str) -> str | None:
    """Return why a test of this `subject` cannot run, which is one of a minor version; None if it can."""
    if is_installed(version):
        return None
    name = ".".join(map(str, release(version)))
    return f"{subject} Triton {name}, not {INSTALLED or 'installed'}"


def only_on(version: str, subject: str) -> pytest.MarkDecorator:
    """Skip a test unless this minor version is installed; `subject` begins the reason: "the language is that of"."""
    reason = why_not_installed(version, subject)
    return pytest.mark.skipif(reason is not None, reason=reason or "")
