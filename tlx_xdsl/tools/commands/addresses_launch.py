"""The work of `tlx addresses`: where each program of a launch touches memory."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.addresses import DescriptorFacts, LaunchFacts, analyse_program_addresses
from tlx_xdsl.addresses.coverage.coverage import Coverage
from tlx_xdsl.addresses.coverage.disjointness import proofs
from tlx_xdsl.addresses.coverage.launch import Launch, argument_names
from tlx_xdsl.addresses.coverage.walk import TooLong
from tlx_xdsl.addresses.report import report_lines
from tlx_xdsl.addresses.wrapping import wraps
from tlx_xdsl.dialects import tt
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.code import Function
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.runtime.driver.defaults import KernelDefaults
from tlx_xdsl.runtime.show.coverage_svg import coverage_as_svg
from tlx_xdsl.text.diagnostics import error_at

from ..documents import document
from ..launch_line.expressions import evaluate
from ..launch_line.launches import fitting_value, grid_of
from ..launch_line.modules import MLIR_SUFFIXES, frontend_of, hint_of_type, load_ir
from ..launch_line.request import Said, read, said_of
from ..output import print_document, write_text
from .addresses_text import Findings, findings_as_json, findings_as_text, warn


def run(args: argparse.Namespace) -> None:
    """Carry the command out.

    Raises CompilationError for a fault in the kernel, and in what the command line says about it.
    """
    if args.grid is None and (args.svg is not None or args.wave is not None):
        raise CompilationError("--svg: a picture shows the programs of a grid: give --grid")
    if args.wave is not None and args.wave < 1:
        raise CompilationError(f"--wave: expected a number of programs, found {args.wave}")
    said, module, function, constants = _kernel(args)
    launch = launch_of(said, function, constants)
    findings = findings_of(module, function, launch, args)
    if args.svg is not None:
        assert findings.coverage is not None
        write_text(coverage_as_svg(findings.coverage, wave=args.wave) + "\n", args.svg)
    print_document(
        document("tlx addresses", findings_as_json(findings)) if args.format == "json" else findings_as_text(findings)
    )
    warn(findings)


def _kernel(args: argparse.Namespace) -> tuple[Said, ModuleOp, tt.FuncOp, Mapping[str, Any]]:
    """Return what the command line says, the module, the kernel in it, and its compile-time arguments."""
    path, _, name = args.kernel.partition(":")
    if Path(path).suffix in MLIR_SUFFIXES:
        module = load_ir(path)
        said = said_of(args, KernelDefaults())
        return said, module, kernel_function(kernel_of(module, name or None)), {}
    request = read(args)
    module, specialization = frontend_of(request)
    return request, module, kernel_function(kernel_of(module, None)), specialization.constexprs


def kernel_function(function: Function) -> tt.FuncOp:
    """The function as one of Triton's. Raises CompilationError for another kind."""
    if not isinstance(function, tt.FuncOp):
        raise CompilationError(f"'{function.sym_name.data}' is a '{function.name}': it takes a 'tt.func'")
    return function


def launch_of(said: Said, function: tt.FuncOp, constants: Mapping[str, Any]) -> Launch:
    """Return what the command line says of a launch; a grid of one program where it does not say."""
    types = {name: argument.type for argument, name in argument_names(function).items()}
    numbers: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    sizes = said.sizes
    for name, text in said.lists["arg"].items():
        if name in constants:
            continue
        _check_name("--arg", name, types)
        hint = hint_of_type(types[name])
        value = fitting_value(name, text, hint, 0, sizes, "none")
        if isinstance(types[name], tt.PointerType | tt.TensorDescType):
            shapes[name] = tuple(map(int, value.shape))
        elif isinstance(value, int):
            numbers[name] = value
    numbers |= {name: size for name, size in sizes.items() if name in types and name not in numbers}
    constants = {**sizes, **constants}
    for name, text in said.lists["shape"].items():
        _check_name("--shape", name, types)
        shapes[name] = _sizes(name, text, types[name], {**constants, **numbers})
    return Launch(grid_of(said, {**constants, **numbers}, least=1), numbers, shapes)


def _check_name(option: str, name: str, types: Mapping[str, Any]) -> None:
    if name not in types:
        have = ", ".join(types) or "none"
        raise CompilationError(f"{option}: there is no argument '{name}', the arguments are {have}")


def _sizes(name: str, text: str, type_: Any, names: Mapping[str, Any]) -> tuple[int, ...]:
    if not isinstance(type_, tt.PointerType | tt.TensorDescType):
        raise CompilationError(f"--shape: '{name}' is a number: give it as --arg {name}=NUMBER")
    found = evaluate(f"--shape {name}", text, names)
    sizes = cast(tuple[Any, ...], found if isinstance(found, tuple) else (found,))
    if not sizes or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise CompilationError(f"--shape {name}: expected sizes such as 1024,512, found '{text}'")
    if isinstance(type_, tt.TensorDescType) and len(type_.shape) != len(sizes):
        raise CompilationError(f"--shape {name}: the descriptor has {len(type_.shape)} dimensions, found '{text}'")
    return tuple(int(size) for size in sizes)


def findings_of(module: ModuleOp, function: tt.FuncOp, launch: Launch, args: argparse.Namespace) -> Findings:
    """Return what is known of the addresses of a launch, or of all launches where there is no `args.grid`."""
    types = {name: argument.type for argument, name in argument_names(function).items()}
    described = {
        name: DescriptorFacts(shape, tuple(prod(shape[dim + 1 :]) for dim in range(len(shape))))
        for name, shape in launch.shapes.items()
        if isinstance(types[name], tt.TensorDescType)
    }
    grid = None if args.grid is None else launch.grid
    facts = LaunchFacts(grid, {**launch.numbers, **described})
    result = analyse_program_addresses(module, facts)
    accesses = tuple(each for each in result.accesses if each.function is function)
    values = report_lines(replace(result, accesses=accesses))
    coverage = None
    if grid is not None:
        try:
            coverage = Coverage(module, function, launch)
        except TooLong as error:
            notes = ("shorter loops, as of smaller arrays, may do; without --grid nothing is run",)
            raise error_at(function, f"the addresses of this launch can't be computed: {error}", notes) from error
    wrapping = [] if grid is None else [e for e in wraps(module, facts) if e.happens and e.access.function is function]
    return Findings(function, accesses, launch, coverage, proofs(module, accesses), values, wrapping)
