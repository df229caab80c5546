"""The site lacks nothing: every public name, pass, option, operation and page is on it, and it fetches nothing.

`make docs` builds it; here is what can be said without mkdocs.
"""

import dataclasses
import re
from pathlib import Path
from types import ModuleType

import pytest

import tlx_xdsl
import tlx_xdsl.compat
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
import tlx_xdsl.runtime
from docs.site import api, check, commands, dialects, language, notebooks, pages, passes
from docs.site.constraints import words
from docs.site.docstrings import as_markdown, doc_of, field_docs
from tlx_xdsl.dialects.registry import our_dialects
from tlx_xdsl.transforms.registry import OVERRIDES, all_passes, current_name

ROOT = Path(__file__).parents[3]
LANGUAGES = [(tl, language.TL_TOPICS), (tlx, language.TLX_TOPICS)]


def documented(markdown: str) -> set[str]:
    """Return the names that mkdocstrings documents, and the anchors that a page has by itself."""
    return set(re.findall(r"^::: (\S+)$", markdown, re.MULTILINE)) | set(re.findall(r"\{ #(\S+) \}", markdown))


def section(markdown: str, anchor: str) -> str:
    """The part of a page after a heading with that anchor, up to the next heading."""
    return re.split(r"^##+ ", markdown.partition(f"{{ #{anchor} }}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(("module", "topics"), LANGUAGES, ids=["tl", "tlx"])
def test_every_public_name_of_the_language_has_an_entry(module, topics):
    found = {
        path.rpartition(".")[2]
        for topic in topics
        for path in documented(language.topic_page(module, topics, topic))
        if path.startswith(f"{module.__name__}.{topic}.")
    }
    assert found == {name for name in module.__all__ if not isinstance(getattr(module, name), ModuleType)}


def test_the_language_s_modules_and_methods_have_entries():
    page = language.more_page()
    assert {name for name in tl.__all__ if isinstance(getattr(tl, name), ModuleType)} == {
        "extra",
        "math",
        "target_info",
    }
    for name in tl.MEMBERS:
        assert f"`x.{name}`" in page or f'"x.{name}"' in page, name
    for name in ("tl.target_info.is_cuda", "tl.extra.cuda.gdc_wait"):
        assert f'heading: "{name}"' in page
    assert "libdevice.erfcinv" in documented(page)
    # What the page says of `tl.math`.
    names = {name for name in vars(tl.math) if not name.startswith("_") and callable(getattr(tl.math, name))}
    assert {"exp", "fma", "umulhi"} <= names
    assert "`tlx.workgroup_barrier`" in language.amd_page()


def test_a_name_without_a_topic_is_reported(monkeypatch):
    monkeypatch.setattr(tl, "__all__", [*tl.__all__, "MEMBERS"])
    with pytest.raises(ValueError, match="MEMBERS belongs to no topic"):
        language.names_by_topic(tl, language.TL_TOPICS)


def test_every_pass_has_an_entry_with_its_options():
    page = passes.page()
    every = {name: load() for name, load in {**all_passes(), **OVERRIDES}.items()}
    for name, cls in every.items():
        if (now := current_name(name)) != name:
            assert f"`{name}`" in section(page, now)
            continue
        entry = section(page, name)
        assert doc_of(cls).splitlines()[0] in entry, name
        for field in dataclasses.fields(cls):
            row = re.search(rf"^\| `{field.name}` \|.*\| (.*) \|$", entry, re.MULTILINE)
            assert row is not None, f"{name}: {field.name}"
            assert row[1], f"{name}: the option {field.name} has no docstring"


def test_every_pass_has_an_example():
    page = passes.page()
    for group in passes.passes_by_group().values():
        for name in group:
            entry = section(page, name)
            # The ones without IR only report; their example is the report.
            assert "```mlir" in entry or name in {"tlx-storage-advice", "tlx-storage-budget"}, name
            assert "```mlir" in entry or "Example: `" in entry, name


@pytest.mark.parametrize("name", our_dialects())
def test_every_operation_and_attribute_has_an_entry(name):
    page, dialect = dialects.page(name), our_dialects()[name]()
    for op in dialect.operations:
        entry, definition = section(page, op.name), op.get_irdl_definition()
        described = re.findall(r"^\| `(\w+)` \| (\S+?),? ", entry, re.MULTILINE)
        named = [each for each, _ in (*definition.operands, *definition.results)] + [
            each for each in (*definition.properties, *definition.attributes) if not each.endswith("SegmentSizes")
        ]
        assert {each for each, _ in described} >= set(named), op.name
    for attribute in dialect.attributes:
        assert re.search(rf"^### `[!#]{re.escape(attribute.name)}`$", page, re.MULTILINE), attribute.name


def test_a_constraint_without_words_is_reported():
    with pytest.raises(ValueError, match="no description of the constraint"):
        words(object())


def test_the_help_of_every_command_is_there():
    page = commands.page()
    assert commands.commands() == re.findall(r"^### tlx (\S+)$", page, re.MULTILINE)
    for flag in ("--print-after-all", "--schedule", "--why", "--verify-each"):
        assert flag in page


def test_the_python_interface_is_there():
    found = documented(api.page())
    assert {api.home_of(name) for name in tlx_xdsl.__all__ if not name.startswith("_")} <= found
    shown = {path.rpartition(".")[2] for path in found}
    assert set(tlx_xdsl.runtime.__all__) <= shown
    assert {"install", "installed", "uninstall"} <= set(tlx_xdsl.compat.__all__) & shown


def test_every_page_is_in_the_menu():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    menu = re.findall(r"([\w/-]+\.md)$", config[config.index("\nnav:") : config.index("\nhooks:")], re.MULTILINE)
    written = {f"{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(menu) == sorted(written | set(pages.generated()))


def test_links_stay_in_the_site():
    text = pages.within_site(
        "[docs/layouts.md](layouts.md), [why](layouts.md#x), [examples/](examples), [gone](gone.md),"
        " [a kernel](../examples/hopper_gemm_ws.py), [xDSL](https://xdsl.dev)",
        "index.md",
    )
    assert text == (
        "[Layouts and what they cost](layouts.md), [why](layouts.md#x), examples/, [gone](gone.md),"
        " a kernel, [xDSL](https://xdsl.dev)"
    )


def test_what_belongs_to_an_item_of_a_list_is_indented_as_python_s_markdown_wants_it():
    given = "- a\n  b\n\n  ```sh\n    c\n  ```\n- d\n\ne\n  f\n```\n- g\n  h\n```"
    assert pages.within_site(given, "index.md") == (
        "- a\n    b\n\n    ```sh\n      c\n    ```\n- d\n\ne\n  f\n```\n- g\n  h\n```"
    )


def test_examples_and_fences_of_a_docstring_are_paragraphs():
    doc = "Text\nExample: `x`\nmore:\n```mlir\n- y\n```\nafter"
    assert as_markdown(doc) == "Text\n\nExample: `x`\nmore:\n\n```mlir\n- y\n```\n\nafter"


def test_the_fields_that_a_docstring_explains_are_a_list():
    doc = "Summary: not a field.\n\nbase:   where it\n        starts.\nshape: sizes.\n\nshape: as\nabove."
    assert as_markdown(doc) == (
        "Summary: not a field.\n\n- `base`: where it\n  starts.\n- `shape`: sizes.\n\nshape: as\nabove."
    )


def test_the_docstrings_of_fields_are_found():
    docs = field_docs(passes.passes_by_group()["storage_alias"]["tlx-storage-alias-lowering"])
    assert docs == {"strict": "Keep the declared order of distinct members, and refuse to pad."}


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<a href="https://xdsl.dev">x</a><img src="a.png"><link rel="stylesheet" href="a.css">', []),
        ('<script src="https://unpkg.com/x"></script>', ["https://unpkg.com/x"]),
        ('<link rel="preconnect" href="//fonts.gstatic.com">', ["//fonts.gstatic.com"]),
        ("<style>@import '//a.b/c.css';</style>", ["//a.b/c.css"]),
        ('<pre class="mermaid"></pre>', ["the program that draws mermaid diagrams"]),
    ],
)
def test_what_a_page_fetches_from_elsewhere_is_seen(html, found):
    assert check.external(html) == found


def test_a_notebook_s_page_has_its_text_its_code_and_what_it_shows():
    pytest.importorskip("marimo", reason="the notebooks need marimo")
    page = notebooks.page(ROOT / "notebooks" / "find_a_race.py")
    assert page.startswith("# Find a race\n\n*This is the notebook `notebooks/find_a_race.py`")
    assert "```python\n@tlx_xdsl.jit\ndef doubled(" in page
    assert "| none | round-robin | no fault in " in page
    assert "import marimo" not in page
    assert "marimo-" not in page
    puzzle = notebooks.page(ROOT / "notebooks" / "puzzles" / "06_deadlock.py")
    assert "```text\n06_deadlock.py:47:21: error: deadlock: " in puzzle
    assert "/// details | Hint\n" in puzzle


def test_cells_of_a_notebook_lose_their_function_and_their_return():
    source = (
        "import marimo\napp = marimo.App()\n\n\n@app.cell\ndef _(tl, jit):\n    @jit\n    def k(x):\n        y = x\n"
    )
    source += '\n\n    return (k,)\n\n\n@app.cell\ndef _():\n    z = """\n    a\n    """\n    return\n'
    assert notebooks.cells_of(source) == ["@jit\ndef k(x):\n    y = x", 'z = """\na\n"""']


def test_cells_of_a_table_are_no_markdown():
    rows = [{"a": "x*y*z", "b": "p|q\n_r_"}]
    assert notebooks._table(rows) == "| a | b |\n| --- | --- |\n| x\\*y\\*z | p\\|q \\_r\\_ |"
