"""The README is right: its kernel compiles, its files exist."""

import re
from pathlib import Path

import pytest

from tlx_xdsl.tools.tlx import main

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()


def readme_kernel() -> str:
    return re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]


@pytest.mark.parametrize("emit", ["ttir,ttgir", pytest.param("ptx,cubin,json", marks=pytest.mark.backend)])
def test_the_kernel_compiles(tmp_path, emit):
    path = tmp_path / "tile_copy.py"
    path.write_text(readme_kernel())
    output = tmp_path / "build"
    assert main(["compile", f"{path}:tile_copy", "--target", "sm_90a", "-o", str(output), "--emit", emit]) == 0
    assert {file.name for file in output.iterdir()} == {f"tile_copy.{stage}" for stage in emit.split(",")}


def test_the_first_page_is_short():
    assert len(README.splitlines()) <= 130


def test_the_links_lead_somewhere():
    prose = re.sub(r"`[^`]*`", "", README)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_links_lead_to_every_page():
    linked = set(re.findall(r"\]\(docs/([\w-]+\.md)\)", README))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")}


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_pages_lead_to_a_heading():
    """The link may come from any page; each note has one."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    linked: set[Path] = set()
    generated = ("reference/", "notebooks/", "index.md", "playground.md")
    for page in (ROOT / "README.md", *pages):
        text = re.sub(r"```.*?```|`[^`\n]*`", "`", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\(((?!https?:)[^)#\s]+\.md)#?([^)\s]*)\)", text):
            to = (page.parent / target).resolve()
            if not str(to.relative_to(ROOT)).removeprefix("docs/").startswith(generated):
                assert to.exists(), f"{page.name}: {target}"
                assert not anchor or anchor in anchors(to), f"{page.name}: {target}#{anchor}"
                linked.add(to)
    assert {page for page in pages if page.parent.name == "notes"} <= linked


def test_the_named_files_and_targets_exist():
    for name in re.findall(r"`(tlx_xdsl/[\w/]+\.py)`", README):
        assert (ROOT / name).exists(), name
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([\w-]+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


PAGES = ["CONTRIBUTING.md", *(f"{path.relative_to(ROOT)}" for path in (ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_name_files_that_exist(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/.-])((?:tests/\w+|tlx_xdsl|benchmarks|release)/[\w./]*\w)", text))
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_the_commands_of_contributors_exist():
    makefile = (ROOT / "Makefile").read_text()
    for page in ("CONTRIBUTING.md", "docs/testing.md"):
        for target in re.findall(r"^make ([\w-]+)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (page, target)
