"""Finding a kernel in a Python file, and reading what a command line says about its arguments."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from tlx_xdsl.compat import NEEDS_TRITON, reading
from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.defaults import KernelDefaults, kernel_defaults
from tlx_xdsl.runtime.jit import without_launching
from tlx_xdsl.runtime.kernel import Kernel


def load_kernel(spec: str) -> tuple[Kernel, KernelDefaults]:
    """The kernel that `FILE.py:KERNEL` names, and the file's defaults for it.

    Raises CompilationError when the file can't be run or holds no such kernel.
    """
    path, separator, name = spec.rpartition(":")
    if not separator or not path.endswith(".py") or not name.isidentifier():
        raise CompilationError(f"expected FILE.py:KERNEL, found '{spec}'{_choice(spec)}")
    module = run_file(path)
    kernels = _kernels(module)
    if name not in kernels:
        have = f"its kernels are {', '.join(kernels)}" if kernels else "it has no kernel decorated with tlx_xdsl.jit"
        raise CompilationError(f"no kernel '{name}' in this file, {have}", SourceLocation(path, 0))
    return kernels[name], kernel_defaults(path, vars(module), name)


def kernels_of_file(path: str) -> dict[str, tuple[Kernel, KernelDefaults]]:
    """The kernels that a file defines, by name, with its defaults for each.

    Raises CompilationError when the file can't be run.
    """
    module = run_file(path)
    own = {name: each for name, each in _kernels(module).items() if Path(each.source.filename) == Path(path).absolute()}
    return {name: (kernel, kernel_defaults(path, vars(module), name)) for name, kernel in own.items()}


def loaded_names(path: str) -> dict[str, Any]:
    """Return the names that a file defined when it was run last: kernels with their autotuners, and tables."""
    return vars(_MODULES[str(Path(path).resolve())])


_MODULES: dict[str, ModuleType] = {}
"""The modules of files that were run, by path."""


def _choice(path: str) -> str:
    """Return what the kernels of a file are, where the file alone is named."""
    kernels = _kernels(run_file(path)) if path.endswith(".py") and Path(path).is_file() else {}
    return f", whose kernels are {', '.join(kernels)}" if kernels else ""


def _kernels(module: ModuleType) -> dict[str, Kernel]:
    return {name: kernel for name, value in vars(module).items() if (kernel := _kernel(value)) is not None}


def _kernel(value: object) -> Kernel | None:
    """`value` as a kernel of ours when it is one, or a jitted function of stock Triton's; else None."""
    if isinstance(value, Kernel):
        return cast("Kernel", value)
    source = source_of(value)
    return None if source is None or source.is_library else Kernel(source.fn, noinline=source.noinline)


def run_file(path: str) -> ModuleType:
    """The module of a Python file, which is run.

    Raises CompilationError, at its line, for a file that can't be run.
    """
    if not Path(path).is_file():
        raise CompilationError("no such file", SourceLocation(path, 0))
    # As for a script, the file may import what lies beside it.
    before = list(sys.path)
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        # Scripts for Meta's TLX are read as they are.
        with without_launching(), reading():
            spec = importlib.util.spec_from_file_location(_module_name(path), path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[module.__name__] = module
            spec.loader.exec_module(module)
    except CompilationError:
        raise
    except SyntaxError as error:
        place = SourceLocation(error.filename or path, error.lineno or 0, error.offset or 0)
        raise CompilationError(error.msg, place, source_line=error.text) from error
    except Exception as error:
        raise _import_error(path, error) from error
    finally:
        sys.path[:] = before
    _MODULES[str(Path(path).resolve())] = module
    return module


def _module_name(path: str) -> str:
    """The name to run a file by: in its package, which is imported, where it imports relative to that."""
    file = Path(path).resolve()
    # What is imported later must find Python's own `copy`, not the user's copy.py.
    alone = f"{file.stem}_" if file.stem in sys.stdlib_module_names else file.stem
    tree = ast.parse(file.read_bytes(), path)
    if not any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree)):
        return alone
    root = file.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    package = ".".join(file.parent.relative_to(root).parts)
    if not package:
        return alone
    sys.path.insert(1, str(root))
    importlib.import_module(package)
    return f"{package}.{file.stem}"


def _import_error(path: str, error: Exception) -> CompilationError:
    """The line of the user's file at which running it failed."""
    wanted = Path(path).resolve()
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == wanted]
    message = f"{type(error).__name__}: {error}"
    notes = (NEEDS_TRITON,) if isinstance(error, ModuleNotFoundError) and error.name == "triton" else ()
    if not frames:
        return CompilationError(message, SourceLocation(path, 0), notes=notes)
    frame = frames[-1]
    place = SourceLocation(path, frame.lineno or 0, (frame.colno or 0) + 1)
    return CompilationError(message, place, source_line=_source_line(path, frame.lineno), notes=notes)


def _source_line(path: str, line: int | None) -> str | None:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return lines[line - 1] if line is not None and 0 < line <= len(lines) else None
