"""The supported versions of Triton and xDSL are the same wherever they are listed."""

import re
from pathlib import Path

import pytest

from tests.versions import NEWEST, OLDEST, SUPPORTED, XDSL, release
from tlx_xdsl.text.profiles import PROFILES

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]


def test_each_supported_version_has_a_profile_of_its_own():
    assert [release(version) for version in SUPPORTED] == [profile.version for profile in PROFILES]


def test_make_and_ci_run_on_the_supported_versions():
    makefile, ci = (ROOT / "Makefile").read_text(), (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^TRITON_VERSIONS \?= (.*)$", makefile, re.M)[1].split() == list(SUPPORTED)
    assert re.search(r"^DEFAULT_TRITON := (.*)$", makefile, re.M)[1] == NEWEST
    assert re.search(r"^oldest_triton=(.*)$", ci, re.M)[1] == OLDEST


def test_the_package_may_be_installed_with_each_of_them():
    (pin,) = set(re.findall(r'"triton(>=[^";]*)', (ROOT / "pyproject.toml").read_text()))
    major, newest = release(NEWEST)
    assert pin.strip() == f">={'.'.join(map(str, release(OLDEST)))},<{major}.{newest + 1}"


def test_make_and_ci_run_on_the_oldest_and_the_newest_xdsl():
    makefile, ci = (ROOT / "Makefile").read_text(), (ROOT / ".ci" / "run").read_text()
    assert re.search(r"^DEFAULT_XDSL := (.*)$", makefile, re.M)[1] == XDSL[-1]
    assert re.search(r"^XDSL_VERSION \?= (.*)$", makefile, re.M)[1] == XDSL[0]
    assert re.search(r"^oldest_xdsl=(.*)$", ci, re.M)[1] == XDSL[0]
    assert f"and xDSL {XDSL[-1]}" in ci


def test_the_package_and_its_window_may_be_installed_with_each_xdsl():
    pins = re.findall(r'"xdsl(?:\[gui\])?(>=[^"]*)"', (ROOT / "pyproject.toml").read_text())
    major, newest = release(XDSL[-1])
    assert pins == 2 * [f">={'.'.join(map(str, release(XDSL[0])))},<{major}.{newest + 1}"]
    assert f"`xdsl{pins[0]}`" in (ROOT / "docs" / "versions.md").read_text()
