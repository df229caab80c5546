"""Make a release: `make release` says what it would do, `make release RELEASE_ARGS=--tag` does it.

Refuses a tree with changes, a version that has no dated entry in CHANGELOG.md, one that is tagged already, and a wheel
of more than 3 MB. It builds, checks and tries the packages (release/packages.py), and tags the commit `v` + version,
with the entry as its message. Uploading stays a command of its own, which is printed at the end, since nothing can
take it back.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence

from release import packages
from tlx_xdsl.version import __version__

ROOT = packages.ROOT

FILES = "dist/*.whl dist/*.tar.gz"
"""What is uploaded: the bill of materials beside them is for the page of the release."""


def changelog_entry(changelog: str, version: str) -> tuple[str, str] | None:
    """Return the word beside a version in its heading, a date or `unreleased`, and the text below it; None without."""
    found = re.search(rf"^## {re.escape(version)} - (\S+)\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    return (found[1], found[2].strip()) if found else None


def obstacles(version: str, changelog: str, changes: str, tags: Sequence[str]) -> Iterator[str]:
    """Yield reasons why a version can't be released, a line each; `changes` is `git status --porcelain`'s output."""
    entry = changelog_entry(changelog, version)
    if entry is None:
        yield f"CHANGELOG.md: expected a heading '## {version} - YYYY-MM-DD', the version of tlx_xdsl/version.py"
    elif not re.fullmatch(r"\d{4}-\d{2}-\d{2}", entry[0]):
        yield f"CHANGELOG.md: expected the date of {version} in its heading, as YYYY-MM-DD, found '{entry[0]}'"
    elif not entry[1]:
        yield f"CHANGELOG.md: the entry of {version} is empty"
    if changes:
        yield f"the tree has changes, the first is '{changes.splitlines()[0].strip()}'"
    if f"v{version}" in tags:
        yield f"the tag v{version} exists: raise the version in tlx_xdsl/version.py"


def missing_address(project: str) -> int | None:
    """The line of pyproject.toml where the repository's public address belongs; None where it stands there."""
    lines = project.splitlines()
    return next((number for number, line in enumerate(lines, 1) if re.fullmatch(r'repository = ""', line)), None)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _report(errors: Sequence[str]) -> None:
    for line in errors:
        print(f"error: {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tag", action="store_true", help="tag the commit; without it nothing is changed")
    parser.add_argument("--without-triton", action="store_true", help="do not try the wheel with stock Triton")
    args = parser.parse_args(arguments)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = list(obstacles(__version__, changelog, _git("status", "--porcelain"), _git("tag", "--list").split()))
    _report(found)
    if found and args.tag:
        return 1
    try:
        wheel = packages.make(ROOT / "dist", with_triton=not args.without_triton)
    except (packages.PackageError, subprocess.CalledProcessError) as error:
        _report([str(error)])
        return 1
    if wrong := packages.too_large(wheel):
        _report([wrong])
        found.append(wrong)
    if (line := missing_address((ROOT / "pyproject.toml").read_text(encoding="utf-8"))) is not None:
        print(f"warning: pyproject.toml:{line}: fill in the public address: without it the packages have no links")
    if found:
        print(f"{__version__} can't be released, see the errors above; nothing is tagged")
        return 1
    if not args.tag:
        print(f"{__version__} can be released: `make release RELEASE_ARGS=--tag` tags it; nothing is tagged now")
        return 0
    entry = changelog_entry(changelog, __version__)
    message = f"tlx_xdsl {__version__}\n\n{entry[1] if entry else ''}\n"
    # A heading of the entry begins with what git takes for a comment.
    _git("tag", "--annotate", f"v{__version__}", "--cleanup=verbatim", "--message", message)
    print(f"tagged v{__version__}. To publish: git push origin v{__version__}; python -m twine upload {FILES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
