"""Pictures of rings, and a timeline to try, from what the clock predicts: `python -m docs.site.ring` writes them.

Stock Triton makes the final code of the kernels; no GPU is needed.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np

from tlx_xdsl import TensorDescriptor
from tlx_xdsl.timing.show.html import to_html
from tlx_xdsl.timing.show.picture import ring_picture
from tlx_xdsl.timing.timeline import Timeline

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"

_GEMM_CYCLES = 9_000.0
"""Cycles that pictures of the matrix product show: its first steps along K."""


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _shown(page: str, name: str) -> ModuleType:
    """Return the program that a page shows, by the name in its first line."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    file = Path(tempfile.mkdtemp()) / name
    file.write_text(next(block for block in blocks if block.startswith(f"# {name}\n")), encoding="utf-8")
    return _module(file)


def _gemm_timeline(stages: int, k: int) -> Timeline:
    """Return what the warp-specialised GEMM does for C of 4096 x 4096."""
    module = _module(ROOT / "examples" / "hopper_gemm_ws.py")
    a, b, c = (np.empty(shape, np.float16) for shape in ((4096, k), (k, 4096), (4096, 4096)))
    grid, arguments = module.launch_arguments(a, b, c)
    settings = module.TLX_COMPILE["matmul"]["constexprs"] | {"NUM_STAGES": stages}
    timeline: Timeline = module.matmul.timeline(grid, *arguments, **settings)
    for place in timeline.places:
        place.file = Path(place.file).relative_to(ROOT).as_posix()
    return replace(timeline, configuration=f"NUM_STAGES={stages}")


def gemm(stages: int) -> str:
    """Return the picture of the first steps of the warp-specialised GEMM, with so many slots."""
    timeline = _gemm_timeline(stages, 4096)
    names = {"default": "producer", "partition 0": "consumer 0", "partition 1": "consumer 1"}
    title = f"hopper_gemm_ws.py, NUM_STAGES={stages}: H200, predicted"
    return ring_picture(timeline, title, end=_GEMM_CYCLES, tasks=names)


def copies() -> str:
    """Return the picture of the ring of interpreter.md."""
    module = _shown("interpreter.md", "ring.py")
    settings = module.TLX_COMPILE["ring"]["constexprs"]
    src, dst = (
        TensorDescriptor.from_tensor(np.empty((64 * settings["TILES"], 64), np.float16), [64, 64]) for _ in range(2)
    )
    timeline: Timeline = module.ring.timeline((1,), src, dst, **settings)
    names = {"default": "loads", "partition 0": "stores"}
    return ring_picture(timeline, "ring.py, TILES=5, SLOTS=2: H200, predicted", tasks=names)


def pair() -> str:
    """Return the picture of the ring of clusters.md, that both CTAs of a cluster fill."""
    module = _shown("clusters.md", "shared_ring.py")
    settings = module.TLX_COMPILE["shared_ring"]["constexprs"]
    src, dst = (
        TensorDescriptor.from_tensor(np.empty((64 * settings["TILES"], 64 * columns), np.float16), [64, 64])
        for columns in (1, 2)
    )
    timeline: Timeline = module.shared_ring.timeline((2,), src, dst, **settings, cluster=(2, 1, 1))
    names = {"default": "loads", "partition 0": "stores"}
    return ring_picture(timeline, "shared_ring.py, TILES=6, SLOTS=2: H200, predicted", tasks=names)


PICTURES: dict[str, Callable[[], str]] = {
    "ring-2.svg": partial(gemm, 2),
    "ring-3.svg": partial(gemm, 3),
    "ring-copies.svg": copies,
    "ring-cluster.svg": pair,
}


EXAMPLE = "timeline-example.json"


def example() -> str:
    """Return the timelines of a short GEMM with two and three slots, as JSON in two lines."""
    return "".join(f"{_gemm_timeline(stages, 512).to_json(0)}\n" for stages in (2, 3))


def example_page() -> str:
    """Return the page of the timelines that are kept, for the site."""
    kept = (IMAGES / EXAMPLE).read_text(encoding="utf-8")
    return to_html(*map(Timeline.from_json, kept.splitlines()))


def main() -> int:
    """Write the files that the command line names, or all; returns the exit status."""
    made = {**PICTURES, EXAMPLE: example}
    for name in sys.argv[1:] or made:
        (IMAGES / name).write_text(made[name](), encoding="utf-8")
        print(IMAGES / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
