"""Run the device tests of the vendor's TTL (`test/python/test_*.py` of tt-lang) on our machines, as they are written.

    python -m tests.conformance.ttl_vendor SUITE_ROOT -n 2

The tests get our language as `ttl`, and tensors of PyTorch as those of `ttnn` (`ttl_vendor_plugin.py`). The suite is no
part of this project: SUITE_ROOT is a checkout of it. torch, pytest and pytest-xdist must be importable.

Prints the number of tests by outcome, then each failure with its last line.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = Path("test/python")
NOT_OURS = ("test_block_allocation.py",)
"""Files that test the vendor's own helpers on the host, not kernels."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns pytest's status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.ttl_vendor", description=__doc__.split("\n")[0])
    parser.add_argument("suite", type=Path, help="checkout of tt-lang")
    parser.add_argument("-n", "--processes", default="2")
    parser.add_argument("-k", "--only", default="", help="pytest's expression of names")
    parsed = parser.parse_args(arguments)
    folder = parsed.suite.resolve() / TESTS
    if not any(folder.glob("test_*.py")):
        print(f"error: no test file in {folder}", file=sys.stderr)
        return 1
    command = [sys.executable, "-m", "pytest", "-p", "tests.conformance.ttl_vendor_plugin", "-q", "--tb=line"]
    command += [f"--ignore={folder / name}" for name in NOT_OURS]
    command += [
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-rfE",
        "-n",
        parsed.processes,
        "-k",
        parsed.only,
        str(folder),
    ]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": path, "TTLANG_HAS_DEVICE": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
