"""Bundles that were built without a GPU run on one, in a process without a compiler.

TLX_TEST_BUNDLES names the folder that `python -m tests.unit.runtime.bundle.bundles` wrote on another machine; without
it the bundles are built here.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tlx_xdsl.runtime.launch.cuda_driver import default_driver

ROOT = Path(__file__).parents[4]

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    given = os.environ.get("TLX_TEST_BUNDLES")
    if given:
        return Path(given).resolve()
    from tests.unit.runtime.bundle.bundles import write_bundles

    folder = tmp_path_factory.mktemp("bundles")
    write_bundles(folder)
    return folder


@pytest.fixture(scope="module")
def printed(bundles):
    """Return what the checks print, each in one process."""
    if default_driver().compute_capability() != (9, 0):
        pytest.skip("the bundles are for Hopper (sm_90a)")
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.runtime.bundle.launch_bundles", str(bundles)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("check", ["add", "transposed", "matmul", "another_target"])
def test_a_bundle_in_a_process_without_a_compiler(printed, check):
    assert f"{check}: passed\n" in printed


def test_the_c_launchers(bundles, printed):
    if not (bundles / "add.so").is_file():
        pytest.skip("there was no C compiler where the bundles were written")
    assert "c_launchers: passed\n" in printed
    assert "the_page_s_program: passed\n" in printed
