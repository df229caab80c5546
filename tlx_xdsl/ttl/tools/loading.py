"""Finding a TTL kernel in a Python file."""

from __future__ import annotations

from tlx_xdsl.errors import CompilationError, SourceLocation
from tlx_xdsl.tools.launch_line.loading import run_file

from ..language.kernel import Kernel
from ..runtime.stand_in import ttl_importable


def load_ttl_kernel(spec: str) -> Kernel:
    """The TTL kernel that `FILE.py:KERNEL` names; the name may be left out where a file has one kernel only.

    A file may `import ttl` and `ttnn`, as kernels for tt-lang do: they are ours while it is read, if they are not
    installed.

    Raises CompilationError when the file can't be run or holds no such kernel.
    """
    path, _, name = spec.partition(":")
    if not path.endswith(".py") or (name and not name.isidentifier()):
        raise CompilationError(f"expected FILE.py:KERNEL, found '{spec}'")
    with ttl_importable():
        module = run_file(path)
    kernels = {each: value for each, value in vars(module).items() if isinstance(value, Kernel)}
    if not name and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name not in kernels:
        have = f"its kernels are {', '.join(kernels)}" if kernels else "it has no kernel decorated with ttl.kernel"
        asked = f"no kernel '{name}' in this file" if name else "expected FILE.py:KERNEL"
        raise CompilationError(f"{asked}, {have}", SourceLocation(path, 0))
    return kernels[name]
