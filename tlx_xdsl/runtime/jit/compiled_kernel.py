"""A compiled kernel as Triton's runtime knows it, with the stages of our compiler and a launcher of our own."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from types import SimpleNamespace
from typing import Any, cast

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel
from triton.compiler.compiler import AsmDict

from tlx_xdsl.frontend.python.source import Fixed, Signature
from tlx_xdsl.targets import target_of

from ..driver.specialization import CLUSTER_OPTION, Specialization
from ..launch.cuda_driver import FunctionAttribute, default_driver
from ..launch.launch_graph import refuse_while_capturing
from ..launch.launcher import PORTABLE_CLUSTER_SIZE, Launcher, launch_facts
from ..launch.parameters import ArgumentSpec


class _Stages(AsmDict):
    """`kernel.asm`: `ttir` (what the frontend made), `handoff` (what stock Triton got), `ttgir`, `llir`, `ptx`,
    `cubin` and `sass`, and the module after each pass of ours under the pass's name.

    The passes run again when one of theirs is asked for first.
    """

    def __init__(self, files: dict[str, Any], kernel: TLXCompiledKernel):
        super().__init__(files)
        self._kernel = kernel

    def __missing__(self, key: str) -> Any:
        if key == "sass":
            return super().__missing__(key)
        for stage, text in self._kernel.run_passes().items():
            self.setdefault(stage, text)
        if key not in self:
            raise KeyError(f"there is no stage '{key}': expected one of {', '.join([*self, 'sass'])}")
        return self[key]


class TLXCompiledKernel(CompiledKernel):
    """A kernel compiled by tlx_xdsl, launched by Triton.

    `metadata` has what stock Triton's has, and `cluster` (CTAs along x, y, z, or None), `registers` (32-bit, per
    thread), `spill_store_bytes` and `spill_load_bytes` (per thread), `kernel_num_warps` (as asked for; `num_warps` is
    that of all tasks together).
    """

    module: Any = None
    """Triton's looks at it when an object is deleted, also one that could not be made of damaged files."""
    spelling: Callable[[str], str] | None = None
    """Spells the TTGIR of `asm` for readers who know other names."""

    def __init__(self, src: Any, metadata_group: dict[str, str], hash: str):
        super().__init__(src, metadata_group, hash)
        metadata = cast(Any, self.metadata)
        if getattr(metadata, CLUSTER_OPTION, None) is not None:
            # JSON has made a list of it.
            vars(self)["metadata"] = metadata._replace(ctas_per_cga=tuple(metadata.ctas_per_cga))
        files = dict(self.asm)
        if self.spelling is not None and "ttgir" in files:
            files["ttgir"] = self.spelling(files["ttgir"])
        self.asm = _Stages(files, self)

    def _init_handles(self) -> None:
        if self.module is not None:
            return
        refuse_while_capturing(self.name)
        super()._init_handles()
        if prod(cast(Any, self.metadata).cluster or ()) > PORTABLE_CLUSTER_SIZE:
            # Triton asks for this by `num_ctas` only.
            attribute = FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            default_driver().set_function_attribute(cast(int, self.function), attribute, 1)

    def run_passes(self) -> dict[str, str]:
        """Run the frontend and our passes again; the text after each, under its name."""
        from ..driver.compilation import compile_text

        stages: dict[str, str] = {}
        compile_text(
            self.src.fn.source,
            self.specialization,
            triton_version=cast(Any, self.metadata).triton_version,
            on_stage=lambda stage, text: stages.update({stage: text}),
        )
        return stages

    @property
    def specialization(self) -> Specialization:
        """Return what our compiler was asked for."""
        options = cast(Any, self.metadata)._asdict()
        options["num_warps"] = options["kernel_num_warps"]
        return specialization_of_source(self.src, cast(Any, self.metadata).target, options)

    @cached_property
    def launcher(self) -> Launcher:
        """Launches the kernel with nothing but the CUDA driver; takes the runtime arguments, tuples flattened."""
        refuse_while_capturing(self.name)
        metadata = cast(Any, self.metadata)
        return Launcher(
            self.kernel,
            name=self.name,
            arguments=_runtime_arguments(self.src.signature),
            **launch_facts(metadata, cluster=metadata.cluster or (1, 1, 1)),
        )

    def runtime_arguments(self, values: list[Any]) -> list[Any]:
        """Return what the launcher takes of the values of all parameters."""
        flat: list[Any] = []
        for spelled, value in zip(self.src.signature.values(), values, strict=True):
            _flatten(spelled, value, flat)
        return flat


def _runtime_arguments(signature: dict[str, Any]) -> list[ArgumentSpec]:
    specs: list[ArgumentSpec] = []

    def add(name: str, spelled: Any) -> None:
        if isinstance(spelled, tuple):
            for index, item in enumerate(cast("tuple[Any, ...]", spelled)):
                add(f"{name}[{index}]", item)
        elif spelled != "constexpr":
            specs.append(ArgumentSpec(name, spelled))

    for name, spelled in signature.items():
        add(name, spelled)
    return specs


def _flatten(spelled: Any, value: Any, flat: list[Any]) -> None:
    if isinstance(spelled, tuple):
        for item, part in zip(cast("tuple[Any, ...]", spelled), value, strict=True):
            _flatten(item, part, flat)
    elif spelled != "constexpr":
        flat.append(value)


def specialization_of_source(src: ASTSource, target: GPUTarget, options: Mapping[str, Any]) -> Specialization:
    """Return what our compiler is asked for by one of Triton's requests."""
    names = cast("list[str]", src.fn.arg_names)
    wanted = specialization_of(names, src.signature, src.constants, src.attrs, options, cast(int, target.arch))
    return replace(wanted, symbol=symbol_of(src))


def symbol_of(src: ASTSource) -> str | None:
    """The kernel's name as `jit(repr=...)` makes it of what it is compiled for; None without that."""
    if src.fn._repr is None:
        return None
    constants = {src.fn.arg_names[path[0]]: value for path, value in src.constants.items() if len(path) == 1}
    return src.fn.repr(SimpleNamespace(constants=constants, signature=src.signature))


# --- what Triton's requests ask for -----------------------------------------------------------------------------------
#
# From what Triton's runtime says of a launch to what our compiler is asked for.


Path = tuple[int, ...]
"""The position of an argument: its index, then the indices into tuples."""

_DIVISIBILITY = "tt.divisibility"


def specialization_of(
    names: Sequence[str],
    signature: Mapping[str, Any],
    constants: Mapping[Path, Any],
    attributes: Mapping[Path, Sequence[Sequence[Any]]],
    options: Mapping[str, Any],
    capability: int,
) -> Specialization:
    """Return what to compile.

    names:       the kernel's parameters, in order.
    signature:   the type of each as Triton spells it; `constexpr`, also within tuples, for what `constants` holds.
    attributes:  what is known of arguments, such as `[["tt.divisibility", 16]]`.
    options:     the launch options, among them `ctas_per_cga`.
    """
    types: dict[str, Signature] = {}
    constexprs: dict[str, Any] = {}
    for index, name in enumerate(names):
        path = (index,)
        if signature[name] == "constexpr":
            constexprs[name] = constants[path]
        else:
            types[name] = _typed(signature[name], path, constants, attributes)
    x, y, z = options.get(CLUSTER_OPTION) or (1, 1, 1)
    return Specialization(
        types,
        constexprs,
        target_of(capability).name,
        options["num_warps"],
        options["num_ctas"],
        (x, y, z),
        bool(options.get("debug")),
        options.get("maxnreg"),
        enable_fp_fusion=options.get("enable_fp_fusion"),
    )


def _typed(
    spelled: Any, path: Path, constants: Mapping[Path, Any], attributes: Mapping[Path, Sequence[Sequence[Any]]]
) -> Signature:
    if isinstance(spelled, tuple):
        spelled_items = cast("tuple[Any, ...]", spelled)
        items = tuple(_typed(item, (*path, index), constants, attributes) for index, item in enumerate(spelled_items))
        cls: Any = type(spelled_items)
        return cls(*items) if hasattr(cls, "_fields") else items
    if spelled == "constexpr":
        return Fixed(constants[path])
    known = {str(name): value for name, value in attributes.get(path, ())}
    return f"{spelled}:{known[_DIVISIBILITY]}" if _DIVISIBILITY in known else str(spelled)
