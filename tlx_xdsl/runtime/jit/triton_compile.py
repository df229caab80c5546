"""Compiling for Triton's runtime: first its on-disk cache, then our passes and a worker process.

Triton's own `compile` would run stock Triton in this process, which bad text can abort, and would have to load xDSL
for its key. Here the key comes from files alone (`fingerprint.py`); a hit reads the cache and loads neither xDSL nor
MLIR; a miss compiles in a worker and writes the files that a hit will find.
"""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportPrivateUsage=false

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import triton
from triton import knobs
from triton._C.libtriton import get_cache_invalidating_env_vars
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.runtime.cache import CacheManager, FileCacheManager, get_cache_manager, get_dump_manager

from tlx_xdsl.backend import assemblers
from tlx_xdsl.errors import CompilationError, SourceLocation

from ..driver.fingerprint import compiler_changed, compiler_fingerprint, values_fingerprint
from ..driver.phases import follow_launches, phase
from ..driver.reproducible import reproducible
from ..driver.specialization import CLUSTER_OPTION, META_OPTIONS, cluster_option
from ..launch.cuda_driver import cuda_major
from .compiled_kernel import TLXCompiledKernel, specialization_of_source, symbol_of

if TYPE_CHECKING:
    from tlx_xdsl.backend import BackendResult

    from ..driver.compilation import CompiledText, Specialization

_LONGEST_NAME = 150
"""Characters of a file's name in the cache, as in Triton: with what follows it must stay below 255."""

_NUMBERS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_SUPPORTED = {
    *_NUMBERS,
    CLUSTER_OPTION,
    "enable_fp_fusion",
    "launch_cooperative_grid",
    "launch_pdl",
    "debug",
    # Integer overflow is checked for in no mode.
    "sanitize_overflow",
}
"""The launch options that our way to a binary has; of all others it has Triton's own value only."""

_DAMAGE = (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration)
"""The errors that reading a damaged entry of the cache may end with, in Triton's code or in ours."""


class CompilationWarning(UserWarning):
    """A warning of Triton or ptxas, at the line of the kernel that it concerns."""


class OldAssemblerWarning(CompilationWarning):
    """The ptxas may miscompile this line, whatever the configuration: said once."""


def compile_cached(
    src: ASTSource, target: GPUTarget, options: Mapping[str, Any], _env_vars: Mapping[str, str] | None = None
) -> TLXCompiledKernel:
    """Return the compiled kernel, from Triton's cache if it is there.

    Takes what Triton's runtime passes to its own `compile`.

    Raises CompilationError, which is one of Triton's as well (`triton_errors.py`), for a fault in the kernel or a
    launch option that is not supported, DoesNotFitError when the kernel could never launch.
    """
    _check_options(src, target, options)
    follow_launches()
    _warn_of_ignored_settings(src)
    start = time.perf_counter()
    environment = get_cache_invalidating_env_vars() if _env_vars is None else _env_vars
    with _with_triton_face():
        key = _key(src, target, options, environment)
    name = src.name[:_LONGEST_NAME]
    manager = _manager(src, key)
    kernel = None if knobs.compilation.always_compile else _cached(src, manager, name, key)
    if kernel is not None:
        group = kernel.metadata_group
        _notify_listener(src, kernel.metadata._asdict(), group, {}, (time.perf_counter() - start) * 1e3, hit=True)
        return kernel
    with _with_triton_face():
        files, metadata, times = _compile(src, target, options)
    digests = {f"{name}.{stage}": _digest(content) for stage, content in files.items()}
    metadata = {"hash": key, "target": vars(target), **options, **environment, **metadata, "digests": digests}
    start = time.perf_counter()
    try:
        group = _written(manager, name, files, metadata)
    except OSError as error:
        _warn_of_cache(src, error)
        with _cache_errors(src):
            group = _written(_temporary_manager(key), name, files, metadata)
    with _cache_errors(src):
        if knobs.compilation.dump_ir:
            dumps = get_dump_manager(src.hash())
            for stage, content in files.items():
                dumps.put(content, f"{name}.{stage}")
    _notify_listener(src, metadata, group, times, (time.perf_counter() - start) * 1e3, hit=False)
    return TLXCompiledKernel(src, group, key)


def compile_source(src: ASTSource, target: GPUTarget, options: Mapping[str, Any] | None = None) -> TLXCompiledKernel:
    """Return the compiled kernel of a source that a script made itself, as for `triton.compile`.

    `options` are launch options; what has a constant needs no type.

    Raises as `compile_cached` does, ValueError for a cluster that can't be, TypeError for a parameter without a type or
    a constant.
    """
    for index, name in enumerate(src.fn.arg_names):
        if name not in src.signature:
            if (index,) not in src.constants:
                raise TypeError(f"kernel '{src.name}': the signature has no type for the parameter '{name}'")
            src.signature[name] = "constexpr"
    asked = options or {}
    cluster = cluster_option(asked.get(CLUSTER_OPTION))
    known = {name: value for name, value in asked.items() if name not in META_OPTIONS}
    parsed = vars(make_backend(target).parse_options(with_fusion(known)))
    return compile_cached(src, target, parsed if cluster is None else parsed | {CLUSTER_OPTION: cluster})


def with_fusion(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return launch options that say whether products are fused: as Triton decides where they don't.

    Triton 3.9 warns over each launch that leaves it open, for 3.10 will decide otherwise.
    """
    said = options.get("enable_fp_fusion")
    return {**options, "enable_fp_fusion": knobs.language.default_fp_fusion if said is None else said}


def _check_options(src: ASTSource, target: GPUTarget, options: Mapping[str, Any]) -> None:
    for name in _NUMBERS:
        if not isinstance(options[name], int | None):
            raise TypeError(f"kernel '{src.name}': {name} is a whole number, found {options[name]!r}")
    usual = vars(make_backend(target).parse_options(with_fusion({"arch": options["arch"]})))
    usual |= {"arch": f"sm{target.arch}"}
    for name, value in options.items():
        if name not in _SUPPORTED and value != usual.get(name):
            raise KeyError(f"kernel '{src.name}': tlx_xdsl does not have the launch option {name}={value!r}")


def _warn_of_ignored_settings(src: ASTSource) -> None:
    asked = {
        "TRITON_KERNEL_OVERRIDE (knobs.compilation.override)": knobs.compilation.override,
        "USE_IR_LOC (knobs.compilation.use_ir_loc)": knobs.compilation.use_ir_loc,
    }
    for what in (name for name, value in asked.items() if value):
        warnings.warn(f"kernel '{src.name}': tlx_xdsl does not look at {what}", CompilationWarning, stacklevel=3)


@contextlib.contextmanager
def _with_triton_face() -> Generator[None]:
    """Make our errors Triton's as well."""
    try:
        yield
    except CompilationError as error:
        from .triton_errors import with_triton_face

        raise with_triton_face(error) from error


# --- the files ------------------------------------------------------------------------------------------------


def _cached(src: ASTSource, manager: CacheManager, name: str, key: str) -> TLXCompiledKernel | None:
    """The kernel from the cache; None where it is not, or not as it was written: a disk may have been full."""
    try:
        group = manager.get_group(f"{name}.json") or {}
        if f"{name}.json" not in group:
            return None
        kernel = TLXCompiledKernel(src, group, key)
        found = {file: _digest(Path(path).read_bytes()) for file, path in group.items() if file != f"{name}.json"}
        return kernel if found == cast(Any, kernel.metadata).digests else None
    except _DAMAGE:
        return None


def _digest(content: str | bytes) -> str:
    return hashlib.sha256(content if isinstance(content, bytes) else content.encode()).hexdigest()


def _manager(src: ASTSource, key: str) -> CacheManager:
    """The place of a kernel in Triton's cache; in a temporary folder where that can't be written."""
    try:
        return get_cache_manager(key)
    except OSError as error:
        _warn_of_cache(src, error)
        with _cache_errors(src):
            return _temporary_manager(key)


def _written(
    manager: CacheManager, name: str, files: Mapping[str, str | bytes], metadata: Mapping[str, Any]
) -> dict[str, str]:
    """Write a kernel's files; gives their paths by their names."""
    try:
        group = {f"{name}.{stage}": manager.put(content, f"{name}.{stage}") for stage, content in files.items()}
        group[f"{name}.json"] = manager.put(json.dumps(metadata, default=vars), f"{name}.json", binary=False)
        # Without the group the files are never found: so what an edited compiler made is not found either.
        if not compiler_changed():
            manager.put_group(f"{name}.json", group)
    except BaseException:
        # An interrupt, too, may come between a file and its place.
        _remove_halves(manager)
        raise
    return group


def _temporary_manager(key: str) -> CacheManager:
    """A place for a kernel that lasts as long as this process."""
    manager = FileCacheManager(key, override=True)
    manager.cache_dir = os.path.join(_temporary_folder().name, key)
    manager.lock_path = os.path.join(manager.cache_dir, "lock")
    os.makedirs(manager.cache_dir, exist_ok=True)
    return manager


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tlx_xdsl_kernels_")


def _remove_halves(manager: CacheManager) -> None:
    """Remove what Triton leaves of a file that it could not write."""
    folder = getattr(manager, "cache_dir", None)
    for left in Path(folder).glob(f"tmp.pid_{os.getpid()}_*") if folder else ():
        shutil.rmtree(left, ignore_errors=True)


def _warn_of_cache(src: ASTSource, error: OSError) -> None:
    warnings.warn(
        f"the compiled kernel '{src.name}' can't be kept in Triton's cache, and is kept for this process only: {error}",
        RuntimeWarning,
        stacklevel=2,
    )


@contextlib.contextmanager
def _cache_errors(src: ASTSource) -> Generator[None]:
    """Say whose files these are where the file system fails."""
    try:
        yield
    except OSError as error:
        with _with_triton_face():
            raise CompilationError(
                f"the compiled kernel '{src.name}' can't be written: {error}",
                notes=("its place is below TRITON_CACHE_DIR, or ~/.triton/cache where that is not set",),
            ) from error


# --- the key --------------------------------------------------------------------------------------------------


def _key(src: ASTSource, target: GPUTarget, options: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """A hash over all that the binary depends on."""
    parts = (
        # The kernel's source and what it reaches, the types and constants.
        src.hash(),
        # Triton's text of the constants does not distinguish 1 from "1", nor look into tuples of functions.
        values_fingerprint(src.constants),
        repr(symbol_of(src)),
        compiler_fingerprint(),
        triton_identity(),
        f"{target.backend}:{target.arch}:{target.warp_size}",
        repr(sorted((name, repr(value)) for name, value in options.items())),
        repr(sorted(environment.items())),
        repr(_hook() and _hook()()),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _hook() -> Any:
    """Return Triton's hook that looks at stages and changes them; called without arguments it gives its key."""
    return knobs.runtime.add_stages_inspection_hook


def triton_identity() -> str:
    """Return which Triton and which ptxas: names and stamps of files, where stock reads 300 MB and starts ptxas."""
    return f"{_library_identity()} {assemblers.identity(newest_cuda=cuda_major())}"


@functools.cache
def _library_identity() -> str:
    libraries = sorted((Path(triton.__file__).parent / "_C").glob("libtriton*"))
    stamps = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in libraries]
    return f"{triton.__version__} {stamps}"


# --- a miss ---------------------------------------------------------------------------------------------------


def _compile(
    src: ASTSource, target: GPUTarget, options: Mapping[str, Any]
) -> tuple[dict[str, str | bytes], dict[str, Any], dict[str, float]]:
    """The files of a compiled kernel by stage, what Triton's runtime wants to know of it, and milliseconds."""
    from tlx_xdsl.backend import compile_ttgir, start_worker

    # It imports Triton while the frontend is at work.
    start_worker()
    wanted = specialization_of_source(src, target, options)
    # A hit of the cache loads no xDSL.
    from tlx_xdsl.text.diagnostics import collected_diagnostics, report_again

    with (
        reproducible(src.fn.source, specialization=wanted, num_stages=options["num_stages"]),
        collected_diagnostics() as said,
    ):
        text = _compile_text(src, wanted)
    for diagnostic in said:
        if diagnostic.severity == "warning":
            _warn(src, diagnostic.message, diagnostic.location)
        else:
            report_again(diagnostic)
    if _hook() and "ttg.num-warps" in text.ttgir:
        said = (
            "add_stages_inspection_hook has llir, ptx and cubin to change, but no ttir and ttgir: tlx_xdsl makes both"
        )
        _warn(src, f"kernel '{src.name}': {said}", None)
    chosen = wanted.backend_options(num_stages=options["num_stages"])
    with (
        reproducible(src.fn.source, specialization=wanted, num_stages=options["num_stages"]),
        phase("Triton", text.name),
    ):
        # The hook is a function of this process.
        result = compile_ttgir(
            text.ttgir, chosen, source_name=f"{text.name}.ttgir", isolation="none" if _hook() else "process"
        )
    for warning in result.warnings:
        _warn(src, warning.text, warning.location, OldAssemblerWarning if warning.once else CompilationWarning)
    return _files(text, result), _metadata(result, options), {**text.times_ms, **result.times_ms}


def _warn(
    src: ASTSource, message: str, place: SourceLocation | None, category: type[Warning] = CompilationWarning
) -> None:
    warn_again(message, category, place.filename if place else src.name, place.line if place else 0)


_SAID: set[tuple[str, str, int]] = set()


def warn_again(message: str, category: type[Warning], filename: str, line: int) -> None:
    """Warn of a kernel's line, of an old assembler once in this process, whoever has compiled it."""
    if issubclass(category, OldAssemblerWarning):
        if (message, filename, line) in _SAID:
            return
        _SAID.add((message, filename, line))
    warnings.warn_explicit(message, category, filename, line)


def _compile_text(src: ASTSource, wanted: Specialization) -> CompiledText:
    from ..driver.compilation import compile_text

    return compile_text(src.fn.source, wanted, triton_version=triton.__version__)


def _files(text: CompiledText, result: BackendResult) -> dict[str, str | bytes]:
    if knobs.compilation.store_binary_only:
        return {"cubin": result.cubin}
    return {
        "ttir": text.ttir,
        "handoff": text.ttgir,
        "ttgir": result.ttgir,
        "llir": result.llir,
        "ptx": result.ptx,
        "cubin": result.cubin,
    }


def _metadata(result: BackendResult, options: Mapping[str, Any]) -> dict[str, Any]:
    facts, resources = result.metadata, result.resources
    return {
        "triton_version": result.triton_version,
        "assembler": result.assembler,
        **vars(facts),
        "kernel_num_warps": options["num_warps"],
        "tensordesc_meta": [dict(entry) for entry in facts.tensordesc_meta],
        "registers": resources.registers,
        "spill_store_bytes": resources.spill_store_bytes,
        "spill_load_bytes": resources.spill_load_bytes,
    }


def _notify_listener(
    src: ASTSource,
    metadata: dict[str, Any],
    group: dict[str, str],
    times_ms: Mapping[str, float],
    store_ms: float,
    *,
    hit: bool,
) -> None:
    """Notify Triton's compilation listener, if there is one; times are in microseconds there."""
    listener = knobs.compilation.listener
    if not listener:
        return
    first, *rest = [(stage, round(ms * 1e3)) for stage, ms in times_ms.items()] or [("frontend", 0)]
    times = knobs.CompileTimes(first[1], rest, round(store_ms * 1e3))
    listener(src=src, metadata=metadata, metadata_group=group, times=times, cache_hit=hit)
