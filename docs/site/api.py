"""The reference of the Python interface: the names of `tlx_xdsl`, and what they give back."""

from __future__ import annotations

from collections.abc import Iterator

import tlx_xdsl
from docs.site.docstrings import as_markdown, doc_of
from tlx_xdsl import runtime

BEYOND = {
    "Compiling and launching": (
        "tlx_xdsl.runtime.jit.triton_kernel.TritonKernel",
        "tlx_xdsl.runtime.jit.bound.BoundLaunch",
        "tlx_xdsl.runtime.build.build",
        "tlx_xdsl.runtime.driver.compilation.CompiledText",
        "tlx_xdsl.runtime.driver.compilation.Specialization",
        "tlx_xdsl.backend.compile_ttgir",
        "tlx_xdsl.backend.BackendOptions",
        "tlx_xdsl.backend.BackendResult",
    ),
    "The interpreter's options, and what it raises": (
        "tlx_xdsl.runtime.simulate.options.Options",
        "tlx_xdsl.interpreter.faults.Fault",
        "tlx_xdsl.interpreter.faults.Race",
        "tlx_xdsl.interpreter.faults.Deadlock",
    ),
    "Timelines of the clock": (
        *(f"tlx_xdsl.timing.timeline.{name}" for name in ("Timeline", "Track", "Span", "Place")),
        "tlx_xdsl.timing.show.html.to_html",
        "tlx_xdsl.timing.show.html.write_html",
        "tlx_xdsl.timing.show.text.to_text",
        "tlx_xdsl.timing.show.perfetto.to_perfetto",
        "tlx_xdsl.timing.show.perfetto.write_perfetto",
        "tlx_xdsl.timing.show.picture.ring_picture",
    ),
    "Scripts for Meta's Triton": tuple(f"tlx_xdsl.compat.{name}" for name in ("install", "installed", "uninstall")),
    "torch": ("tlx_xdsl.torch.op",),
    "Kernels to import": (
        "tlx_xdsl.kernels.gemm.gemm",
        "tlx_xdsl.kernels.gemm.gemm_launch",
        "tlx_xdsl.kernels.attention.attention_forward",
        "tlx_xdsl.kernels.attention.attention_launch",
        "tlx_xdsl.kernels.attention.backward.attention_backward",
        "tlx_xdsl.kernels.attention.backward.attention_backward_launch",
        "tlx_xdsl.kernels.rows.softmax.softmax",
        "tlx_xdsl.kernels.rows.softmax.softmax_launch",
        "tlx_xdsl.kernels.rows.norm.layer_norm",
        "tlx_xdsl.kernels.rows.norm.layer_norm_launch",
    ),
}
"""The packages worth knowing below, and the modules beside the front."""


def public_names() -> list[str]:
    """The names that `import tlx_xdsl` gives, in the order of the page."""
    return sorted((name for name in tlx_xdsl.__all__ if not name.startswith("_")), key=str.lower)


def home_of(name: str) -> str:
    """The dotted name under which an object of `tlx_xdsl` is defined, or where it comes from.

    Nothing is imported: some of them need Triton.
    """
    return f"{tlx_xdsl._HOMES.get(name, 'tlx_xdsl.errors')}.{name}"


def runtime_names() -> dict[str, str]:
    """The names of `tlx_xdsl.runtime` that are not those of `tlx_xdsl`, and where each is defined."""
    homes: dict[str, str] = dict(runtime._HOMES)
    names = sorted(set(runtime.__all__) - set(tlx_xdsl.__all__), key=str.lower)
    return {name: f"{homes.get(name) or getattr(runtime, name).__module__}.{name}" for name in names}


def page() -> str:
    """The page, in Markdown."""
    return "\n".join(_sections())


def _sections() -> Iterator[str]:
    yield "# Python\n"
    yield "`import tlx_xdsl` works without Triton, torch or a GPU; each name is loaded when it is first used.\n"
    yield "## `tlx_xdsl`\n"
    for name in public_names():
        yield _entry(home_of(name), f"tlx_xdsl.{name}")
    yield f"## `tlx_xdsl.runtime`\n\n{as_markdown(doc_of(runtime))}\n"
    for name, path in runtime_names().items():
        yield _entry(path, f"tlx_xdsl.runtime.{name}")
    for title, paths in BEYOND.items():
        yield f"## {title}\n"
        for path in paths:
            yield _entry(path, path)


def _entry(path: str, shown: str) -> str:
    options = {"heading": f'"{shown}"', "toc_label": f'"{shown.rpartition(".")[2]}"', "heading_level": "3"}
    lines = [f"::: {path}", "    options:", *(f"      {name}: {value}" for name, value in options.items())]
    return "\n".join(lines) + "\n"
