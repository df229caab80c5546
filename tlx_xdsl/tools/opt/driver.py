"""The work of `tlx-opt`: read, run passes, print, chunk by chunk."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.xdsl_opt_main import xDSLOptMain

from tlx_xdsl.dialects.registry import all_dialects
from tlx_xdsl.errors import CompilationError, InputError, SourceLocation
from tlx_xdsl.text.diagnostics import collected_diagnostics, with_place
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import MLIR_PROFILES, PROFILES, MlirProfile, Profile, mlir_profile, profile_for
from tlx_xdsl.text.verify import Verifier
from tlx_xdsl.transforms.registry import OVERRIDES, all_passes
from tlx_xdsl.version import __version__

from ..failures import as_compilation_error
from ..output import say
from ..parser import add_completion_argument
from .pass_arguments import collect_passes, pipeline, unknown_argument
from .verify_diagnostics import expectations, mismatches, reported

_INPUTS = ("mlir", "ttir", "ttgir")
"""File name extensions that hold MLIR text."""
_WRITES_IR = ("tlx compile FILE.py:KERNEL --emit ttir,ttgir writes the IR of a kernel",)
_SEPARATOR = re.compile(r"^// -----.*\n", re.MULTILINE)


@dataclass(frozen=True)
class Chunk:
    """A part of the input that is processed on its own."""

    text: str
    first_line: int
    """Line of the file that the text begins with."""


class TlxOptMain(xDSLOptMain):
    """xDSL's driver over our registries."""

    version_format: ClassVar[str] = f"tlx-opt {__version__}, built on xDSL {{xdsl_version}}"

    def __init__(self, args: Sequence[str] | None = None):
        self._given = list(sys.argv[1:] if args is None else args)
        super().__init__("Run tlx_xdsl passes over MLIR text", self._given)
        try:
            version = self.args.triton_version
            self.profile: Profile | MlirProfile | None = None if version is None else profile_for(version)
        except InputError as error:
            raise CompilationError(f"--triton-version: {error}") from error
        if (release := self.args.mlir_version) is not None:
            if version is not None:
                raise CompilationError("--mlir-version: the text is for a version of Triton already")
            try:
                self.profile = mlir_profile(release)
            except InputError as error:
                raise CompilationError(f"--mlir-version: {error}") from error

    # --- what there is -----------------------------------------------------------------------------------------

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """Add our arguments to xDSL's."""
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "tlx-opt"
        if {"-h", "--help"} & set(self._given):
            # The list imports every pass.
            from .pass_list import HelpFormatter, pass_list

            arg_parser.formatter_class = HelpFormatter
            arg_parser.epilog = pass_list(self.available_passes)
        arg_parser.add_argument(
            "--triton-version",
            metavar="VERSION",
            help=f"write text for this Triton version: {', '.join(p.name for p in PROFILES)} (our own spelling)",
        )
        arg_parser.add_argument(
            "--mlir-version",
            metavar="RELEASE",
            help=f"write text for upstream MLIR of this release of LLVM: {', '.join(p.name for p in MLIR_PROFILES)}",
        )
        arg_parser.add_argument(
            "--verify-each",
            nargs="?",
            const="true",
            default="true",
            metavar="BOOL",
            help="verify the module after every pass, and not only at the end (true)",
        )
        for when in ("before", "after"):
            arg_parser.add_argument(
                f"--print-ir-{when}",
                action="append",
                default=[],
                metavar="PASS",
                help=f"print the module {when} a pass",
            )
            arg_parser.add_argument(
                f"--print-ir-{when}-all", action="store_true", help=f"print the module {when} every pass"
            )
        arg_parser.add_argument(
            "--print-ir-after-change", action="store_true", help="print the module after every pass that changes it"
        )
        arg_parser.add_argument(
            "--print-ir-after-failure", action="store_true", help="print the module after a pass that fails"
        )
        arg_parser.add_argument("--no-plugins", action="store_true", help="leave out the plug-ins of other packages")
        add_completion_argument(arg_parser, lambda: self._with_passes(arg_parser))
        # The passes are named in several ways; by now they are one list.
        given = collect_passes(self._given, self.available_passes)

        def parse_args(args: object = None, namespace: object = None) -> argparse.Namespace:
            parsed, unknown = arg_parser.parse_known_args(given)
            if unknown:
                raise unknown_argument(unknown[0], self.available_passes)
            return parsed

        arg_parser.parse_args = parse_args  # pyright: ignore[reportAttributeAccessIssue]

    def _with_passes(self, arg_parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        """The parser with an option for each pass, as a shell completes them."""
        for name in self.available_passes:
            arg_parser.add_argument(f"--{name}", metavar="OPTIONS")
        return arg_parser

    def register_all_dialects(self) -> None:
        """Upstream's dialects, with ours in the place of those that we replace."""
        from xdsl.dialects import get_all_dialects

        for name, load in {**get_all_dialects(), **all_dialects()}.items():
            self.ctx.register_dialect(name, load)

    def register_all_passes(self) -> None:
        """Upstream's passes and ours."""
        from xdsl.transforms import get_all_passes

        for name, load in {**get_all_passes(), **all_passes(), **OVERRIDES}.items():
            self.register_pass(name, load)

    def register_all_frontends(self) -> None:
        """Read every extension with our parser."""

        def parse(stream: IO[bytes]) -> ModuleOp:
            return parse_module(stream.read().decode(), filename=self.get_input_name(), context=self.ctx)

        for extension in _INPUTS:
            self.available_frontends[extension] = parse

    # --- running -----------------------------------------------------------------------------------------------

    def process(self) -> bool:
        """Process every chunk of the input, and say what is wrong with each; whether all are as they should be.

        A chunk that fails does not keep the others from being processed.
        """
        failed = False
        with contextlib.ExitStack() as stack:
            output = sys.stdout
            if self.args.output_file is not None:
                output = stack.enter_context(open(self.args.output_file, "w", encoding="utf-8"))
            for number, chunk in enumerate(self._chunks()):
                if number:
                    output.write("// -----\n")
                failed |= not self._run_chunk(chunk, output)
                # What is said about the next chunk comes after this one's text.
                output.flush()
        return not failed

    def _run_chunk(self, chunk: Chunk, output: IO[str]) -> bool:
        """Process a chunk and say what is wrong with it; whether all is as it should be."""
        with collected_diagnostics() as diagnostics:
            text, error = self._process(chunk)
        if self.args.verify_diagnostics:
            expected = expectations(chunk.text, chunk.first_line)
            complaints: list[object] = [*mismatches(self.get_input_name(), expected, reported(diagnostics, error))]
            succeeded = not complaints
        else:
            complaints = [*diagnostics, *([] if error is None else [error])]
            succeeded = error is None
        for complaint in complaints:
            say(complaint)
        if text is not None:
            output.write(text)
        return succeeded

    def _chunks(self) -> Iterator[Chunk]:
        stream, extension = self.get_input_stream()
        with stream:
            data = stream.read()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise CompilationError(f"the file holds no text: {error}", self._file()) from error
        if (self.args.frontend or extension) not in self.available_frontends:
            raise CompilationError(
                f"unrecognized file extension '{extension}', expected one of {', '.join(self.available_frontends)}",
                self._file(),
                notes=_WRITES_IR if extension.startswith("py") else (),
            )
        if not self.args.split_input_file:
            yield Chunk(text, 1)
            return
        start = 0
        for end, following in [*((m.start(), m.end()) for m in _SEPARATOR.finditer(text)), (len(text), len(text))]:
            yield Chunk(text[start:end], text.count("\n", 0, start) + 1)
            start = following

    def _process(self, chunk: Chunk) -> tuple[str | None, CompilationError | None]:
        """Return what becomes of a chunk: the output, or the error."""
        try:
            module = parse_module(
                chunk.text, filename=self.get_input_name(), context=self.ctx, first_line=chunk.first_line
            )
            self.apply_passes(module)
            return self.output_resulting_program(module), None
        except Exception as error:
            # Whatever is said is about this text.
            found = with_place(as_compilation_error(error), error)
            found.location = found.location or self._file()
            return None, found

    def _file(self) -> SourceLocation:
        return SourceLocation(self.get_input_name(), 0)

    def setup_pipeline(self) -> None:
        """Build the pipeline."""
        self.pipeline = pipeline(self.args.passes, self.available_passes)

    def apply_passes(self, prog: ModuleOp) -> None:
        """Run the passes, verifying and printing as asked."""
        verifier = Verifier()
        self._verify(prog, verifier)
        for each in self.pipeline.passes:
            self._show("Before", each, prog, self.args.print_ir_before_all or each.name in self.args.print_ir_before)
            before = self._text(prog) if self.args.print_ir_after_change else None
            try:
                each.apply(self.ctx, prog)
                if self._flag(self.args.verify_each):
                    self._verify(prog, verifier)
            except Exception:
                self._show("After", each, prog, self.args.print_ir_after_failure, " Failed")
                raise
            changed = before is not None and before != self._text(prog)
            wanted = self.args.print_ir_after_all or self.args.print_between_passes
            self._show("After", each, prog, wanted or changed or each.name in self.args.print_ir_after)
        self._verify(prog, verifier)

    @staticmethod
    def _flag(text: str) -> bool:
        return text.lower() not in ("false", "0", "no", "off")

    def _verify(self, module: ModuleOp, verifier: Verifier) -> None:
        if not self.args.disable_verify:
            verifier.verify(module)

    def _show(self, when: str, each: ModulePass, module: ModuleOp, wanted: bool, suffix: str = "") -> None:
        if wanted:
            header = f"// -----// IR Dump {when} {type(each).__name__}{suffix} ({each.name}) //----- //"
            print(f"{header}\n{self._text(module)}", file=sys.stderr)

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


def run(args: Sequence[str] | None = None) -> int:
    """Carry the command line out; returns the exit status, 1 when what is wrong was printed.

    Raises CompilationError for a fault in the command line.
    """
    return 0 if TlxOptMain(args).process() else 1
