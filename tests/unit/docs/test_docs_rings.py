"""The pictures of rings: each is on a page, shows what the kernel of the page does, and can be drawn anew."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.site import check, pages, ring
from tests.unit.docs.documents import ROOT, blocks, consoles, printed, stable
from tlx_xdsl.timing.timeline import Timeline

TEXT = "{http://www.w3.org/2000/svg}text"
PAGES = {
    "README.md": ["ring-3.svg"],
    "docs/ten-minutes.md": ["ring-3.svg"],
    "docs/puzzles.md": ["ring-2.svg", "ring-3.svg"],
    "docs/interpreter.md": ["ring-copies.svg"],
    "docs/clusters.md": ["ring-cluster.svg"],
}
ROWS = {
    "ring-2.svg": ["producer", "slot 0", "slot 1", "consumer 0", "consumer 1", "tensor core"],
    "ring-3.svg": ["producer", "slot 0", "slot 1", "slot 2", "consumer 0", "consumer 1", "tensor core"],
    "ring-copies.svg": ["loads", "slot 0", "slot 1", "stores"],
    "ring-cluster.svg": [f"CTA {cta} {row}" for cta in (0, 1) for row in ("loads", "slot 0", "slot 1", "stores")],
}


def rows(picture: str) -> list[str]:
    """The names of a picture's rows."""
    texts = [each.text or "" for each in ElementTree.fromstring(picture).iter(TEXT)]
    return [
        text
        for text in texts
        if re.fullmatch(r"(CTA \d )?(producer|loads|stores|tensor core|(slot|consumer) \d)", text)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_its_pictures(page: str):
    found = re.findall(r"^!\[[^\]]{30,}\]\((?:docs/)?images/(ring-[^)]*)\)$", (ROOT / page).read_text(), re.MULTILINE)
    assert found == PAGES[page]


@pytest.mark.parametrize("name", ring.PICTURES)
def test_a_picture_shows_tasks_and_slots(name: str):
    assert rows((ring.IMAGES / name).read_text(encoding="utf-8")) == ROWS[name]
    assert any(name in names for names in PAGES.values())


@pytest.mark.backend
@pytest.mark.parametrize("name", ["ring-copies.svg", "ring-cluster.svg"])
def test_a_picture_is_drawn_anew(name: str):
    """Cycles change with the clock's constants, the uses of slots do not."""
    kept, drawn = (ring.IMAGES / name).read_text(encoding="utf-8"), ring.PICTURES[name]()
    assert rows(drawn) == rows(kept)
    assert [drawn.count(f'class="{kind}"') for kind in ("copy", "buffer")] == [
        kept.count(f'class="{kind}"') for kind in ("copy", "buffer")
    ]


def test_the_ring_for_two_ctas_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (kernel,) = blocks("docs/clusters.md", "python")
    ((command, shown),) = consoles("docs/clusters.md")
    Path("shared_ring.py").write_text(kernel)
    assert stable(printed(command)) == stable(shown)


def test_the_timeline_to_try_is_one_of_this_code():
    two, three = map(Timeline.from_json, (ring.IMAGES / ring.EXAMPLE).read_text(encoding="utf-8").splitlines())
    assert (two.configuration, three.configuration) == ("NUM_STAGES=2", "NUM_STAGES=3")
    assert three.end < two.end
    lines = (ROOT / "examples" / "hopper_gemm_ws.py").read_text(encoding="utf-8").splitlines()
    assert [place.text for place in two.places] == [lines[place.line - 1].strip() for place in two.places]
    assert {place.file for place in two.places} == {"examples/hopper_gemm_ws.py"}


def test_the_site_has_a_timeline_to_try():
    page = pages.beside_the_menu()["timeline-example.html"]()
    assert page.startswith("<!doctype html>")
    assert check.external(page) == []
