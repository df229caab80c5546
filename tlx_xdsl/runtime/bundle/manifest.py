"""The manifest of a bundle: all that a launch must know, as JSON.

`Manifest.to_json` writes it and `read_manifest` reads it; nothing else knows the form of the file. It ends with a
checksum of its own, of everything before it in a canonical form: new line ends or another indentation do no harm.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

from tlx_xdsl.errors import CompilationError, SourceLocation

FORMAT = "tlx_xdsl bundle"
"""The manifest's entry `format`."""

VERSION = 1
"""The form of the manifest. It rises when an older reader would go wrong."""

MANIFEST = "manifest.json"
"""The manifest's name in the folder of a kernel."""


@dataclass(frozen=True)
class BundleFile:
    """A file of the bundle."""

    name: str
    sha256: str
    """Of its content, in hexadecimal."""


@dataclass(frozen=True)
class BundleArgument:
    """An argument that a launch gives the kernel."""

    name: str
    type: str
    """As in a signature: `*fp16:16`, `i32`, `tensordesc<fp16[128, 64]>`."""
    descriptor: dict[str, Any] | None = None
    """For a tensor descriptor what the compiler decided about its tensor map, with the names of Triton's metadata:
    `block_size` (the TMA box in elements, outermost first), `swizzle` (0 none, 1, 2, 3 for spans of 32, 64, 128
    bytes), `elem_type` (PTX's number of the element type), `elem_size` (bytes), `fp4_padded`."""


@dataclass(frozen=True)
class Manifest:
    """The contents of a bundle, and the launch of its kernel. Sizes are in bytes, tensor memory in columns."""

    name: str
    """The bundle's name: its folder, and the prefix of the C functions."""
    kernel: str
    """The kernel's name in Python."""
    entry: str
    """Its name in the binary."""
    target: str
    """The GPU architecture that the binary is for, such as sm_90a."""
    arguments: list[BundleArgument]
    """The arguments of a launch, in order."""
    constants: dict[str, Any]
    """Values that were compiled in; for information. What JSON has no form for is text."""
    num_warps: int
    """Warps of a CTA in total, those of warp-specialised tasks included."""
    num_ctas: int
    """CTAs that share one tile: a launch has so many for each entry of its grid along x."""
    cluster: list[int]
    """CTAs of a cluster along x, y and z."""
    shared: int
    """Dynamic shared memory of a CTA."""
    tmem_columns: int
    """Columns of tensor memory of a CTA, which the kernel allocates itself."""
    global_scratch_size: int
    """Scratch memory of each CTA, which the launch allocates."""
    global_scratch_align: int
    profile_scratch_size: int
    profile_scratch_align: int
    launch_pdl: bool
    """True if the kernel may start before its predecessor in the stream has finished."""
    launch_cooperative_grid: bool
    """True if all CTAs must be resident at once."""
    triton_version: str
    """The stock Triton that made the binary; for information, as is what follows."""
    tlx_xdsl_version: str
    build: dict[str, Any]
    """Options of the compile, and what ptxas spent."""
    files: dict[str, BundleFile] = field(default_factory=dict[str, BundleFile])
    """The bundle's files by what they are: cubin, ptx, ttgir, header, source."""

    @property
    def tensordesc_meta(self) -> tuple[dict[str, Any], ...]:
        """Return what the launcher must know of each tensor descriptor, in order."""
        return tuple(argument.descriptor for argument in self.arguments if argument.descriptor is not None)

    def to_json(self) -> str:
        """The text of the manifest's file."""
        data = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(data | {"sha256": _checksum(data)}, indent=2) + "\n"


def plain_json(value: Any) -> Any:
    """`value` where JSON has a form for it, else its text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [plain_json(each) for each in cast(list[Any], value)]
    return value if isinstance(value, float) and value - value == 0 else str(value)


def sha256(content: bytes) -> str:
    """The SHA-256 of `content` in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _checksum(data: Mapping[str, Any]) -> str:
    """The SHA-256 of `data` in a form that does not depend on how the JSON is laid out."""
    return sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode())


def read_manifest(path: Path, content: bytes) -> Manifest:
    """The manifest that the file at `path` holds.

    Raises BundleError for what is no manifest, for one that was changed, and for one of a newer form.
    """
    try:
        data: object = json.loads(content)
    except UnicodeDecodeError as error:
        raise bundle_error(path, f"the manifest is damaged: it is no text ({error.reason})") from error
    except json.JSONDecodeError as error:
        raise bundle_error(
            path, f"the manifest is damaged: {error.msg}", line=error.lineno, column=error.colno
        ) from error
    except (RecursionError, ValueError) as error:
        # Lists in lists without an end, or a number of thousands of digits.
        raise bundle_error(path, f"the manifest is damaged: {error}") from error
    if not isinstance(data, dict) or cast(dict[str, Any], data).get("format") != FORMAT:
        raise bundle_error(path, f'this is no manifest of a bundle: expected the entry "format": "{FORMAT}"')
    found = cast(dict[str, Any], data)
    version = found.pop("version", None)
    if not isinstance(version, int) or version < 1:
        raise bundle_error(path, f"the manifest is damaged: expected a version, found {version!r}")
    if version > VERSION:
        raise bundle_error(
            path,
            f"the bundle has the format version {version}, this tlx_xdsl reads versions up to {VERSION}",
            "install the tlx_xdsl that wrote it, or a later one",
        )
    stated = found.pop("sha256", None)
    if stated != _checksum(found | {"version": version}):
        raise bundle_error(
            path, "the manifest is damaged: its entries are not those that its checksum was made of",
            "a manifest is not edited: compile the kernel again",
        )  # fmt: skip
    del found["format"]
    return cast(Manifest, _read(Manifest, found, "the manifest", path))


def _read(type_: Any, value: object, what: str, path: Path) -> Any:
    """`value` as JSON gave it as an instance of `type_`; `what` names it in errors."""
    origin, arguments = get_origin(type_), get_args(type_)
    if type_ is Any:
        return value
    if type(None) in arguments:  # `X | None`
        return None if value is None else _read(arguments[0], value, what, path)
    if isinstance(value, list) and origin is list:
        items = enumerate(cast(list[object], value))
        return [_read(arguments[0], item, f"{what}[{index}]", path) for index, item in items]
    if isinstance(value, dict) and origin is dict:
        entries = cast(dict[str, object], value).items()
        return {name: _read(arguments[1], entry, f"{what}['{name}']", path) for name, entry in entries}
    if isinstance(value, dict) and hasattr(type_, "__dataclass_fields__"):
        return _read_record(type_, cast(dict[str, object], value), what, path)
    if origin is None and type(cast(Any, value)) is type_:
        return cast(Any, value)
    name = type_.__name__ if origin is None else str(type_)
    found = json.dumps(cast(Any, value))
    raise bundle_error(path, f"the manifest does not fit: expected {what} to be {name}, found {found}")


def _read_record(type_: Any, data: dict[str, object], what: str, path: Path) -> Any:
    hints = get_type_hints(type_)
    names = [each.name for each in fields(type_)]
    for name in (*names, *data):
        if name not in data or name not in names:
            has = "lacks" if name in names else "has the unknown"
            raise bundle_error(path, f"the manifest does not fit: {what} {has} entry '{name}'")
    return type_(**{name: _read(hints[name], data[name], f"'{name}'", path) for name in names})


class BundleError(CompilationError):
    """A bundle that can't be used: damaged, foreign, too new, for another GPU, or launched with wrong arguments.

    It is a CompilationError, located in one of the bundle's files: so it reads like every other error of ours, and
    who catches those catches it, too. Where another exception is its cause (the launcher's TypeError for a wrong
    argument), that is its `__cause__`.
    """


def bundle_error(path: Path, message: str, *notes: str, line: int = 0, column: int = 0) -> BundleError:
    """The error `message` at a file or folder of a bundle."""
    return BundleError(message, SourceLocation(str(path), line, column), notes=notes)
