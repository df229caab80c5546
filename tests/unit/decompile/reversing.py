"""IR to Python and back, for tests."""

import importlib.util
import linecache
from pathlib import Path
from types import ModuleType

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.decompile.print_ttgir_to_tlx import python_of
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.runtime.driver.defaults import KernelDefaults, kernel_defaults
from tlx_xdsl.runtime.kernel import Kernel
from tlx_xdsl.text.diagnostics import collected_diagnostics
from tlx_xdsl.text.verify import verify_module


def written(module: ModuleOp, path: Path) -> tuple[Kernel, KernelDefaults]:
    """Write a module as Python to a file and read its kernel; every operation must have found a word."""
    text, refused = python_of(module)
    assert [op.name for op in refused] == []
    return kernel_of(imported(text, path), path)


def imported(text: str, path: Path) -> ModuleType:
    """Write a file of Python and import it."""
    path.write_text(text)
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    python = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(python)
    return python


def kernel_of(python: ModuleType, path: Path) -> tuple[Kernel, KernelDefaults]:
    """Return the kernel of a file with one, and what the file says of it."""
    (name,) = python.TLX_COMPILE
    return getattr(python, name), kernel_defaults(str(path), vars(python), name)


def there_and_back(module: ModuleOp, path: Path) -> ModuleOp:
    """Write a module as Python, and compile that with our frontend."""
    return compiled(*written(module, path))


def compiled(kernel: Kernel, defaults: KernelDefaults) -> ModuleOp:
    """Compile a file's kernel with our frontend."""
    # Allocations over the memory of others get the remark that there are specs for that.
    with collected_diagnostics():
        again = frontend_module(
            kernel.source, Specialization(defaults.signature, defaults.constexprs, **defaults.options)
        )
    verify_module(again)
    return again
