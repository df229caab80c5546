"""The kernels in docs/warp-specialize.md: plain ones of tests/gallery/plain, and the sources that are written for them.

python -m benchmarks.compile.specialised        (writes both into the page)
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from tests.gallery.plain.families import FAMILIES
from tlx_xdsl.runtime.driver.defaults import kernel_defaults
from tlx_xdsl.runtime.specialize.specialized import warp_specialized

PAGE = Path(__file__).resolve().parents[2] / "docs" / "warp-specialize.md"
SHOWN = {"matmul": {}, "attention": {"HEAD_DIM": 64}}
"""The kernels that the page shows, with the constants that are other than in their files."""


def shown(name: str) -> tuple[str, str]:
    """Return the text of a plain kernel, and that of the file with the specialised one from its kernel on."""
    kernel = FAMILIES[name].kernel
    python = sys.modules[kernel.source.fn.__module__]
    table = kernel_defaults(str(python.__file__), vars(python), name)
    made = warp_specialized(kernel, table.signature, {**table.constexprs, **SHOWN[name]})
    if made.refused is not None:
        raise made.refused
    specialised = re.search(rf"^@tlx_xdsl\.jit\ndef {name}\(.*?(?=^TLX_COMPILE)", made.source, re.DOTALL | re.MULTILINE)
    assert specialised is not None, "a file has a kernel, and after it the table of its types"
    return inspect.getsource(kernel.source.fn), specialised[0]


def updated(page: str) -> str:
    """Return the page with the kernels as they are now."""
    for name in SHOWN:
        for mark, text in zip((f"plain {name}", f"specialised {name}"), shown(name), strict=True):
            block = f"<!-- {mark} -->\n```python\n{text.rstrip()}\n```\n"
            page, count = re.subn(
                rf"^<!-- {mark} -->\n```python\n.*?^```\n",
                lambda _, block=block: block,
                page,
                flags=re.DOTALL | re.MULTILINE,
            )
            assert count == 1, f"the page shows the {mark} once"
    return page


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
