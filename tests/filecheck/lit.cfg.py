"""Configuration of the lit tests: `make test-filecheck`, or `.venv/bin/lit -v tests/filecheck/<directory>`.

A test is an .mlir or a .py file with `RUN:` lines; helper files go into directories called `Inputs`.
In RUN lines:

- `tlx-opt`, `tlx` and `filecheck` are those of the environment that lit itself runs in;
- `not` is built into lit;
- `%python` is that environment's Python;
- `TLX_ROUNDTRIP` prints the test in generic form, reads that back and checks what it is then printed as;
- `REQUIRES: triton` (or `triton-3.9`) is met when stock Triton (of that version) is installed.
"""

import os
import sys
from importlib import metadata
from pathlib import Path

import lit.formats
from lit.LitConfig import LitConfig
from lit.TestingConfig import TestingConfig

# lit puts these two into the namespace of this file.
config: TestingConfig = globals()["config"]
lit_config: LitConfig = globals()["lit_config"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

config.name = "tlx_xdsl"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".py"]
config.excludes = ["lit.cfg.py", "Inputs"]
config.test_source_root = str(HERE)
config.test_exec_root = str(ROOT / "build" / "filecheck")

# sys.prefix, because the Python of a virtual environment is a link to somewhere else.
binaries = Path(sys.prefix) / "bin"
config.environment["PATH"] = os.pathsep.join([str(binaries), os.environ["PATH"]])
# Only these and a few that lit chooses reach the tests.
config.environment.update({name: value for name, value in os.environ.items() if name.startswith("TLX_")})
# PYTHONPATH names another checkout than the installed one: without it the tests of a work tree would run that.
config.environment.update({name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ})

config.substitutions += [
    ("%python", sys.executable),
    ("TLX_ROUNDTRIP", "tlx-opt --print-op-generic %s | tlx-opt | filecheck %s"),
]

try:
    major, minor, *_ = metadata.version("triton").split(".")
except metadata.PackageNotFoundError:
    pass
else:
    config.available_features |= {"triton", f"triton-{major}.{minor}"}

# Seconds. lit needs psutil to end a test, which the extra `test` installs; without it there is no limit.
if lit_config.maxIndividualTestTimeIsSupported[0]:
    config.maxIndividualTestTime = 60
