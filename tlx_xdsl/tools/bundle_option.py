"""The option `--bundle` of `tlx compile`."""

from __future__ import annotations

import argparse
from pathlib import Path

from tlx_xdsl.backend import BackendResult
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.source import KernelSource
from tlx_xdsl.runtime.bundle.manifest import MANIFEST
from tlx_xdsl.runtime.bundle.write import LaunchFlags, check_launchable, check_name, write_compiled
from tlx_xdsl.runtime.compilation import CompiledText, Specialization


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that are about a bundle."""
    parser.add_argument(
        "--bundle",
        metavar="DIR",
        help="write a folder into DIR that tlx_xdsl.runtime.load, or its own C code, launches without a compiler",
    )
    parser.add_argument("--bundle-name", metavar="NAME", help="name of that folder and of the C functions (KERNEL)")
    parser.add_argument(
        "--launch-pdl", action="store_true", help="the bundle's launches may start before their predecessor has ended"
    )
    parser.add_argument(
        "--launch-cooperative-grid", action="store_true", help="all CTAs of the bundle's launches are resident at once"
    )


def stages(args: argparse.Namespace) -> tuple[str, ...]:
    """The stages that the bundle needs; none where none is asked for."""
    return () if args.bundle is None else ("ptx", "cubin")


def check(args: argparse.Namespace, source: KernelSource, specialization: Specialization) -> None:
    """Refuse, before the compile, what can't be bundled.

    Raises CompilationError.
    """
    if args.bundle is None:
        _refuse_without_bundle(args)
        return
    if args.output == "-":
        raise CompilationError("--output -: text is printed, while --bundle writes files: ask for one of the two")
    check_name(args.bundle_name or source.name)
    check_launchable(source, specialization)


def _refuse_without_bundle(args: argparse.Namespace) -> None:
    """Refuse options that only a bundle has a use for."""
    for option in ("bundle_name", "launch_pdl", "launch_cooperative_grid"):
        if getattr(args, option):
            raise CompilationError(f"--{option.replace('_', '-')}: there is no bundle that it is for, add --bundle DIR")


def write(
    args: argparse.Namespace,
    source: KernelSource,
    specialization: Specialization,
    text: CompiledText,
    result: BackendResult,
    num_stages: int,
) -> list[Path]:
    """Write the bundle that the command line asks for, if any; returns its files, the manifest last.

    Raises CompilationError for what can't be bundled.
    """
    if args.bundle is None:
        return []
    flags = LaunchFlags(args.launch_pdl, args.launch_cooperative_grid)
    folder = write_compiled(
        args.bundle, source, specialization, text, result, name=args.bundle_name, num_stages=num_stages, flags=flags
    )
    return [*sorted(folder.glob(f"{folder.name}.*")), folder / MANIFEST]
