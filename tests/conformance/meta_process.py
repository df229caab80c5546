"""The changes to a process in which Meta's tests run: the drop-in, what stands for a GPU, and modules of Meta's."""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

OPTIONS: dict[str, Any] = json.loads(os.environ.get("TLX_META_TESTS", "{}"))

_IS_CHILD = "TLX_META_TESTS_CHILD"


def begin() -> None:
    """Change this process, and those that it starts."""
    import tlx_xdsl.compat

    os.environ[_IS_CHILD] = "1"
    gating = types.ModuleType("triton.runtime.fbcode_gating")
    gating.is_fbcode_dependant = lambda: False  # type: ignore[attr-defined]
    sys.modules[gating.__name__] = gating
    tlx_xdsl.compat.install(mode=OPTIONS["mode"], target=OPTIONS["target"])
    if OPTIONS["mode"] != "launch":
        # For the rest of the process.
        tlx_xdsl.compat.torch_without_gpu(OPTIONS["target"]).__enter__()
    from tests.conformance.tutorials import add_package

    add_package(Path(OPTIONS["tutorials"]))


def begin_child() -> None:
    """Change this process if a test has started it."""
    if os.environ.get(_IS_CHILD):
        begin()
