"""The C launcher of a bundle: a header and a source that need `cuda.h` and libcuda, nothing else.

What it gives the driver is what `launch/launcher.py` gives it; a test compares the two. The binary is a part of the
source, so that a program that was linked needs no file of the bundle. C99 and C++11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tlx_xdsl.element_types import SCALARS
from tlx_xdsl.targets import Target, target_named

from ..launch.launcher import DEFAULT_SHARED_LIMIT, PORTABLE_CLUSTER_SIZE, WARP_SIZE
from ..launch.parameters import TensorMapFormat, read_tensor_map_format, split_type
from .c_text import (
    ENCODE,
    ENCODE_ARGUMENT,
    FIND,
    HEADER,
    LAUNCH,
    LOAD,
    SCRATCH_BEGIN,
    SCRATCH_END,
    SHARED_MEMORY,
    SOURCE,
    WIDE_CLUSTER,
    c_names,
)
from .manifest import BundleArgument, Manifest

_SWIZZLES = ("NONE", "32B", "64B", "128B")


class CLauncher:
    """Writes the C of one bundle.

    Raises ValueError for a type that no launch could pass.
    """

    def __init__(self, manifest: Manifest, cubin: bytes):
        self._manifest = manifest
        self._cubin = cubin
        names = c_names([argument.name for argument in manifest.arguments])
        self._arguments = [_Argument(argument, name) for argument, name in zip(manifest.arguments, names, strict=True)]

    def header(self) -> str:
        """The text of the header."""
        m = self._manifest
        constants = ", ".join(f"{name} = {value}" for name, value in m.constants.items())
        about = [
            f"{m.kernel}, compiled by tlx_xdsl {m.tlx_xdsl_version} and Triton {m.triton_version} for {m.target}.",
            *([f"Compiled in: {constants}."] if constants else []),
        ]
        return HEADER.substitute(
            name=m.name,
            guard=f"TLX_BUNDLE_{m.name}_H",
            about="\n".join(f" * {in_comment(line)}" for line in about),
            unit="CTAs" if m.num_ctas == 1 else f"groups of {m.num_ctas} CTAs",
            arguments="\n".join(f" *   {in_comment(argument.described())}" for argument in self._arguments)
            or " *   none",
            parameters=self._parameters(),
        )

    def source(self) -> str:
        """The text of the source."""
        m = self._manifest
        return SOURCE.substitute(
            name=m.name,
            size=len(self._cubin),
            binary=_array(self._cubin),
            encode=ENCODE.substitute(name=m.name) if self._descriptors else "",
            find=FIND,
            load=self._load(),
            launch=self._launch(),
        )

    @property
    def _descriptors(self) -> list[_Argument]:
        return [argument for argument in self._arguments if argument.format is not None]

    def _parameters(self) -> str:
        first = ["CUstream stream", "unsigned int gridX", "unsigned int gridY", "unsigned int gridZ"]
        own = [parameter for argument in self._arguments for parameter in argument.parameters()]
        return ",\n    ".join([", ".join(first), *own])

    def _load(self) -> str:
        m = self._manifest
        setup: list[str] = []
        if m.shared > DEFAULT_SHARED_LIMIT:
            setup.append(SHARED_MEMORY.substitute(shared=m.shared))
        if prod(m.cluster) > PORTABLE_CLUSTER_SIZE:
            setup.append(WIDE_CLUSTER)
        return LOAD.substitute(
            name=m.name, entry=m.entry, fits=_fits(target_named(m.target)), target=m.target, setup="".join(setup)
        )

    def _launch(self) -> str:
        m = self._manifest
        scratch = m.global_scratch_size > 0
        attributes = _attributes(m)
        return LAUNCH.substitute(
            name=m.name,
            declared=self._parameters(),
            maps=_maps(len(self._descriptors)),
            checks="".join(argument.check() for argument in self._arguments) + _cluster_checks(m),
            encode="".join(argument.encode(index) for index, argument in enumerate(self._descriptors)),
            attribute_memory=f"    CUlaunchAttribute attributes[{len(attributes)}];\n" if attributes else "",
            attributes=_set_attributes(attributes),
            addresses=",\n        ".join([*self._addresses(), "&global_scratch", "&profile_scratch"]),
            grid_x="gridX" if m.num_ctas == 1 else f"gridX * {m.num_ctas}u",
            threads=WARP_SIZE * m.num_warps,
            shared=m.shared,
            scratch_begin=SCRATCH_BEGIN.substitute(size=m.global_scratch_size) if scratch else "",
            scratch_end=SCRATCH_END if scratch else "",
        )

    def _addresses(self) -> list[str]:
        """Return where the driver finds each kernel parameter."""
        maps = 0
        found: list[str] = []
        for argument in self._arguments:
            found += argument.addresses(maps)
            maps += argument.format is not None
        return found


class _Argument:
    """One argument of the kernel, as parameters of the C function."""

    def __init__(self, argument: BundleArgument, name: str):
        self.name = name
        self._python_name = argument.name
        self._spelled = argument.type
        self._type, self._divisor = split_type(argument.type)
        self.format: TensorMapFormat | None = None
        if argument.descriptor is not None:
            self.format = read_tensor_map_format(argument.descriptor, f"argument {argument.name!r}")
        elif not self._type.startswith("*") and self._type not in SCALARS:
            raise ValueError(f"argument {argument.name!r}: C has no type for {argument.type}")

    @property
    def _rank(self) -> int:
        return 0 if self.format is None else len(self.format.box)

    def parameters(self) -> list[str]:
        """Declarations."""
        if self.format is not None:
            return [
                f"void *{self.name}, const int32_t {self.name}_shape[{self._rank}], "
                f"const int64_t {self.name}_strides[{self._rank}]"
            ]
        if self._type.startswith("*"):
            return [f"{'const ' if self._type.startswith('*k') else ''}void *{self.name}"]
        return [f"{SCALARS[self._type].c} {self.name}"]

    def described(self) -> str:
        """A line for the header."""
        text = f"{self.name}: {self._spelled}"
        if self.name != self._python_name:
            text += f" ({self._python_name} in Python)"
        if self._type in ("fp16", "bf16"):
            text += ", as its bits"
        if self._divisor > 1:
            what = "an address" if self._type.startswith("*") else "a number"
            text += f", {what} that is a multiple of {self._divisor}"
        return text

    def check(self) -> str:
        """Statements that refuse what the kernel would misread."""
        text = ""
        if self._divisor > 1 and (self._type.startswith("*") or self._type[0] in "iu"):
            value = f"(uintptr_t){self.name}" if self._type.startswith("*") else self.name
            text = _refuse(
                f"{value} % {self._divisor} != 0",
                f"'{self.name}': the kernel was compiled for multiples of {self._divisor}",
            )
        if self.format is not None:
            last = self._rank - 1
            text = _refuse(
                f"{self.name}_strides[{last}] != 1", f"'{self.name}': the last dimension must be contiguous (stride 1)"
            )
        return text

    def encode(self, index: int) -> str:
        """Statements that make the tensor map."""
        if self.format is None:
            return ""
        return ENCODE_ARGUMENT.substitute(
            name=self.name,
            index=index,
            rank=self._rank,
            box=", ".join(f"{extent}u" for extent in reversed(self.format.box)),
            type=self.format.data_type.name.removeprefix("PACKED_"),
            element_bytes=self.format.element_bytes,
            swizzle=_SWIZZLES[self.format.swizzle],
            packing=2 if self.format.fp4_padded else 1,
        )

    def addresses(self, index: int) -> list[str]:
        """Addresses of the kernel's parameters; `index` counts the tensor maps."""
        if self.format is None:
            return [f"(void *)&{self.name}"]
        parts = [f"(void *)&{self.name}_{part}[{dim}]" for part in ("shape", "strides") for dim in range(self._rank)]
        return [f"&maps[{index}]", *parts]


def _refuse(condition: str, message: str) -> str:
    return f'    if ({condition})\n        return fail(CUDA_ERROR_INVALID_VALUE, "{message}");\n'


def _cluster_checks(manifest: Manifest) -> str:
    return "".join(
        _refuse(f"grid{axis} % {size}u != 0", f"grid{axis} must be a multiple of the cluster's {size} CTAs")
        for axis, size in zip("XYZ", manifest.cluster, strict=True)
        if size > 1 and manifest.num_ctas == 1
    )


def _attributes(manifest: Manifest) -> dict[str, list[str]]:
    """The launch attributes, in the order of the launcher in Python: what each sets, by its end of the name."""
    found: dict[str, list[str]] = {}
    if manifest.launch_pdl:
        found["PROGRAMMATIC_STREAM_SERIALIZATION"] = ["programmaticStreamSerializationAllowed = 1"]
    if manifest.launch_cooperative_grid:
        found["COOPERATIVE"] = ["cooperative = 1"]
    if prod(manifest.cluster) > 1:
        sizes = zip("xyz", manifest.cluster, strict=True)
        found["CLUSTER_DIMENSION"] = [f"clusterDim.{axis} = {size}" for axis, size in sizes]
    return found


def _set_attributes(attributes: Mapping[str, Sequence[str]]) -> str:
    lines: list[str] = ["memset(attributes, 0, sizeof attributes);"] if attributes else []
    for index, (name, values) in enumerate(attributes.items()):
        lines.append(f"attributes[{index}].id = CU_LAUNCH_ATTRIBUTE_{name};")
        lines.extend(f"attributes[{index}].value.{value};" for value in values)
    if attributes:
        lines += ["config.attrs = attributes;", f"config.numAttrs = {len(attributes)};"]
    return "".join(f"    {line}\n" for line in lines)


def _maps(count: int) -> str:
    """Memory for tensor maps. C99 can't ask for the alignment that the driver wants, 128 bytes with newer ones."""
    if not count:
        return ""
    return (
        f"    unsigned char storage[{128 * (count + 1)}];\n"
        "    CUtensorMap *maps = (CUtensorMap *)(((uintptr_t)storage + 127) & ~(uintptr_t)127);\n"
    )


def _fits(target: Target) -> str:
    """The condition that a GPU of capability `major`.`minor` runs the target's binary code."""
    capabilities = [10 * major + minor for major in range(8, 13) for minor in range(10)]
    return " || ".join(
        f"(major == {capability // 10} && minor == {capability % 10})"
        for capability in capabilities
        if target.runs_on(capability)
    )


def _array(content: bytes) -> str:
    rows = [content[start : start + 24] for start in range(0, len(content), 24)]
    return ",\n".join("    " + ",".join(map(str, row)) for row in rows)


def in_comment(text: str) -> str:
    """`text` as a part of a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")
