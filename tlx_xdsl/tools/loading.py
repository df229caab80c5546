"""Finding a kernel in a Python file, and reading what a command line says about its arguments."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.frontend.foreign import source_of
from tlx_xdsl.language.core import ALL_DTYPES
from tlx_xdsl.runtime.jit import Kernel

DEFAULTS = "TLX_COMPILE"
"""The module-level name under which a file says how its kernels are compiled by default."""


@dataclass(frozen=True)
class KernelDefaults:
    """What a file's `TLX_COMPILE` says about one kernel."""

    signature: Mapping[str, str] = field(default_factory=dict[str, str])
    constexprs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Launch options such as `num_warps`."""


OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "cluster", "target")
"""Launch options that `TLX_COMPILE` may hold beside the signature and the constexprs."""


def load_kernel(spec: str) -> tuple[Kernel, KernelDefaults]:
    """The kernel that `FILE.py:KERNEL` names, and the file's defaults for it.

    Raises CompilationError when the file can't be run or holds no such kernel.
    """
    path, separator, name = spec.rpartition(":")
    if not separator or not path.endswith(".py") or not name.isidentifier():
        raise CompilationError(f"expected FILE.py:KERNEL, found '{spec}'")
    module = _run(path)
    kernels = {key: kernel for key, value in vars(module).items() if (kernel := _kernel(value)) is not None}
    if name not in kernels:
        have = f"its kernels are {', '.join(kernels)}" if kernels else "it has no kernel decorated with tlx_xdsl.jit"
        raise CompilationError(f"no kernel '{name}' in this file, {have}", SourceLocation(path, 0))
    return kernels[name], _defaults(path, module, name)


def _kernel(value: object) -> Kernel | None:
    """`value` as a kernel of ours when it is one, or a jitted function of stock Triton's; else None."""
    if isinstance(value, Kernel):
        return value
    source = source_of(value)
    return None if source is None or source.is_library else Kernel(source.fn, noinline=source.noinline)


def _run(path: str) -> ModuleType:
    if not Path(path).is_file():
        raise CompilationError("no such file", SourceLocation(path, 0))
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As for a script, the file may import what lies beside it.
    sys.path.insert(0, str(Path(path).resolve().parent))
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
    except CompilationError:
        raise
    except SyntaxError as error:
        place = SourceLocation(error.filename or path, error.lineno or 0, error.offset or 0)
        raise CompilationError(error.msg, place, source_line=error.text) from error
    except Exception as error:
        raise _import_error(path, error) from error
    finally:
        sys.path.pop(0)
    return module


def _import_error(path: str, error: Exception) -> CompilationError:
    """The line of the user's file at which running it failed."""
    wanted = Path(path).resolve()
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == wanted]
    message = f"{type(error).__name__}: {error}"
    if not frames:
        return CompilationError(message, SourceLocation(path, 0))
    frame = frames[-1]
    column = (frame.colno or 0) + 1
    return CompilationError(
        message, SourceLocation(path, frame.lineno or 0, column), source_line=_source_line(path, frame.lineno)
    )


def _source_line(path: str, line: int | None) -> str | None:
    lines = Path(path).read_text().splitlines()
    return lines[line - 1] if line is not None and 0 < line <= len(lines) else None


def _defaults(path: str, module: ModuleType, name: str) -> KernelDefaults:
    table: object = getattr(module, DEFAULTS, {})
    place = SourceLocation(path, 0)
    if not isinstance(table, dict):
        raise CompilationError(f"{DEFAULTS} must be a dictionary from kernel names to settings", place)
    settings = cast(dict[str, object], table).get(name, {})
    if not isinstance(settings, dict):
        raise CompilationError(f"{DEFAULTS}['{name}'] must be a dictionary", place)
    settings = dict(cast(dict[str, Any], settings))
    signature, constexprs = settings.pop("signature", {}), settings.pop("constexprs", {})
    surplus = next((key for key in settings if key not in OPTIONS), None)
    if surplus is not None:
        raise CompilationError(
            f"{DEFAULTS}['{name}'] has the unknown entry '{surplus}', expected signature, constexprs or one of "
            f"{', '.join(OPTIONS)}",
            place,
        )
    return KernelDefaults(signature, constexprs, settings)


def assignments(texts: Sequence[str], option: str) -> dict[str, str]:
    """The mapping that repeated `NAME=VALUE` arguments spell.

    Raises CompilationError for an argument of another form.
    """
    result: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip().isidentifier() or not value.strip():
            raise CompilationError(f"{option}: expected NAME=VALUE, found '{text}'")
        result[name.strip()] = value.strip()
    return result


_DTYPES = {name: dtype for dtype in ALL_DTYPES for name in (dtype.name, dtype.spelling)}


def constexpr_value(name: str, text: str) -> Any:
    """The value that `--constexpr NAME=text` means: a Python literal, or the name of an element type.

    Raises CompilationError for anything else.
    """
    if text in _DTYPES:
        return _DTYPES[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError) as error:
        raise CompilationError(
            f"--constexpr: '{name}' needs a Python literal such as 128, True or 'text', or an element type such as "
            f"fp16, found '{text}'"
        ) from error
