"""The only place that touches Triton's untyped Python API; imported by the stages, never by `compile.py`.

Two rules of stock Triton hold here. The MLIR context must outlive the module, so both live in one object.
After the lowering to LLVM IR the module is a husk, of which some questions abort the process: ask before.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from .assemblers import SECOND_ALLOCATION, Assembler
from .errors import BackendError
from .options import BackendOptions, default_fp_fusion
from .stock_passes import StockPass, allocating_passes


def import_triton() -> str:
    """Import Triton and its NVIDIA backend; return Triton's version. About 0.1 to 0.2 s the first time."""
    import_module("triton.backends.nvidia.compiler")
    return cast(str, import_module("triton").__version__)


@contextlib.contextmanager
def printing_ptxas_log() -> Generator[None]:
    """Make stock print ptxas's `-v` output, which it otherwise throws away."""
    knobs: Any = import_module("triton.knobs")
    with knobs.nvidia.scope():
        knobs.nvidia.dump_ptxas_log = True
        yield


_UNKNOWN = re.compile(r"Unsupported \.version|is not defined for option 'gpu-name'")


class UnknownToAssemblerError(Exception):
    """Raised over PTX of a version, or for a target, that is newer than the ptxas."""


def _fp_fusion(options: BackendOptions) -> bool:
    if options.enable_fp_fusion is not None:
        return options.enable_fp_fusion
    return default_fp_fusion(cast(str, import_module("triton").__version__))


_NOTED = {
    "shared": "ttg.shared",
    "tmem_size": "ttg.tensor_memory_size",
    "num_warps": "ttg.total-num-warps",
}
"""The sizes that the passes leave for a launcher: metadata and the module attribute."""


class StockModule:
    """A parsed module with its context, and stock Triton's stages for it."""

    def __init__(self, path: Path, options: BackendOptions, assembler: Assembler | None = None):
        """Parse and verify the file; raises RuntimeError, with the reason on standard error.

        The PTX is what stock writes, in the version that `assembler` reads where that is an older one.
        """
        self._ir: Any = import_module("triton._C.libtriton").ir
        compiler: Any = import_module("triton.backends.compiler")
        nvidia: Any = import_module("triton.backends.nvidia.compiler")
        backend = nvidia.CUDABackend(compiler.GPUTarget("cuda", options.capability, 32))
        self._context: Any = self._ir.context()
        self._ir.load_dialects(self._context)
        backend.load_dialects(self._context)
        self._module: Any = self._ir.parse_mlir_module(str(path), self._context)
        # Stock's stages ask the module for its context, but the binding does not set it.
        self._module.context = self._context
        self._stages: dict[str, Any] = {}
        self._capability = options.capability
        asked: dict[str, object] = {
            "num_warps": options.num_warps,
            "num_ctas": options.num_ctas,
            "maxnreg": options.maxnreg,
            "num_stages": options.num_stages,
            # Said in any case: 3.9 prints a warning over what is left out.
            "enable_fp_fusion": _fp_fusion(options),
        }
        stock_options = backend.parse_options(asked)
        if assembler is not None:
            version = nvidia.get_ptx_version_from_options(stock_options, options.capability)
            stock_options = backend.parse_options(asked | _for_assembler(assembler, version, stock_options.ptx_options))
        self.fp_fusion: bool = stock_options.enable_fp_fusion
        """Whether LLVM and ptxas may contract: what was asked for, unless the environment forbids it."""
        self._ptx_version: int = nvidia.get_ptx_version_from_options(stock_options, options.capability)
        backend.add_stages(self._stages, stock_options, compiler.Language.TRITON)

    def text(self) -> str:
        """Print the module, with locations."""
        return str(self._module)

    def entry_name(self) -> str:
        """Return the name of the public function; empty if there is none."""
        return cast(str, self._module.get_entry_func_name())

    def int_attribute(self, name: str) -> int | None:
        """Return a module attribute."""
        return cast("int | None", self._module.get_int_attr(name))

    def set_int_attribute(self, name: str, value: int) -> None:
        """Set a module attribute to an i32."""
        self._module.set_attr(name, self._ir.builder(self._context).get_int32_attr(value))

    def descriptor_metadata(self) -> tuple[Mapping[str, object], ...]:
        """Return one mapping per tensor descriptor argument. Only before the lowering to LLVM IR."""
        entries = cast("Sequence[Mapping[str, object]]", self._module.get_tensordesc_metadata())
        return tuple(dict(entry) for entry in entries)

    def run_passes(self, passes: Sequence[StockPass]) -> None:
        """Run passes in place; raises RuntimeError, with the reason on standard error."""
        self._run(self._module, passes)

    def _run(self, module: Any, passes: Sequence[StockPass]) -> None:
        manager: Any = self._ir.pass_manager(self._context)
        manager.enable_debug()
        for stock_pass in passes:
            add = _binding(stock_pass)
            if add is not None:
                add(manager, *stock_pass.arguments)
        manager.run(module, "tlx_xdsl")

    def operations(self) -> set[str]:
        """Return the names of the operations in the module."""
        names: set[str] = set()

        def visit(operation: Any) -> None:
            names.add(cast(str, operation.get_name()))

        self._module.walk(visit)
        return names

    def to_ttgir(self, metadata: dict[str, object]) -> None:
        """Run stock Triton's own way from TTIR to TTGIR, in place, filling `metadata`."""
        for stage in ("ttir", "ttgir"):
            self._module = self._stages[stage](self._module, metadata)

    def measure(self, scratch: Path, version: str) -> dict[str, int]:
        """Return what Triton `version` will need of the target's resources, by the names of the metadata.

        The passes that allocate run on a copy, for which the file `scratch` is written: the module itself stays as
        it is. Empty where they fail, which the lowering will do again, with a better reason.
        """
        scratch.write_text(self.text(), encoding="utf-8")
        passes = allocating_passes(self._capability, self._ptx_version, version)
        try:
            copy: Any = self._ir.parse_mlir_module(str(scratch), self._context)
            copy.context = self._context
            self._run(copy, passes)
        except RuntimeError:
            return {}
        noted = {name: copy.get_int_attr(attribute) for name, attribute in _NOTED.items()}
        return {name: cast(int, value) for name, value in noted.items() if value is not None}

    def to_llir(self, metadata: dict[str, object]) -> str:
        """Lower the module to LLVM IR text, filling `metadata`; the module is of no further use."""
        return str(self._stages["llir"](self._module, metadata))

    def to_ptx(self, llir: str, metadata: dict[str, object]) -> str:
        """Lower LLVM IR text to PTX, filling `metadata`."""
        return str(self._stages["ptx"](llir, metadata))

    def to_cubin(self, ptx: str, metadata: dict[str, object], assembler: Assembler) -> bytes:
        """Assemble PTX; raises UnknownToAssemblerError where `assembler` is older than the text or the target."""
        knobs: Any = import_module("triton.knobs")
        ptxas_error: type[Exception] = import_module("triton.runtime.errors").PTXASError
        with knobs.nvidia.scope():
            # For this stage alone: by its ptxas stock chooses the version of the PTX, too.
            knobs.nvidia.ptxas = knobs.nvidia.ptxas_blackwell = assembler.path
            try:
                return bytes(self._stages["cubin"](ptx, metadata))
            except ptxas_error as error:
                if _UNKNOWN.search(str(error)):
                    raise UnknownToAssemblerError(str(error)) from error
                raise


def _for_assembler(assembler: Assembler, ptx_version: int, ptx_options: str | None) -> dict[str, object]:
    """Return the options of stock Triton that an assembler needs, beside the PTX version that stock would write."""
    more: dict[str, object] = {}
    if assembler.ptx_version < ptx_version:
        more["ptx_version"] = assembler.ptx_version
    if assembler.numbers >= (13,) and cast(str, import_module("triton").__version__).startswith("3.6."):
        more["ptx_options"] = f"{ptx_options or ''} {SECOND_ALLOCATION}".strip()
    return more


def _binding(stock_pass: StockPass) -> Any | None:
    """Return the function that adds a pass to a pass manager; None for an optional pass that is not there."""
    libtriton: Any = import_module("triton._C.libtriton")
    group: Any = libtriton.nvidia.passes if stock_pass.group.startswith("nvidia.") else libtriton.passes
    group = getattr(group, stock_pass.group.removeprefix("nvidia."))
    add: Any = getattr(group, f"add_{stock_pass.name}", None)
    if add is None and not stock_pass.optional:
        raise BackendError(f"this Triton has no pass {stock_pass.group}.{stock_pass.name}", stage="passes")
    return add
