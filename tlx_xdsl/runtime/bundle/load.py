"""Launching a kernel from a bundle, with nothing but Python's standard library and the CUDA driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tlx_xdsl.grid import sizes_of
from tlx_xdsl.targets import TARGETS, target_named

from ..launch.cuda_driver import CudaDriver, default_driver
from ..launch.launcher import Launcher, launch_facts
from ..launch.parameters import ArgumentSpec, split_type
from ..launch.tensor_descriptor import dtype_name
from .c_text import is_identifier
from .manifest import MANIFEST, BundleError, Manifest, bundle_error, read_manifest, sha256

_NEEDED = "cubin"
"""The one file that a launch needs; the others may be left out when a bundle is shipped."""


class _CheckedLauncher(Launcher):
    """A launcher that looks at the GPU before it loads the binary."""

    def __init__(self, path: Path, manifest: Manifest, cubin: bytes, driver: CudaDriver):
        self._path, self._manifest = path, manifest
        super().__init__(
            cubin,
            name=manifest.entry,
            arguments=[ArgumentSpec(argument.name, argument.type) for argument in manifest.arguments],
            **launch_facts(manifest, driver=driver),
        )

    def _load(self) -> int:
        _check_gpus(self._path, self._manifest, [self._driver.compute_capability()])
        return super()._load()


class LoadedBundle:
    """A kernel of a bundle, ready to be launched: `load` makes it.

    manifest: what the bundle says of the kernel.
    path:     the kernel's folder.

    It is called as a `Launcher`, and takes arguments by name, too: `kernel(grid, x, y, n=n, stream=stream)`. A
    kernel's own argument `stream` can only be passed by its place. Making one needs no GPU: the binary is loaded at
    the first launch in a CUDA context, once per context.
    """

    def __init__(self, path: Path, manifest: Manifest, cubin: bytes, driver: CudaDriver):
        self.path = path
        self.manifest = manifest
        self._launcher = _CheckedLauncher(path, manifest, cubin, driver)

    def __call__(self, grid: int | Sequence[int], /, *args: Any, stream: Any = None, **named: Any) -> None:
        """Enqueue the kernel on a grid of one to three numbers; return without waiting for it.

        Raises BundleError for wrong arguments, for an impossible grid, and on a GPU that the bundle is not for;
        CudaDriverError if the driver refuses the kernel or the launch.
        """
        self.bind(grid, *args, stream=stream, **named)()

    def bind(self, grid: int | Sequence[int], /, *args: Any, stream: Any = None, **named: Any) -> Callable[[], None]:
        """Prepare a launch and return a callable that repeats it with almost no host work: see `Launcher.bind`."""
        try:
            return self._launcher.bind(self._in_ctas(grid), *self._in_order(args, named), stream=stream)
        except (TypeError, ValueError, OverflowError) as error:
            raise bundle_error(self.path / MANIFEST, str(error)) from error

    def _in_ctas(self, grid: int | Sequence[int]) -> int | Sequence[int]:
        """The grid in CTAs: several that share a tile stand side by side."""
        ctas = self.manifest.num_ctas
        if ctas == 1:
            return grid
        x, y, z = sizes_of(grid)
        return x * ctas, y, z

    def _in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """All arguments in their order.

        Raises TypeError as a Python function does.
        """
        if not named:
            return args
        kernel = f"kernel {self.manifest.entry!r}"
        names = [argument.name for argument in self.manifest.arguments]
        for name in named:
            if name not in names:
                raise TypeError(f"{kernel}: there is no argument '{name}', expected {', '.join(names) or 'none'}")
            if name in names[: len(args)]:
                raise TypeError(f"{kernel}: got two values for the argument '{name}'")
        missing = [name for name in names[len(args) :] if name not in named]
        if missing:
            raise TypeError(f"{kernel}: no value for the argument '{missing[0]}'")
        return (*args, *(named[name] for name in names[len(args) :]))

    def __repr__(self) -> str:
        """Name, target and arguments."""
        arguments = ", ".join(f"{argument.name}: {argument.type}" for argument in self.manifest.arguments)
        return f"<LoadedBundle {self.manifest.name}({arguments}) for {self.manifest.target}>"


def load(folder: str | PathLike[str], name: str | None = None, *, driver: CudaDriver | None = None) -> LoadedBundle:
    """The kernel of the bundle in `folder`; `name` says which, where there are several.

    `folder` is the one that `tlx compile --bundle` was given, or that of one kernel in it. Needs neither Triton nor
    the compiler, and a GPU only for the launch: where there are GPUs, one of them must be such as the bundle is for.

    Raises BundleError, located in the bundle, for a file that is missing or damaged, a manifest that is none or is
    newer than this tlx_xdsl, another GPU, and a kernel that is not there or not named.
    """
    path = Path(folder)
    try:
        path = _kernel_folder(path, name)
        manifest, cubin = _read(path)
    except (OSError, ValueError) as error:
        # A folder in the place of a file, one that may not be read, a name that no file can have.
        raise bundle_error(path, f"the bundle can't be read: {error}") from error
    _check_fits(path, manifest)
    chosen = driver or default_driver()
    if gpus := chosen.capabilities():
        _check_gpus(path, manifest, gpus)
    try:
        return LoadedBundle(path, manifest, cubin, chosen)
    except (ValueError, NotImplementedError) as error:
        raise bundle_error(path / MANIFEST, str(error)) from error
    except (TypeError, KeyError, OverflowError) as error:
        raise bundle_error(path / MANIFEST, f"the manifest does not fit: {error}") from error


def _check_fits(path: Path, manifest: Manifest) -> None:
    """Refuse a manifest whose entries have the right types, and no meaning."""
    where = path / MANIFEST
    if not is_identifier(manifest.name):
        raise bundle_error(where, f"the manifest does not fit: {manifest.name!r} is no name of a bundle")
    if not manifest.entry or not manifest.entry.isascii() or not manifest.entry.isprintable():
        raise bundle_error(where, f"the manifest does not fit: {manifest.entry!r} is no name of a kernel")
    for argument in manifest.arguments:
        plain, _ = split_type(argument.type)
        if plain.startswith("*") and dtype_name(plain.lstrip("*").removeprefix("k")) is None:
            raise bundle_error(where, f"the manifest does not fit: '{argument.type}' is no type of an argument")
    try:
        target_named(manifest.target)
    except ValueError as error:
        raise bundle_error(where, str(error)) from error


def kernels_in(folder: str | PathLike[str]) -> tuple[str, ...]:
    """Names of the kernels in a folder of bundles, in order."""
    return tuple(sorted(path.parent.name for path in Path(folder).glob(f"*/{MANIFEST}") if path.parent.name[0] != "."))


def _kernel_folder(folder: Path, name: str | None) -> Path:
    """The folder of one kernel."""
    if name is None and (folder / MANIFEST).is_file():
        return folder
    if not folder.is_dir():
        raise bundle_error(folder, "no such folder" if not folder.exists() else "expected the folder of a bundle")
    names = kernels_in(folder)
    if not names:
        raise bundle_error(folder, f"there is no bundle here: expected {MANIFEST}, or a folder of a kernel that has it")
    if name is None and len(names) == 1:
        return folder / names[0]
    if name is None:
        raise bundle_error(folder, f"there are several kernels here: name one of {', '.join(names)}")
    if name not in names:
        raise bundle_error(folder, f"there is no kernel '{name}' here, its kernels are {', '.join(names)}")
    return folder / name


def _read(path: Path) -> tuple[Manifest, bytes]:
    """The manifest and the binary of the kernel in the folder `path`, checked."""
    where = path / MANIFEST
    while True:
        try:
            content = where.read_bytes()
        except FileNotFoundError as error:
            raise bundle_error(where, "the bundle's manifest is missing") from error
        try:
            return _read_files(path, read_manifest(where, content))
        except BundleError:
            # The bundle may have been replaced between two files.
            if not where.is_file() or where.read_bytes() == content:
                raise


def _read_files(path: Path, manifest: Manifest) -> tuple[Manifest, bytes]:
    if _NEEDED not in manifest.files:
        raise bundle_error(path / MANIFEST, f"the manifest does not fit: it names no {_NEEDED}")
    needed = b""
    for kind, file in manifest.files.items():
        place = path / file.name
        if Path(file.name).name != file.name:
            raise bundle_error(path / MANIFEST, f"the manifest does not fit: '{file.name}' is no name of a file")
        try:
            content = place.read_bytes()
        except FileNotFoundError as error:
            if kind != _NEEDED:
                continue
            raise bundle_error(place, f"the bundle's {kind} is missing") from error
        if (found := sha256(content)) != file.sha256:
            raise bundle_error(
                place,
                f"the bundle's {kind} is damaged: expected the SHA-256 {file.sha256[:16]}..., found {found[:16]}...",
                "copy the bundle again, or compile the kernel again",
            )
        if kind == _NEEDED:
            needed = content
    return manifest, needed


def _check_gpus(path: Path, manifest: Manifest, gpus: Sequence[tuple[int, int]]) -> None:
    """Refuse a bundle that runs on none of `gpus`, given by their compute capabilities.

    The PTX is no way out: what is architecture-specific in it is so, too, and to compile it takes a compiler.
    """
    where = path / MANIFEST
    try:
        target = target_named(manifest.target)
    except ValueError as error:
        raise bundle_error(where, str(error)) from error
    capabilities = sorted({10 * major + minor for major, minor in gpus})
    if any(map(target.runs_on, capabilities)):
        return
    runs_on = [each.capability for each in TARGETS if target.runs_on(each.capability)]
    own = [each.name for each in TARGETS if each.capability in capabilities]
    raise bundle_error(
        where,
        f"the bundle is for {target.name}, which runs on GPUs of compute capability {_spelled(runs_on)}; "
        f"found {_spelled(capabilities)}",
        *(f"compile the kernel with --target {name}" for name in own),
    )


def _spelled(capabilities: Sequence[int]) -> str:
    return " or ".join(f"{capability // 10}.{capability % 10}" for capability in capabilities)
