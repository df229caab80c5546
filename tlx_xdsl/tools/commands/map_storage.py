"""The work of `tlx map`: which memory every buffer of a kernel has."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.storage_budget import check_budget
from tlx_xdsl.analysis.storage_map import StorageMap
from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.runtime.show.storage_map_svg import map_as_svg
from tlx_xdsl.targets import target_named
from tlx_xdsl.tools.commands.storage_map_text import map_as_json, map_as_text
from tlx_xdsl.tools.files import write_text
from tlx_xdsl.tools.launch_line.modules import MLIR_SUFFIXES, frontend_of, load_ir
from tlx_xdsl.tools.launch_line.request import read


def run(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel, and, when the map is written, for one that can't fit its target.
    """
    maps = storage_maps(*_module(args), strict=args.strict)
    if not maps:
        raise CompilationError("nothing here allocates shared or tensor memory", SourceLocation(args.kernel, 0))
    text = _render(maps, args.format)
    write_text(text + "\n", args.output)
    for each in maps:
        check_budget(each)


def _module(args: argparse.Namespace) -> tuple[ModuleOp, int | None]:
    """The module to map, and the compute capability that the command line asks for."""
    if Path(args.kernel).suffix in MLIR_SUFFIXES:
        return load_ir(args.kernel), None if args.target is None else target_named(args.target).capability
    request = read(args)
    return frontend_of(request), target_named(request.specialization.target).capability


def _render(maps: list[StorageMap], format_: str) -> str:
    if format_ == "json":
        return json.dumps([map_as_json(each) for each in maps], indent=2)
    if format_ == "text":
        return "\n\n".join(map(map_as_text, maps))
    if len(maps) > 1:
        names = ", ".join(each.kernel for each in maps)
        raise CompilationError(f"--format svg: a picture shows one function, this module has {names}")
    return map_as_svg(maps[0])
