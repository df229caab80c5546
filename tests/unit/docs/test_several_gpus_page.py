"""docs/several-gpus.md: its kernel runs as written, and without what the page says that it needs it is refused."""

# covers: tlx.ranks

import runpy
from pathlib import Path

import pytest

from tests.unit.docs.documents import ROOT
from tlx_xdsl.errors import CompilationError

TEXT = (ROOT / "docs/several-gpus.md").read_text(encoding="utf-8")
KERNEL = TEXT.partition("```python\n")[2].partition("```")[0]
READY = "        tlx.signal(tlx.peer(pads, r), 1)\n"


def run(folder: Path, text: str) -> None:
    path = folder / "push.py"
    path.write_text(text, encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")


def test_the_kernel_runs(tmp_path):
    run(tmp_path, KERNEL)


@pytest.mark.parametrize(
    ("line", "other", "message"),
    [
        ("wait(0, read=False)", "wait(0)", "nothing orders it after the TMA store"),
        ("pads, r), 0)", "pads, r), 0, scope='gpu')", "nothing orders it after"),
        ("0, world * epoch)", "0, world * epoch + 1)", "waits until signal 0 of 'pads of rank 0' is at least"),
        (READY, READY.replace("1)", "1, value=0)"), "waits until signal 1 of 'pads of rank"),
    ],
)
def test_each_step_is_needed(tmp_path, line, other, message):
    assert line in KERNEL
    with pytest.raises(CompilationError, match=message.replace("(", r"\(")):
        run(tmp_path, KERNEL.replace(line, other))
