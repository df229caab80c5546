"""The reproducer of a launch that the CUDA driver has refused, or that a kernel has ended by a fault.

What memory holds can't be read after a fault, so tensors are random numbers of their shapes, strides and types.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from string import Template
from typing import Any

from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.grid import grid_of

from ..driver.host_values import is_descriptor
from .arrays import NoPython, Values
from .write import SCRIPT, copy_sources, environment, versions

_TEMPLATE = Path(__file__).with_name("launch_script.txt")


def write_launch(
    parent: str | Path,
    source: KernelSource,
    grid: Any,
    args: Sequence[Any],
    named: Mapping[str, Any],
    error: Exception,
) -> Path:
    """Write a reproducer into a folder of its own below `parent`; return its script."""
    names = [each.name for each in source.parameters]
    sizes = grid_of(grid, {**dict(zip(names, args, strict=False)), **named})
    said = " ".join(str(error).split())
    digest = hashlib.sha256(f"{said}{sizes}".encode()).hexdigest()[:8]
    folder = Path(parent) / f"{source.name}-launch-{digest}"
    for part in ("arguments", "source"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    copy_sources(folder / "source", Path(source.filename))
    values = Values(folder / "arguments")
    try:
        given = [*((None, value) for value in args), *named.items()]
        listed = [_python(values, names[at] if name is None else name, value) for at, (name, value) in enumerate(given)]
        parts = [text if name is None else f"{name}={text}" for (name, _), text in zip(given, listed, strict=True)]
        call = f"kernel[{sizes}](\n        {', '.join(parts)},\n    )"
    except NoPython as missing:
        values.notes.append(f"not complete: {missing}")
        call = f"raise NotImplementedError({str(missing)!r})"
    script = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        error=f"{type(error).__name__}: {said}".replace('"""', "'''").replace("\\", "\\\\"),
        kernel=source.name,
        file=Path(source.filename).name,
        notes="".join(f"{note}\n" for note in values.notes),
        versions=", ".join(f"{name} {version}" for name, version in versions().items()),
        call=call,
    )
    (folder / SCRIPT).write_text(script, encoding="utf-8")
    report = {
        "kernel": source.name, "file": source.filename, "step": "launch", "error": said, "kind": type(error).__name__,
        "grid": sizes, "versions": versions(), "environment": environment(),
    }  # fmt: skip
    (folder / "report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
    return folder / SCRIPT


def _python(values: Values, name: str, value: Any) -> str:
    if is_descriptor(value):
        parts = ", ".join(str(list(map(int, each))) for each in (value.shape, value.strides, value.block_shape))
        return f"TensorDescriptor({_python(values, name, value.base)}, {parts}, {getattr(value, 'padding', 'zero')!r})"
    if hasattr(value, "stride") and hasattr(value, "device"):
        shape, strides = tuple(map(int, value.shape)), tuple(map(int, value.stride()))
        elements = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        return (
            f"tensor({str(value.dtype).removeprefix('torch.')!r}, {elements if prod(shape) else 0}, {shape}, {strides})"
        )
    return values.python(name, value)
