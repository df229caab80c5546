"""The Triton that compiles: the installed one, or one of another version that lies in a folder of its own."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tlx_xdsl.errors import InputError

from .options import installed_triton_version


@dataclass(frozen=True)
class Toolchain:
    """A Triton whose workers compile: `folder` is what `pip install --target` has filled, None the installed one."""

    version: str
    """The whole version, such as `3.7.1`."""
    folder: Path | None = None

    def __post_init__(self):
        """Refuse a folder that holds no Triton of this version."""
        if self.folder is not None and self.version not in (found := versions_in(self.folder)):
            has = f"Triton {', '.join(found)}" if found else "no Triton"
            raise InputError(f"expected Triton {self.version} in {self.folder}, found {has}")

    @property
    def package(self) -> Path | None:
        """The folder of the package `triton`; None where none is installed."""
        if self.folder is not None:
            return self.folder / "triton"
        return installed_package()

    def tool(self, name: str) -> Path | None:
        """Return a program that the version brings, such as `ptxas` or `nvdisasm`; None where it has none."""
        path = None if self.package is None else self.package / "backends" / "nvidia" / "bin" / name
        return path if path is not None and path.is_file() else None


def installed_package() -> Path | None:
    """Return the folder of the installed package `triton`, which is not imported; None without one."""
    spec = find_spec("triton")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def versions_in(folder: Path) -> list[str]:
    """Return the versions of Triton that a folder holds, by the names of its `dist-info`."""
    names = (each.name.removesuffix(".dist-info") for each in folder.glob("triton-*.dist-info"))
    return sorted(name.removeprefix("triton-") for name in names)


def installed_toolchain() -> Toolchain | None:
    """Return the installed Triton; None without one."""
    version = installed_triton_version()
    return None if version is None else Toolchain(version)
