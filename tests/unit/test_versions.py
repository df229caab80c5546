"""The supported versions of Triton are the same wherever they are listed."""

import re
from pathlib import Path

import pytest

from tests.versions import NEWEST, OLDEST, SUPPORTED, release
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
