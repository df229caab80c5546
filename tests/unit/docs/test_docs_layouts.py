"""The pictures of layouts in the docs are those that `tlx explain` draws of the kernels of the page.

TLX_UPDATE_GOLDEN=1 writes them anew.
"""

import os
import re
from pathlib import Path

import pytest

from tlx_xdsl.tools.tlx import main

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "layouts.md").read_text(encoding="utf-8")
IMAGES = ROOT / "docs" / "images"
TRANSPOSE, PRODUCT = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:2]
PICTURES = {
    "layout-plain.svg": (TRANSPOSE, "transpose", []),
    "layout-swizzled.svg": (
        TRANSPOSE.replace("tlx.swizzled_shared_layout_encoding.make_default(2)", "tlx.swizzled_layout(5, 0, 5)"),
        "transpose",
        [],
    ),
    "layout-conversion.svg": (PRODUCT, "product", ["--layout", "acc"]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_is_drawn(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source, kernel, arguments = PICTURES[name]
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(source, encoding="utf-8")
    path = IMAGES / name if os.environ.get("TLX_UPDATE_GOLDEN") else tmp_path / name
    assert main(["explain", f"kernel.py:{kernel}", "--triton-version", "3.9", *arguments, "--svg", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == (IMAGES / name).read_text(encoding="utf-8")


def test_the_page_shows_each_picture_and_says_what_it_shows():
    assert re.findall(r"^!\[[^\]]{60,}\]\(images/(layout-[^)]*)\)$", PAGE, re.MULTILINE) == list(PICTURES)
    assert "bank 0: 32 words" in (IMAGES / "layout-plain.svg").read_text(encoding="utf-8")
    assert "bank 0: 1 word<" in (IMAGES / "layout-swizzled.svg").read_text(encoding="utf-8")
