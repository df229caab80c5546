"""Releases: what their packages may hold, what hinders one, their links, and figures of speed that agree."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from release import __main__ as make_release, figures, packages, stranger
from release.__main__ import changelog_entry, missing_address, obstacles
from tests.versions import NEWEST, OLDEST, SUPPORTED, release as minor
from tlx_xdsl.version import __version__

ROOT = Path(__file__).parents[2]
CHANGELOG = "# Changelog\n\n## 0.2.0 - 2027-01-31\n\n- New.\n\n## 0.1.0 - unreleased\n\n- First.\n"


def test_a_version_with_a_dated_entry_in_a_clean_tree_can_be_released():
    assert list(obstacles("0.2.0", CHANGELOG, "", ["v0.1.0"])) == []


@pytest.mark.parametrize(
    ("version", "changes", "tags", "said"),
    [
        ("0.3.0", "", [], "expected a heading '## 0.3.0 - YYYY-MM-DD'"),
        ("0.1.0", "", [], "expected the date of 0.1.0 in its heading, as YYYY-MM-DD, found 'unreleased'"),
        ("0.2.0", " M README.md\n?? x\n", [], "the tree has changes, the first is 'M README.md'"),
        ("0.2.0", "", ["v0.2.0"], "the tag v0.2.0 exists"),
    ],
)
def test_what_hinders_a_release(version, changes, tags, said):
    (line,) = obstacles(version, CHANGELOG, changes, tags)
    assert said in line


def test_an_empty_entry_hinders_a_release():
    (line,) = obstacles("0.2.0", CHANGELOG.replace("- New.", ""), "", [])
    assert line == "CHANGELOG.md: the entry of 0.2.0 is empty"


def test_the_entry_of_a_version_ends_where_the_next_begins():
    assert changelog_entry(CHANGELOG, "0.2.0") == ("2027-01-31", "- New.")
    assert changelog_entry(CHANGELOG, "0.1.0") == ("unreleased", "- First.")


def test_the_changelog_has_the_current_version():
    assert changelog_entry((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__) is not None


def test_the_package_s_files_may_all_be_in_a_wheel():
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")
    tracked = packages.tracked_files()
    info = {f"tlx_xdsl-{__version__}.dist-info/{name}" for name in ("METADATA", "RECORD", "licenses/LICENSE")}
    assert list(packages.foreign_files(tracked | info, tracked)) == []


def test_foreign_and_missing_files_of_a_wheel_are_named():
    tracked = {"tlx_xdsl/__init__.py", "tlx_xdsl/py.typed", "tlx_xdsl/plot.png"}
    names = {"tlx_xdsl/__init__.py", "tlx_xdsl/plot.png", "tlx_xdsl/old.py", "tests/test_x.py", "release/__init__.py"}
    assert list(packages.foreign_files(names, tracked)) == [
        "release/__init__.py does not belong into a wheel",
        "tests/test_x.py does not belong into a wheel",
        "tlx_xdsl/old.py is not in the repository",
        "tlx_xdsl/plot.png does not belong into a wheel",
        "tlx_xdsl/py.typed is missing",
    ]


def test_a_wheel_may_have_three_megabytes(tmp_path):
    wheel = tmp_path / "x.whl"
    wheel.write_bytes(b"0" * 3_000_000)
    assert packages.too_large(wheel) is None
    wheel.write_bytes(b"0" * 3_000_001)
    assert packages.too_large(wheel) == "x.whl: expected at most 3,000,000 bytes, found 3,000,001"


@pytest.fixture
def hook():
    pytest.importorskip("hatchling", reason="the hook is one of hatchling")
    spec = importlib.util.spec_from_file_location("release_metadata", ROOT / "release" / "metadata.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["metadata"]["hooks"]


def test_links_of_the_description_become_absolute(hook):
    text = (
        "[a](docs/a.md#b), [xDSL](https://xdsl.dev), `[c](d)`, [below](#e), ![f](g.png)\n```\n[h](i)\n```\n[`j`](k)\n"
    )
    assert hook.with_absolute_links(text, "https://host/{path}") == text.replace(
        "](docs", "](https://host/docs"
    ).replace("](k)", "](https://host/k)").replace("![f](g.png)", "f")
    assert hook.with_absolute_links(text, "").startswith("a, [xDSL](https://xdsl.dev), `[c](d)`, [below](#e)")


@pytest.mark.parametrize("repository", ["", "https://host.example/us/tlx"])
def test_the_metadata_is_made_of_one_address(hook, repository):
    config = {**settings()["custom"], "repository": repository}
    metadata = {"version": "1.2.3"}
    hook.MetadataHook(str(ROOT), config).update(metadata)
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", metadata["readme"]["text"], flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert links
    assert all(link.startswith("https://") for link in links)
    if repository:
        assert f"{repository}/blob/v1.2.3/docs/compile.md" in links
        assert metadata["urls"]["Changelog"] == f"{repository}/blob/v1.2.3/CHANGELOG.md"
    else:
        assert metadata["urls"] == {}


def test_figures_of_speed_agree_with_the_page():
    page = figures.SOURCE.read_text(encoding="utf-8")
    for name in figures.DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "<!-- figure: " in text
        # There it would begin a paragraph.
        assert not re.search(r"^\s*<!-- figure", text, re.MULTILINE)
        assert figures.with_figures(text, page) == text, f"{name}: python -m release.figures --write"
    for name in figures.TABLE_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert len(re.findall("<!-- table: ", text)) == 1
        assert figures.with_tables(text) == text, f"{name}: python -m release.figures --write"


PAGE = """# Speed

## GEMM, fp16

| problem | cuBLAS | ratio to cuBLAS | clock |
|---|---|---|---|
| 1 x 1 | 5 (6) | **1.200** (0.9) | 1980 |
| 2 x 2 | 5 (6) | **0.800** (0.9) | 1980 |
| 3 x 3 | 5 (6) | - | 1980 |

## GEMM, bf16

| problem | ratio to cuBLAS |
|---|---|
| 1 x 1 | **9.000** (9.0) |
"""


def test_figures_are_those_of_the_tables_with_the_heading():
    text = "x <!-- figure: gemm-fp16 -->old<!-- end -->, <!-- figure: gemm-fp16-count -->old<!-- end --> y"
    assert re.sub("<!--.*?-->", "", figures.with_figures(text, PAGE)) == "x 0.80 to 1.20, 2 y"
    assert figures.ratios(PAGE, "GEMM, fp16") == [1.2, 0.8]
    with pytest.raises(ValueError, match="no ratio below a heading that begins with 'Attention forward, fp16'"):
        figures.with_figures("<!-- figure: attention-fp16 -->old<!-- end -->", PAGE)
    with pytest.raises(ValueError, match="no figure 'gem', expected one of gemm-fp16, "):
        figures.with_figures("<!-- figure: gem -->old<!-- end -->", PAGE)


def test_a_table_has_the_speed_and_the_ratio_of_each_problem():
    page = PAGE.replace("cuBLAS | ratio to cuBLAS | clock", "tlx_xdsl | ratio to cuBLAS | clock")
    page = page.replace(
        "| problem | ratio to cuBLAS |\n|---|---|\n| 1 x 1 |",
        "| problem | tlx_xdsl | ratio |\n|---|---|---|\n| 1 x 1 | 7 (8) |",
    )
    page = page.replace("# Speed\n", "# Speed\n\nMeasured on 2026-01-02; it writes this page.\nA GPU, torch 1.\n")
    assert figures.table(page, "GB/s", {"half": ("GEMM, fp16",), "bf16": ("GEMM, bf16",)}) == (
        "GB/s: A GPU, torch 1, 2026-01-02.\n\n| problem | half | bf16 |\n|---|---|---|\n"
        "| 1 x 1 | 5 (1.200) | 7 (9.000) |\n| 2 x 2 | 5 (0.800) |  |\n| 3 x 3 | 5 |  |"
    )
    with pytest.raises(ValueError, match="no heading that begins with 'GEMM, fp8'"):
        figures.table(page, "GB/s", {"8 bits": ("GEMM, fp8",)})
    with pytest.raises(ValueError, match="no table 'gem', expected one of gemm, attention, rows"):
        figures.with_tables("<!-- table: gem -->\n<!-- end of the table -->")


def test_the_page_about_versions_names_the_supported_ones():
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    assert f"`make test-all`: {', '.join(SUPPORTED)}" in page
    (_, newest), project = minor(NEWEST), (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    cap = f"triton>={'.'.join(map(str, minor(OLDEST)))},<3.{newest + 1}"
    assert f"`{cap}`" in page
    assert cap in project
    (xdsl,) = set(re.findall(r'"(xdsl>=[\d.,<]+)"', project))
    assert f"`{xdsl}`" in page


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with what a release reads, and packages that are made at once."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    for name in ("user.name", "user.email"):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{('user.name', 'user.email').index(name)}", name)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{('user.name', 'user.email').index(name)}", "us@host.example")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    (tmp_path / "CHANGELOG.md").write_text(f"## {__version__} - 2027-01-31\n\n### New\n\n- All.\n")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    wheel = tmp_path.parent / "small.whl"
    wheel.write_bytes(b"0")
    monkeypatch.setattr(make_release, "ROOT", tmp_path)
    monkeypatch.setattr(packages, "make", lambda *_, **__: wheel)
    return tmp_path, wheel


def tags(folder):
    shown = subprocess.run(
        ["git", "tag", "-n9"], cwd=folder, check=True, capture_output=True, text=True
    )  # fmt: skip
    return shown.stdout


def test_a_release_is_tagged_only_when_asked_for(repository, capsys):
    folder, _ = repository
    assert make_release.main([]) == 0
    assert "can be released" in capsys.readouterr().out
    assert tags(folder) == ""
    assert make_release.main(["--tag"]) == 0
    assert tags(folder).startswith(f"v{__version__}")
    assert "### New" in tags(folder)
    assert make_release.main(["--tag"]) == 1
    assert f"error: the tag v{__version__} exists" in capsys.readouterr().err


def test_a_large_wheel_and_a_changed_tree_are_not_released(repository, capsys):
    folder, wheel = repository
    wheel.write_bytes(b"0" * 3_000_001)
    assert make_release.main(["--tag"]) == 1
    assert "error: small.whl: expected at most 3,000,000 bytes, found 3,000,001" in capsys.readouterr().err
    wheel.write_bytes(b"0")
    (folder / "new").write_text("x")
    assert make_release.main(["--tag"]) == 1
    assert "error: the tree has changes, the first is '?? new'" in capsys.readouterr().err
    assert tags(folder) == ""


def test_a_package_that_fails_its_check_is_an_error(repository, monkeypatch, capsys):
    def refused(*_, **__):
        raise packages.PackageError("x.whl: tests/a.py does not belong into a wheel")

    monkeypatch.setattr(packages, "make", refused)
    assert make_release.main([]) == 1
    assert capsys.readouterr().err == "error: x.whl: tests/a.py does not belong into a wheel\n"


def test_the_stranger_s_clock_sees_silence(tmp_path):
    code = "import time; print('begun', flush=True); time.sleep(0.4); print('done')"
    step = stranger.run("a step", [sys.executable, "-c", code], tmp_path, ["begun", "never"])
    assert step.status == 0
    assert step.output == "begun\ndone\n"
    assert 0.35 < step.silence <= step.seconds
    assert list(step.marks) == ["begun"]


def test_milestones_are_counted_from_the_clone():
    steps = [
        stranger.Step("clone", 2.0),
        stranger.Step("a run in the interpreter", 3.0),
        stranger.Step("a timeline", 5.0),
    ]
    assert stranger.milestones(steps) == {"first right kernel": 5.0, "first timeline": 10.0}


def test_the_readme_has_what_a_stranger_does():
    kernel, compiling, (right, race), deadlock = stranger.shown((ROOT / "README.md").read_text(encoding="utf-8"))
    assert kernel.count("TILE * TILE * 2") == 1
    assert kernel.count("barrier_wait") == 1
    assert compiling.endswith("-o build/")
    assert "largest error 0.0e+00" in right
    assert "is read before it is written" in race.splitlines()[1]
    assert deadlock.startswith("deadlock: partition 0 waits at ")


def test_set_up_says_that_it_goes_on():
    """No step is quiet for minutes: what makes an environment runs beside a clock that prints."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("-m venv", "$(PIP_INSTALL)"):
        lines = re.findall(rf"^\t.*{re.escape(command)}.*$", makefile, re.MULTILINE)
        assert lines
        assert all("$(call ticking," in line and "--quiet" not in line for line in lines)
    (definition,) = (line for line in makefile.splitlines() if "pip install" in line)
    assert definition.startswith("PIP_INSTALL = ")
    assert "--quiet" not in definition


def test_the_package_and_a_version_load_next_to_nothing():
    """The cost of an import is what it loads: times are those of a machine."""
    code = """
import sys
before = {*sys.modules}
import tlx_xdsl
ours = {name for name in {*sys.modules} - before if name.startswith("tlx_xdsl")}
assert ours == {"tlx_xdsl", "tlx_xdsl.aliases", "tlx_xdsl.errors", "tlx_xdsl.version"}, ours
from tlx_xdsl.tools.tlx import main
try:
    main(["--version"])
except SystemExit:
    pass
print(*({name.partition(".")[0] for name in sys.modules} & {"xdsl", "numpy", "ml_dtypes", "triton", "torch", "rich"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown, loaded = done.stdout.splitlines()
    assert __version__ in shown
    assert loaded == ""


# --- what is said of installing -------------------------------------------------------------------------------------


def extras_named(text):
    """Return the extras of this package that a text has pip install."""
    named = re.findall(r"(?:tlx-xdsl|(?<=install )'?\.|(?<=-e )'?\.)\[([\w,-]+)\]", text)
    return {extra for each in named for extra in each.split(",")}


def test_extras_are_found_in_what_is_said():
    assert extras_named("pip install 'tlx-xdsl[cpu,gui]'") == {"cpu", "gui"}
    assert extras_named("pip install '.[no-such]', x[3], xdsl[llvm]") == {"no-such"}


def test_every_extra_that_is_named_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    found = {}
    for path in [*pages, *(ROOT / "tlx_xdsl").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]:
        for extra in extras_named(path.read_text(encoding="utf-8")):
            found.setdefault(extra, path.name)
    assert {"cli", "cpu", "gui", "nvidia"} <= set(found)
    assert set(found) <= set(project["optional-dependencies"]), found


def test_the_line_where_the_address_belongs_is_named():
    assert missing_address('[a]\nrepository = ""\n') == 2
    assert missing_address('[a]\nrepository = "https://host.example/us/tlx"\n') is None


def test_the_workflow_publishes_what_the_release_makes():
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
    assert "has not run yet" in text
    assert re.findall(r"dist/\*\.(?:whl|tar\.gz)", text) == make_release.FILES.split()
    (target,) = re.findall(r"run: make (\w+)", text)
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    # Only the job that publishes may prove who it is.
    assert text.count("id-token: write") == 1
    assert "id-token: write" in text.partition("\n  publish:\n")[2]


def test_a_bill_of_materials_has_the_version(tmp_path, monkeypatch):
    """The generator itself is run by `make packages`."""
    path = tmp_path / "bill.json"

    def generate(command, *_):
        assert command[command.index("--output-file") + 1] == str(path)
        path.write_text('{"metadata": {"component": {"name": "tlx-xdsl", "type": "library"}}}')

    monkeypatch.setattr(packages, "_run", generate)
    packages.write_bill("python", path)
    assert json.loads(path.read_text())["metadata"]["component"] == {
        "name": "tlx-xdsl",
        "type": "library",
        "version": __version__,
        "purl": f"pkg:pypi/tlx-xdsl@{__version__}",
    }
