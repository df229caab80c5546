"""What `docs/kernels.md` shows runs as it stands there."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "kernels.md"


def test_python_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    exec("\n".join(blocks), {})
