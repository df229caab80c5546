"""Tests of each feature: `python -m tests.feature_map KEY` prints the files, and without a key all keys.

The site has it as tables, made when it is built. Features are read from the package: the topics of the language, the
groups of operations of the dialects, the passes, and the commands. A test file belongs to a feature in one of three
ways:

- its name has the feature's words: `test_cluster_lowering.py` has those of `tlx.cluster`;
- it names a pass, in a RUN line or by its class;
- it says so in a line of its own, `# covers: tl.creation, tt.shape` (`//` instead of `#` in MLIR).
"""

import argparse
import ast
import functools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tlx_xdsl.tools.tlx import COMMANDS
from tlx_xdsl.transforms.registry import all_passes

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tlx_xdsl"
TESTS = ROOT / "tests"

COLUMNS = ("lit", "unit", "oracle", "interpreter", "GPU")
SHOWN = 4
"""Files in a cell; of more, their number is given."""
MANY_PASSES = 8
"""A test that names more passes is about none of them in particular."""

WORDS = {
    "tl.matrix": ("lower_matrix",),
    "tl.memory": ("lower_memory", "atomics", "lower_atomics"),
    "tl.random": ("random_numbers",),
    "tlx.memory": ("tlx_storage", "tlx_tmem", "tlx_views", "tensor_memory"),
    "tlx.types": ("tlx_types",),
    "tlx.layouts": ("tlx_layouts", "user_layouts", "dump_layout", "layout_kernels", "layout_errors"),
    "tt.memory": ("lower_memory",),
    "tt.joining": ("convert_shape",),
    "tt.shape": ("convert_shape",),
}
"""Words of features whose own name is a part of many names."""

NO_TOPICS = {"arguments", "core", "marks", "objects", "amd"}
"""Modules of the language without functions or types of their own that a kernel uses."""


@dataclass(frozen=True)
class Feature:
    """A tested feature."""

    key: str
    """How `# covers:` names it, such as `tlx.clc`, `ttng.tma`, `tlx-insert-proxy-fences` or `tlx run`.

    A topic of the language and a group of operations of the dialect `tlx` may share it: it means both.
    """
    title: str
    words: tuple[str, ...] = ()
    """Words, joined by `_`, that the names of its tests have."""
    class_name: str = ""
    """The class of a pass."""

    @property
    def heading(self) -> str:
        """The key and title."""
        return f"{self.key}: {self.title}" if self.title else self.key


@dataclass(frozen=True)
class TestFile:
    """A file that tests something, or holds the kernels or references of a test."""

    path: Path
    column: str
    text: str

    @property
    def words(self) -> str:
        """The words of its name between underscores: `_cluster_lowering_`."""
        return f"_{self.path.stem.removeprefix('test_')}_"

    @property
    def covers(self) -> set[str]:
        """The features that its own line names."""
        found = re.findall(r"^(?:#|//) covers: (.*)$", self.text, re.MULTILINE)
        keys = {key.strip() for line in found for key in line.split(",")}
        return {pass_names().get(key, key) for key in keys}

    @property
    def shown(self) -> str:
        """The path as the table writes it."""
        return str(self.path.relative_to(TESTS)).removeprefix("filecheck/").removeprefix("unit/")


# --- features --------------------------------------------------------------------------------------------------------


def features() -> dict[str, list[Feature]]:
    """Return the features by heading."""
    return {
        "The language (`tl`, `tlx`)": list(_topics()),
        "Operations of the dialects": list(_operation_groups()),
        "Passes": list(_passes()),
        "Tools": list(_commands()),
        "Targets": list(_targets()),
    }


def _title(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.split(r"[:;.(\n]", text, maxsplit=1)[0].strip()


def _forms(stem: str) -> tuple[str, ...]:
    """A word in singular and plural."""
    return (stem, stem.removesuffix("s")) if stem.endswith("s") else (stem, f"{stem}s")


def _topics() -> Iterator[Feature]:
    language = PACKAGE / "language"
    for prefix, folder in (("tl", language), ("tlx", language / "tlx"), ("ttl", PACKAGE / "ttl" / "language")):
        for path in sorted(folder.glob("[a-z]*.py")):
            if path.stem not in NO_TOPICS:
                forms = _forms(path.stem)
                words = forms if prefix == "tl" else (*(f"{prefix}_{form}" for form in forms), *forms)
                key = f"{prefix}.{path.stem}"
                yield Feature(key, _title(path), WORDS.get(key, words))
    libdevice = PACKAGE / "language" / "extra" / "libdevice.py"
    yield Feature("libdevice", _title(libdevice), ("libdevice",))


def _operation_groups() -> Iterator[Feature]:
    ours, ttl = PACKAGE / "dialects", PACKAGE / "ttl" / "dialects"
    for folder in (ours / "tt", ours / "ttg", ours / "ttng", ours / "tlx", ttl / "ttl", ttl / "ttkernel"):
        dialect = folder.name
        for path in sorted(folder.glob("[a-z]*.py")):
            has_operations = re.search(r"^class \w+Op\(", path.read_text(encoding="utf-8"), re.MULTILINE)
            if has_operations and path.stem not in ("base", "enums"):
                key = f"{dialect}.{path.stem}"
                words = (f"{dialect}_ops", f"{dialect}_invalid", *WORDS.get(key, _forms(path.stem)))
                yield Feature(key, _title(path), words)


def _passes() -> Iterator[Feature]:
    for name in sorted(set(pass_names().values())):
        yield Feature(name, "", (), all_passes()[name]().__name__)


@functools.cache
def pass_names() -> dict[str, str]:
    """Return the name of each pass by all of its names, older ones among them."""
    classes = {name: load() for name, load in all_passes().items()}
    names = {cls: name for name, cls in classes.items()}
    # The class of an alias is made of that of the pass.
    return {name: names.get(cls.__bases__[0], name) for name, cls in classes.items()}


def _commands() -> Iterator[Feature]:
    for name, (module, title) in COMMANDS.items():
        yield Feature(f"tlx {name}", title, (name.replace("-", "_"), module.rpartition(".")[2]))
    yield Feature("tlx-opt", "run passes on a file", ("tlx_opt",))


def _targets() -> Iterator[Feature]:
    yield Feature("target.cpu", "machine code, launches, the cache of object code", ("cpu", "on_cpu"))


# --- files -----------------------------------------------------------------------------------------------------------


def test_files() -> list[TestFile]:
    """Return the files of all columns, sorted by path."""
    found = [(path, "lit") for path in _files("filecheck", "*.mlir", "*.py") if path.name != "lit.cfg.py"]
    found += [(path, "") for path in _files("unit", "test_*.py")]
    found += [(path, "oracle") for path in _files("gallery/language/portable", "[a-z]*.py")]
    found += [(path, "interpreter") for path in _files("unit/interpreter/oracle", "[a-su-z]*.py")]
    texts = [(path, column, path.read_text(encoding="utf-8")) for path, column in found]
    return [TestFile(path, column or _column(path, text), text) for path, column, text in texts]


def _files(folder: str, *patterns: str) -> list[Path]:
    return sorted(
        path for pattern in patterns for path in (TESTS / folder).rglob(pattern) if "Inputs" not in path.parts
    )


def _column(path: Path, text: str) -> str:
    if "mark.gpu" in text:
        return "GPU"
    if "interpreter" in path.parts:
        return "interpreter"
    if re.search(r"^pytestmark = (?:\[\s*)?(?:pytest\.mark\.backend|needs_triton)", text, re.MULTILINE):
        return "oracle"
    runs = re.search(r"\binterpret(?:_text|_module)?\(|\.interpret\(", text)
    return "interpreter" if runs and "backend" not in text else "unit"


# --- the table -------------------------------------------------------------------------------------------------------


@functools.cache
def table() -> dict[str, dict[Feature, dict[str, list[TestFile]]]]:
    """Return heading -> feature -> column -> files."""
    files, every = test_files(), features()
    passes = every["Passes"]
    named = {file.path: [each.key for each in passes if _names_pass(file, each)] for file in files}

    def belongs(file: TestFile, feature: Feature) -> bool:
        if feature.key in file.covers:
            return True
        if feature.class_name:
            return feature.key in named[file.path] and len(named[file.path]) <= MANY_PASSES
        return any(f"_{words}_" in file.words for words in feature.words)

    return {
        heading: {
            feature: {
                column: sorted(
                    (file for file in files if file.column == column and belongs(file, feature)),
                    # What the file itself says comes first.
                    key=lambda file: feature.key not in file.covers,
                )
                for column in COLUMNS
            }
            for feature in group
        }
        for heading, group in every.items()
    }


@functools.cache
def _names_of(key: str) -> str:
    """Return a regular expression for all names of a pass, older ones among them."""
    return "|".join(re.escape(name) for name, current in pass_names().items() if current == key) or re.escape(key)


def _names_pass(file: TestFile, feature: Feature) -> bool:
    names = _names_of(feature.key)
    if file.column == "lit":
        runs = "\n".join(re.findall(r"RUN:.*", file.text))
        return re.search(rf"(?<![\w-])(?:{names})(?![\w-])", runs) is not None
    return re.search(rf"\b{feature.class_name}\b|[\"'](?:{names})[\"'{{]", file.text) is not None


def page() -> str:
    """Return the page of the site."""
    lines = [
        "# Feature map",
        "",
        "The tests of each feature. Paths are those below `tests/`, `tests/filecheck/` and `tests/unit/`. A file is",
        "listed under a feature because of its name, because it names a pass, or because it has a line",
        "`# covers: KEY, KEY`.",
        "`python -m tests.feature_map KEY` prints all files of a feature.",
        "",
    ]
    for heading, group in table().items():
        lines += [f"### {heading}", "", f"| Feature | {' | '.join(COLUMNS)} |", f"|{' --- |' * (len(COLUMNS) + 1)}"]
        for feature, columns in group.items():
            name = f"`{feature.key}`" + (f": {feature.title}" if feature.title else "")
            lines.append(f"| {name} | {' | '.join(_cell(columns[column]) for column in COLUMNS)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(files: Iterable[TestFile]) -> str:
    names = [f"`{file.shown}`" for file in files]
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


# --- the command -----------------------------------------------------------------------------------------------------


def answer(wanted: str) -> str:
    """Return the files of the features whose key is wanted, or else has it as a part; raises `KeyError` if none has."""
    every = {feature: columns for group in table().values() for feature, columns in group.items()}
    found = [feature for feature in every if feature.key == wanted] or [each for each in every if wanted in each.key]
    if not found:
        raise KeyError(wanted)
    lines: list[str] = []
    for feature in found:
        lines.append(feature.heading)
        lines += [
            f"  {column:<12}{file.path.relative_to(ROOT)}" for column, files in every[feature].items() for file in files
        ]
    return "\n".join(lines)


def main() -> int:
    """Print the files of a feature, or all features."""
    parser = argparse.ArgumentParser(prog="python -m tests.feature_map", description="Print the tests of a feature.")
    parser.add_argument(
        "key", nargs="?", default="", help="as in ttng.tma, tlx-insert-proxy-fences or 'tlx run'; also a part of it"
    )
    wanted = parser.parse_args().key
    if not wanted:
        print("\n".join(feature.heading for group in features().values() for feature in group))
        return 0
    try:
        print(answer(wanted))
    except KeyError:
        print(
            f"error: expected a feature's key or a part of one, found '{wanted}'; without a key all are listed",
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
