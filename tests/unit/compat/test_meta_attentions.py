"""Meta's attentions for Blackwell, unmodified, from their final PTX, where a checkout of Meta's Triton is at hand.

The tutorials are not part of this project: TLX_META_TRITON names the folder of a checkout.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = os.environ.get("TLX_META_TRITON")

pytestmark = [
    pytest.mark.backend,
    pytest.mark.skipif(FOLDER is None, reason="TLX_META_TRITON names no checkout of Meta's Triton"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="the tutorials need torch"),
]

CASES = [
    "fa_ws", "fa_ws_persistent", "fa_ws_pipelined", "fa_clc", "fa_clc_causal", "fa_pipelined_persistent",
    "fa_pipelined_persistent_causal",
]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_final_ptx(name):
    command = [sys.executable, "-m", "tests.conformance.tutorials", FOLDER, "--case", f"blackwell_{name}", "--ptx"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["outcome"] == "right", said["reason"]
    # One rounding of the output, and of the probabilities.
    assert max(said["errors"]) < 2e-3
