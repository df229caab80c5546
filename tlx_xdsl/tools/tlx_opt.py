"""`tlx-opt`: xdsl-opt with our dialects, our passes and located one-line errors.

    tlx-opt FILE.mlir -p pass1,pass2{option=1}

Reads `.mlir`, `.ttir` and `.ttgir` files and standard input, in any supported Triton version's spelling.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import IO, ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import DiagnosticException, ParseError, PassFailedException
from xdsl.xdsl_opt_main import xDSLOptMain

from tlx_xdsl.dialects.registry import ALL as ALL_DIALECTS
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import parse_error
from tlx_xdsl.text.parser import Parser
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import NEUTRAL, PROFILES, profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.registry import ALL_PASSES
from tlx_xdsl.version import __version__

_INPUTS = ("mlir", "ttir", "ttgir")
"""File name extensions that hold MLIR text."""


class TlxOptMain(xDSLOptMain):
    """xDSL's driver over our registries."""

    version_format: ClassVar[str] = f"tlx-opt {__version__}, built on xDSL {{xdsl_version}}"

    def __init__(self, args: Sequence[str] | None = None):
        super().__init__("Run tlx_xdsl passes over MLIR text", args)
        try:
            self.profile = profile_for(self.args.triton_version)
        except ValueError as error:
            raise CompilationError(f"--triton-version: {error}") from error

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """Add our arguments to xDSL's."""
        super().register_all_arguments(arg_parser)
        arg_parser.add_argument(
            "--triton-version",
            default=NEUTRAL.name,
            metavar="VERSION",
            help=f"Triton version whose spelling is written: {', '.join(p.name for p in PROFILES)}",
        )

    def register_all_dialects(self) -> None:
        """Upstream's dialects, with ours in the place of those that we replace."""
        from xdsl.dialects import get_all_dialects

        for name, load in {**get_all_dialects(), **ALL_DIALECTS}.items():
            self.ctx.register_dialect(name, load)

    def register_all_passes(self) -> None:
        """Upstream's passes and ours."""
        from xdsl.transforms import get_all_passes

        for name, load in {**get_all_passes(), **ALL_PASSES}.items():
            self.register_pass(name, load)

    def register_all_frontends(self) -> None:
        """Read every extension with our parser."""

        def parse(stream: IO[bytes]) -> ModuleOp:
            return Parser(self.ctx, stream.read().decode(), self.get_input_name()).parse_module(
                not self.args.no_implicit_module
            )

        for extension in _INPUTS:
            self.available_frontends[extension] = parse

    def setup_pipeline(self) -> None:
        """Build the pipeline, verifying with our verifier in front of the first pass and behind every one."""

        def between(previous: ModulePass | None, module: ModuleOp, following: ModulePass | None) -> None:
            if not self.args.disable_verify:
                verify_module(module)
            if previous is not None and following is not None and self.args.print_between_passes:
                print(f"IR after {previous.name}:\n{self._text(module)}\n")

        self.pipeline = PassPipeline.parse_spec(self.available_passes, self.args.passes, between)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """The module as MLIR text by our printer, or as another target by xDSL's."""
        if self.args.target != "mlir" or self.args.print_no_properties:
            return super().output_resulting_program(prog)
        return self._text(prog)

    def _text(self, module: ModuleOp) -> str:
        return print_module(
            module,
            profile=self.profile,
            locations=self.args.print_debuginfo,
            generic=self.args.print_op_generic,
        )


def as_compilation_error(error: Exception) -> CompilationError:
    """Any error of a run in the one form that command lines print."""
    if isinstance(error, CompilationError):
        return error
    if isinstance(error, ParseError):
        return parse_error(error)
    if isinstance(error, PassFailedException | DiagnosticException | ValueError | OSError):
        lines = str(error).strip().splitlines()
        return CompilationError(lines[-1] if lines else type(error).__name__)
    raise error


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, 1 for an error in the input."""
    try:
        TlxOptMain(args).run()
    except BrokenPipeError:
        # The reader has gone, as in `tlx-opt ... | head`; nothing is left to say to it.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        print(as_compilation_error(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
