"""Build the packages, check what is in them, and use each in a clean environment.

    python -m release.packages                   (`make packages`: what CI runs; packages into dist/)
    python -m release.packages --without-triton  (skip the installation that downloads stock Triton)

The wheel must hold the package's files as git has them and nothing else; both packages must be what a package index
takes (twine), and a stranger's first commands must work with them, away from the sources. What the wheel brings with
it is written beside them, as a bill of materials (CycloneDX, JSON). A wheel that is larger than a release may be is a
warning here: `make release` refuses it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from tlx_xdsl.version import __version__

ROOT = Path(__file__).resolve().parents[1]

LARGEST_WHEEL = 3_000_000
"""Bytes."""

PACKAGE_FILE = re.compile(
    r"tlx_xdsl/(?:[\w/]+\.pyi?|py\.typed|runtime/repro/\w+\.txt|tools/documents\.schema\.json|"
    r"timing/show/viewer/\w+\.(?:html|css|js)|"
    r"ttl/metalium/include/[\w/]+\.(?:h|cpp))|"
    r"tlx_xdsl-[\w.]+\.dist-info/(?:METADATA|WHEEL|RECORD|entry_points\.txt|licenses/LICENSE)"
)
"""All that a wheel may hold: Python, texts of reproducers, the schema of reports, the page of timelines, the headers of
the C++ machine for TT-Metalium, and the metadata."""


class PackageError(Exception):
    """A package that must not be released; the message says what is wrong with it."""


def foreign_files(names: Collection[str], tracked: Collection[str]) -> Iterator[str]:
    """Yield faults of a wheel's list of files, a line each; `tracked` are those that git has of the package."""
    for name in sorted(names):
        if not PACKAGE_FILE.fullmatch(name):
            yield f"{name} does not belong into a wheel"
        elif ".dist-info/" not in name and name not in tracked:
            yield f"{name} is not in the repository"
    yield from (f"{name} is missing" for name in sorted(set(tracked) - set(names)))


def check_wheel(wheel: Path, tracked: Collection[str]) -> str:
    """Describe the contents of a wheel.

    Raises PackageError for a file too many or too few.
    """
    names = zipfile.ZipFile(wheel).namelist()
    if wrong := list(foreign_files(names, tracked)):
        raise PackageError("\n".join(f"{wheel.name}: {line}" for line in wrong))
    return f"{wheel.name}: {len(names)} files, {wheel.stat().st_size:,} bytes"


def too_large(wheel: Path) -> str | None:
    """Say by how much a wheel is too large; None for one that a release may have."""
    size = wheel.stat().st_size
    return f"{wheel.name}: expected at most {LARGEST_WHEEL:,} bytes, found {size:,}" if size > LARGEST_WHEEL else None


def tracked_files() -> set[str]:
    """The files of the package, as git has them."""
    listed = _output(["git", "ls-files", "-z", "tlx_xdsl"])
    return {name for name in listed.split("\0") if name}


def first_kernel() -> str:
    """The kernel of the README."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)[0]


WITHOUT_TRITON = """
import importlib.util, pathlib, sys
import tlx_xdsl, tlx_xdsl.language, tlx_xdsl.language.tlx
here = pathlib.Path(tlx_xdsl.__file__)
if not here.is_relative_to(sys.prefix) or importlib.util.find_spec("triton"):
    sys.exit(f"expected {here} below {sys.prefix}, and no Triton")
print(f"tlx_xdsl {tlx_xdsl.__version__} works without Triton")
"""


def try_package(package: Path, *, triton: bool, bill: Path | None = None) -> None:
    """Install a package into a fresh environment and use it there, away from the sources; `bill` lists what came.

    Raises subprocess.CalledProcessError where a command fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        # The environment has nothing but what the package brings.
        _run([sys.executable, "-m", "venv", "--without-pip", folder])
        wanted = f"{package}[nvidia]" if triton else str(package)
        _run([sys.executable, "-m", "pip", "--python", python, "install", "--progress-bar", "off", wanted])
        if bill is not None:
            write_bill(python, bill)
        Path(folder, "tile_copy.py").write_text(first_kernel(), encoding="utf-8")
        commands = [
            ["bin/tlx-opt", "--version"],
            ["bin/tlx", "run", "tile_copy.py:tile_copy", "--grid", "2", "--arg", "src_desc=randn[128,64]", "--arg",
             "dst_desc=nan[128,64]", "--check", "dst_desc=src_desc"],
        ]  # fmt: skip
        if triton:
            commands.append(["bin/tlx", "compile", "tile_copy.py:tile_copy", "--target", "sm_90a", "-o", "build"])
        else:
            commands.append(["bin/python", "-c", WITHOUT_TRITON])
        for command in commands:
            _run(command, folder)
        if triton and not Path(folder, "build", "tile_copy.cubin").exists():
            raise PackageError(f"{package.name}: tlx compile wrote no cubin")


def write_bill(python: str, path: Path) -> None:
    """Write the bill of materials of an environment with the package.

    Raises subprocess.CalledProcessError where the generator fails.
    """
    command = ["-m", "cyclonedx_py", "environment", "--pyproject", "pyproject.toml", "--mc-type", "library"]
    _run([sys.executable, *command, "--output-reproducible", "--output-file", str(path), python])
    bill = json.loads(path.read_text(encoding="utf-8"))
    # The generator does not know a version that pyproject.toml leaves to the build.
    name = bill["metadata"]["component"]["name"]
    bill["metadata"]["component"] |= {"version": __version__, "purl": f"pkg:pypi/{name}@{__version__}"}
    path.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


def build(folder: Path) -> tuple[Path, Path]:
    """Build both packages into a folder, which is emptied before; the wheel and the source distribution."""
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "build", "--outdir", str(folder)])
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def make(folder: Path, *, with_triton: bool) -> Path:
    """Build, check and try the packages, and write the wheel's bill of materials beside it; the wheel.

    Raises PackageError or subprocess.CalledProcessError for what must not be released.
    """
    wheel, source = build(folder)
    print(check_wheel(wheel, tracked_files()), flush=True)
    _run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source)])
    try_package(wheel, triton=False, bill=folder / f"tlx_xdsl-{__version__}.cdx.json")
    try_package(source, triton=False)
    # Stock Triton exists for Linux.
    if with_triton and sys.platform == "linux":
        try_package(wheel, triton=True)
    return wheel


def _run(command: Sequence[str], folder: str | Path = ROOT) -> None:
    shown = " ".join(each.strip().partition("\n")[0] for each in command)
    print(f"+ {shown}", flush=True)
    # What is installed is tried, not what the caller's own path leads to.
    elsewhere = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=folder, check=True, env=elsewhere)


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the packages; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the packages go (default: dist/)")
    parser.add_argument("--without-triton", action="store_true", help="do not try the wheel with stock Triton")
    args = parser.parse_args(arguments)
    try:
        wheel = make(args.out, with_triton=not args.without_triton)
    except (PackageError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if wrong := too_large(wheel):
        print(f"warning: {wrong}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
