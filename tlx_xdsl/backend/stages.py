"""One compile in the process that holds Triton: parse, passes, llir, ptx, cubin."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import PurePath
from typing import Any, cast

from tlx_xdsl.errors import Note, SourceLocation

from .assemblers import Assembler, candidates, remedy_for_products
from .capture import STDERR_NAME, STDOUT_NAME, captured, read_log, read_logs
from .diagnosis import diagnose, find_unlocated_error, find_warnings, note_of_stage
from .errors import BackendError
from .limits import check_resources
from .mends import Mended, mend, mend_scales
from .options import ALLOW_VARIABLE, TRUE, BackendOptions
from .protocol import Request
from .ptxas import parse_error, parse_resources, parse_warnings, products_of_registers
from .result import BackendResult, BackendWarning, KernelMetadata
from .stock_passes import stock_passes
from .triton_api import StockModule, UnknownToAssemblerError, import_triton, printing_ptxas_log

Report = Callable[[str], None]
"""Called with a stage's name when it begins."""

_TARGET_ATTRIBUTE = re.compile(r'\bttg\.target"?\s*=\s*"cuda:(\d+)"')
_KERNEL = re.compile(r"^\s*tt\.func\s+(?:public\s+)?@(?P<name>[\w$.]+)", re.MULTILINE)
_COPY_NAME = "measured.ttgir"
_MENDED_NAME = "mended.ttgir"
_CLUSTER = re.compile(r"^\s*\.reqnctapercluster\s+(\d+)(?:,\s*(\d+))?(?:,\s*(\d+))?", re.MULTILINE)


def compile_request(request: Request, report: Report) -> BackendResult:
    """Compile, with this process's standard output redirected; raises BackendError with what was printed."""
    compilation = _Compilation(request, report)
    try:
        with captured(request.directory):
            result = compilation.run()
    except BackendError as error:
        compilation.complete(error)
        raise
    except Exception as error:
        raise compilation.failure(error) from error
    return compilation.with_log(result)


class _Compilation:
    """The state of one compile: what is asked, where it stands, what it took."""

    def __init__(self, request: Request, report: Report):
        self._request = request
        self._report = report
        self._stage = "start"
        self._version = ""
        self._ptx = ""
        self._assemblers: tuple[Assembler, ...] = ()
        self._times_ms: dict[str, float] = {}

    def run(self) -> BackendResult:
        """Run the stages, up to the one asked for."""
        options, upto = self._request.options, self._request.upto
        self._version = import_triton()
        self._assemblers = candidates(
            options.capability, self._version, pin=options.ptxas, newest_cuda=options.newest_cuda
        )
        module, text = self._parse()
        facts: dict[str, object] = {"name": module.entry_name()}
        with self._timed("passes"):
            if _is_plain(module, text):
                module.to_ttgir(facts)
            else:
                module.run_passes(stock_passes(options.capability, text))
            module, mended = self._mend_scales(module, text) if options.mends else (module, ())
            facts["tensordesc_meta"] = module.descriptor_metadata()
            ttgir = self._request.renamed(module.text())
        result = BackendResult(
            upto,
            self._version,
            ttgir,
            metadata=_metadata(facts, options),
            fp_fusion=module.fp_fusion,
            mended=mended,
        )
        if upto != "ttgir":
            result = self._lower(module, facts, result)
        return replace(result, times_ms=self._times_ms)

    def failure(self, error: Exception) -> BackendError:
        """Turn what Triton raised into the error that the user sees."""
        log = self._printed()
        failure = diagnose(log, stage=self._stage, exception=str(error), triton_version=self._version)
        reason = parse_error(str(error), self._ptx) if self._stage == "cubin" else None
        if reason is not None:
            failure.message, failure.location = f"ptxas: {reason[0]}", reason[1]
            failure.log = f"{error}\n{log}"
        return failure

    def complete(self, error: BackendError) -> None:
        """Give an error that one of our own checks raised what the others have."""
        error.log = error.log or self._printed()
        if not error.notes:
            error.notes = (note_of_stage(error.stage, self._version),)

    def with_log(self, result: BackendResult) -> BackendResult:
        """Add what was captured: the log itself, the warnings in it, and ptxas's account."""
        directory = self._request.directory
        stdout = read_log(directory, STDOUT_NAME)
        stderr = self._request.renamed(read_log(directory, STDERR_NAME))
        return replace(
            result,
            warnings=result.warnings + find_warnings(stderr) + parse_warnings(stdout, result.ptx),
            resources=parse_resources(stdout),
            log=stderr + stdout,
        )

    def _printed(self) -> str:
        return self._request.renamed(read_logs(self._request.directory))

    @contextlib.contextmanager
    def _timed(self, stage: str) -> Generator[None]:
        self._stage = stage
        self._report(stage)
        start = time.perf_counter()
        yield
        self._times_ms[stage] = (time.perf_counter() - start) * 1e3

    def _parse(self) -> tuple[StockModule, str]:
        options = self._request.options
        with self._timed("parse"):
            module = StockModule(self._request.input_path, options, self._assemblers[0])
            text = self._request.input_path.read_text(encoding="utf-8")
            _check_kernel(module, text, self._request.source_name)
            _check_agreement(module, text, options)
            if options.maxnreg is not None:
                module.set_int_attribute("ttg.maxnreg", options.maxnreg)
        return module, text

    def _lower(self, module: StockModule, facts: dict[str, object], result: BackendResult) -> BackendResult:
        options, upto = self._request.options, self._request.upto
        with self._timed("llir"):
            if options.check_resources:
                # LLVM and ptxas take most of the time of a compile: not for a kernel that can never launch.
                measured = module.measure(self._request.directory / _COPY_NAME, self._version)
                early = {"num_warps": options.num_warps, **facts, **measured}
                check_resources(_metadata(early, options), options, result.ttgir)
            llir = _rename_debug_file(module.to_llir(facts), self._request)
            self._refuse_printed_error()
        result = replace(result, llir=llir, metadata=_metadata(facts, options))
        if options.check_resources:
            check_resources(result.metadata, options, result.ttgir)
        if upto == "llir":
            return result
        with self._timed("ptx"):
            self._ptx = module.to_ptx(llir, facts)
            self._refuse_printed_error()
            mended = self._mend(result.metadata.num_warps) if options.mends else ()
        metadata = replace(_metadata(facts, options), cluster=_cluster(self._ptx))
        result = replace(result, ptx=self._ptx, metadata=metadata, mended=(*result.mended, *mended))
        if upto == "ptx":
            return result
        with self._timed("cubin"), printing_ptxas_log():
            return self._assemble(module, facts, result, *self._assemblers)

    def _assemble(
        self, module: StockModule, facts: dict[str, object], result: BackendResult, first: Assembler, *others: Assembler
    ) -> BackendResult:
        """Add the binary, by the first assembler that knows the text's version and the target."""
        warnings = _check_products(self._ptx, first, self._request.options)
        try:
            cubin = module.to_cubin(self._ptx, facts, first)
        except UnknownToAssemblerError:
            if not others:
                raise
            return self._assemble(module, facts, result, *others)
        return replace(result, cubin=cubin, assembler=str(first), warnings=warnings)

    def _mend_scales(self, module: StockModule, given: str) -> tuple[StockModule, tuple[Mended, ...]]:
        """Put right in the TTGIR what this version miscompiles; the module itself where that is nothing."""
        if "tt.dot_scaled" not in given:
            return module, ()
        text, mended = mend_scales(module.text(), given, self._version)
        if not mended:
            return module, ()
        path = self._request.directory / _MENDED_NAME
        path.write_text(text, encoding="utf-8")
        return StockModule(path, self._request.options, self._assemblers[0]), mended

    def _mend(self, num_warps: int) -> tuple[Mended, ...]:
        """Put right in the PTX what this version miscompiles; `num_warps` are those of all tasks."""
        threads = 32 * num_warps if num_warps == self._request.options.num_warps else 0
        self._ptx, mended = mend(self._ptx, self._version, threads=threads)
        return mended

    def _refuse_printed_error(self) -> None:
        """Fail where LLVM only printed an error: the code is wrong then (3.9, bad inline-asm constraint)."""
        log = read_log(self._request.directory, STDERR_NAME)
        if find_unlocated_error(log) is not None:
            raise diagnose(log, stage=self._stage, triton_version=self._version)


def _check_products(ptx: str, assembler: Assembler, options: BackendOptions) -> tuple[BackendWarning, ...]:
    """Warn of products with an operand in registers, or refuse them, where the assembler may miscompile them.

    What is allowed is only warned of where it is wrong in every launch.
    """
    allowed = options.allow_old_ptxas or os.environ.get(ALLOW_VARIABLE, "").lower() in TRUE
    if assembler.is_right or (allowed and not assembler.is_wrong) or not (places := products_of_registers(ptx)):
        return ()
    may = "use wrong addresses for" if assembler.is_wrong else "overwrite, before wgmma has read them, registers of"
    text = f"{assembler} may {may} this product, which has an operand in registers"
    remedy = remedy_for_products(options.newest_cuda)
    if assembler.is_wrong and not allowed:
        ways = f"to go on all the same: allow_old_ptxas=True, --allow-old-ptxas or {ALLOW_VARIABLE}=1"
        raise BackendError(text, places[0], notes=(Note(remedy, is_remedy=True), ways), stage="cubin")
    return tuple(BackendWarning(f"old ptxas: {text}; {remedy}", place, once=True) for place in places)


def _is_plain(module: StockModule, text: str) -> bool:
    """Return whether a module is TTIR: nothing in it has a layout or a buffer yet.

    A barrier of the thread block may stand in both; TTGIR says how many warps there are.
    """
    beyond = {name for name in module.operations() if name.startswith(("ttg.", "ttng."))}
    return "#ttg." not in text and (not beyond or (beyond == {"ttg.barrier"} and "ttg.num-warps" not in text))


def _check_kernel(module: StockModule, text: str, source_name: str) -> None:
    """Refuse a module without a kernel and one with several, over both of which stock asserts."""
    if not module.entry_name():
        raise BackendError("the module has no public function to compile", stage="parse")
    kernels = list(_KERNEL.finditer(text))
    if len(kernels) > 1:
        names = ", ".join(f"'{kernel['name']}'" for kernel in kernels)
        before = text[: kernels[1].start("name")].splitlines()
        place = SourceLocation(source_name, len(before), len(before[-1]) + 1)
        raise BackendError(f"a module has one public function, but this one has {names}", place, stage="parse")


def _check_agreement(module: StockModule, text: str, options: BackendOptions) -> None:
    """Refuse options that contradict the module."""
    target = _TARGET_ATTRIBUTE.search(text)
    claims = (
        ("ttg.num-warps", module.int_attribute("ttg.num-warps"), "num_warps", options.num_warps),
        ("ttg.num-ctas", module.int_attribute("ttg.num-ctas"), "num_ctas", options.num_ctas),
        ("ttg.target = cuda", int(target[1]) if target else None, "target", options.capability),
    )
    for attribute, said, option, asked in claims:
        if said is not None and said != asked:
            raise BackendError(
                f"the module says {attribute}:{said}, but the option {option} says {asked}", stage="parse"
            )


def _metadata(facts: dict[str, object], options: BackendOptions) -> KernelMetadata:
    """Read what stock's stages noted so far; what they did not note, or noted as None, has its default."""
    noted = {name: facts[name] for name in _NOTED if facts.get(name)}
    asked = {"num_warps": options.num_warps, "num_ctas": options.num_ctas}
    return KernelMetadata(**cast("dict[str, Any]", asked | noted))


_NOTED = (
    "name",
    "shared",
    "num_warps",
    "tmem_size",
    "tensordesc_meta",
    "global_scratch_size",
    "global_scratch_align",
    "profile_scratch_size",
    "profile_scratch_align",
)


def _rename_debug_file(llir: str, request: Request) -> str:
    """Name the source, not our temporary file, in the debug information of functions without a location.

    Besides being of more use, this makes the binary a function of text and options alone.
    """
    path, source = request.input_path, PurePath(request.source_name.replace('"', "'"))
    directory = "" if source.parent == PurePath(".") else str(source.parent)
    return llir.replace(
        f'filename: "{path.name}", directory: "{path.parent}"',
        f'filename: "{source.name}", directory: "{directory}"',
    )


def _cluster(ptx: str) -> tuple[int, int, int] | None:
    match = _CLUSTER.search(ptx)
    if match is None:
        return None
    x, y, z = (int(extent) if extent else 1 for extent in match.groups())
    return x, y, z
