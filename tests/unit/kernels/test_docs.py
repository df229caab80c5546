"""Runs of the code on the pages about kernels to import, as it stands there."""

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(("page", "count"), [("kernels.md", 3), ("gemm.md", 1), ("comm.md", 1)])
def test_python_runs(page, count, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == count
    # A kernel's source has to be in a file.
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    runpy.run_path(str(program))
