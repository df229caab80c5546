"""The page of a timeline: one file without a network, whatever names it holds, and usable in a browser."""

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.timing.browser import acted, needs_browser, within
from tests.unit.timing.ring_timelines import many, ring
from tlx_xdsl.timing.show.html import to_html, write_html
from tlx_xdsl.timing.timeline import Place, Timeline, Track

EVIL = "</script><script>window.hacked = 1</script><!--<img src=x onerror='window.hacked = 1'>&amp;\u2028{{data}}"


class Page(HTMLParser):
    """The elements of a page, and the text of each."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.texts: dict[str, str] = {}
        self._within: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        self._within.append(dict(attrs).get("id") or tag)

    def handle_data(self, data: str) -> None:
        if self._within:
            self.texts[self._within[-1]] = self.texts.get(self._within[-1], "") + data


def data_of(html: str) -> dict:
    return json.loads(Page(html).texts["timelines"])


def test_the_page_holds_the_timelines():
    held = data_of(to_html(ring(2), ring(3)))
    texts = [json.dumps({name: value for name, value in each.items()}) for each in held["timelines"]]
    assert [Timeline.from_json(text) for text in texts] == [ring(2), ring(3)]


def test_a_page_without_a_timeline_or_with_a_wrong_one_is_refused():
    with pytest.raises(ValueError, match="no timeline"):
        to_html()
    wrong = ring(2, 2)
    wrong.spans[0] = replace(wrong.spans[0], track=99)
    with pytest.raises(ValueError, match="track 99"):
        to_html(wrong)


def test_the_page_needs_nothing_else():
    html = to_html(ring(2))
    page = Page(html)
    assert not re.findall(r"https?:", html)
    assert not re.findall(r"\bimport\b|\bfetch\(|XMLHttpRequest|@import|url\(", html)
    assert [attrs for _, attrs in page.tags if "src" in attrs] == []
    assert [attrs["href"] for _, attrs in page.tags if "href" in attrs] == ["data:,"]
    policy = next(attrs["content"] for tag, attrs in page.tags if tag == "meta" and "http-equiv" in attrs)
    assert policy.startswith("default-src 'none';")


def test_the_page_is_small():
    assert len(to_html(Timeline("k", "H200", "predicted")).encode()) < 150_000


def luminance(colour: str) -> float:
    """Compute the relative luminance of a colour (WCAG 2.2)."""
    digits = colour if len(colour) == 7 else "#" + "".join(digit * 2 for digit in colour[1:])
    levels = [int(digits[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in levels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_letters_stand_out(theme: int):
    """Both themes: letters have a contrast of 4.5 at least (WCAG 2.2, 1.4.3), colours of spans one of 1.5."""
    style = Page(to_html(ring(2, 2))).texts["style"]
    block = re.findall(r":root(?:\[data-theme=\"dark\"\])? \{(.*?)\}", style, re.DOTALL)[theme]
    colours = dict(re.findall(r"--(\w+): (#\w+)", block))
    pairs = [(ink, ground) for ink in ("ink", "faint") for ground in ("page", "panel")] + [
        ("ink", "lit"),
        ("page", "ink"),
    ]
    spans = ("work", "wait", "await", "copy", "product", "store", "even", "odd", "buffer")
    pairs += [("on", kind) for kind in spans] + [("page", "issue")]
    weak = {f"{ink} on {ground}": contrast(colours[ink], colours[ground]) for ink, ground in pairs}
    assert {names: found for names, found in weak.items() if found < 4.5} == {}
    assert [
        kind for kind in (*spans, "issue", "path", "chosen") if contrast(colours[kind], colours["page"]) < 1.5
    ] == []


def evil() -> Timeline:
    timeline = ring(2, 3)
    return replace(
        timeline, kernel=EVIL, chip=EVIL, configuration=EVIL, sentences=[EVIL], notes=[EVIL],
        tracks=[Track(EVIL + str(number), each.kind, EVIL) for number, each in enumerate(timeline.tracks)],
        spans=[replace(each, name=EVIL, cause=EVIL) for each in timeline.spans],
        places=[Place(EVIL, number, EVIL) for number, _ in enumerate(timeline.places)],
    )  # fmt: skip


def test_names_can_not_end_the_script():
    html = to_html(evil())
    tags = [tag for tag, _ in Page(html).tags]
    assert tags.count("script") == 2
    assert "img" not in tags
    assert data_of(html)["timelines"][0]["kernel"] == EVIL
    assert Page(html).texts["title"].startswith(EVIL)


def test_lines_between_come_from_the_file_while_it_is_the_same(tmp_path: Path):
    file = tmp_path / "kernel.py"
    file.write_text("a = 1\nb = 2\n\nc = 3\n")
    timeline = ring(2, 2)
    timeline.places = [Place(str(file), 1, "a = 1"), Place(str(file), 4)] + [Place("other.py", 9, "x")] * 4
    assert data_of(to_html(timeline))["sources"] == {
        str(file): {"1": "a = 1", "2": "b = 2", "3": "", "4": "c = 3"},
        "other.py": {"9": "x"},
    }
    timeline.places[0].text = "a = 7"
    assert data_of(to_html(timeline))["sources"][str(file)] == {"1": "a = 7", "4": ""}


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    frame = ring(2, 2)._repr_html_()
    (tag, attrs), *rest = Page(frame).tags
    assert (tag, rest, attrs["sandbox"]) == ("iframe", [], "allow-scripts")
    assert attrs["srcdoc"] == to_html(ring(2, 2))
    assert set(attrs) == {"srcdoc", "title", "sandbox", "style"}, (
        "a frame that loads late stays blank in some notebooks"
    )
    assert unescape(attrs["title"]) == "Timeline of matmul"


def test_a_page_is_written(tmp_path: Path):
    write_html(tmp_path / "out.html", ring(2, 2))
    assert (tmp_path / "out.html").read_text(encoding="utf-8") == to_html(ring(2, 2))


# In a browser ---------------------------------------------------------------------------------------------------------

TOUR = """
  note("title", document.title);
  note("facts", document.getElementById("facts").textContent);
  note("shares", document.getElementById("shares").textContent);
  note("first wait", document.querySelector("#waits button").textContent);
  note("path", document.getElementById("path").textContent);
  note("all", range());
  chart.focus();
  key("ArrowRight"); note("first", said());
  key("ArrowRight"); note("second", said());
  key("ArrowDown"); note("below", said());
  key("a"); note("after", said());
  key("f"); note("close", range());
  key("Home"); note("home", range());
  key("+"); note("in", range());
  key("-"); note("out", range());
  key("ArrowLeft", { shiftKey: true }); note("left", range());
  key("Home");
  key("End"); note("end", said());
  key("Enter"); note("line in focus", document.activeElement.dataset.line);
  key("Escape"); note("nothing", said());
  const over = at("warp 4", 1);
  pointer("pointermove", over.x, over.y); note("hover", said());
  note("tip", document.getElementById("tip").textContent);
  pointer("pointerdown", over.x, over.y); pointer("pointerup", over.x, over.y);
  note("clicked", T.state.chosen?.span === over.span);
  wheel(500, 200, -200); note("wheel", range());
  wheel(500, 200, 200, { shiftKey: true }); note("sideways", range());
  pointer("pointerdown", 500, 300); pointer("pointermove", 450, 300); pointer("pointermove", 400, 300);
  pointer("pointerup", 400, 300); note("dragged", range());
  key("Home");
  const finger = (kind, id, x) => {
    const box = chart.getBoundingClientRect();
    chart.dispatchEvent(new PointerEvent(kind, { clientX: box.left + x, clientY: box.top + 300, pointerId: id,
      pointerType: "touch", bubbles: true, cancelable: true }));
  };
  finger("pointerdown", 1, 400); finger("pointerdown", 2, 500);
  for (const far of [20, 60, 100]) { finger("pointermove", 1, 400 - far); finger("pointermove", 2, 500 + far); }
  finger("pointerup", 1, 300); finger("pointerup", 2, 600); note("pinched", range());
  note("not chosen", T.state.chosen?.span === over.span);
  key("Home");
  const line = [...document.querySelectorAll("#lines button")].find((each) => each.textContent.startsWith("67"));
  line.click(); note("chosen line", [line.getAttribute("aria-pressed"), T.state.line, said()]);
  line.click(); note("chosen again", T.state.line);
  document.getElementById("critical").click();
  note("critical", [document.getElementById("critical").getAttribute("aria-pressed"), T.state.critical]);
  T.draw();
  note("rows", T.rowOf(T.all[1], 0) !== null);
  const stacked = T.rowOf(T.all[1], 0).y - T.rowOf(T.all[0], 0).y;
  key("p");
  note("apart", [stacked, T.rowOf(T.all[1], 0).y - T.rowOf(T.all[0], 0).y]);
  key("g"); note("folded", T.state.folded.size);
  key("g"); note("unfolded", T.state.folded.size);
  const back = () => getComputedStyle(document.body).backgroundColor;
  const button = document.getElementById("theme");
  note("themes", [back()]);
  for (const _ of [1, 2]) { button.click(); notes.themes.push(button.textContent, back()); }
  const roles = [...document.querySelectorAll("[id=chart], [role]")].map((each) => each.getAttribute("role"));
  note("roles", roles);
  note("focus", chart.tabIndex);
  note("labelled", [...document.querySelectorAll("button")].every((each) => each.textContent.trim() || each.ariaLabel));
  note("network", performance.getEntriesByType("resource").length);
"""


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The notes of a tour through a page with two timelines."""
    return acted(to_html(ring(2), ring(3)), TOUR, tmp_path_factory.mktemp("tour"))


@needs_browser
def test_the_head_says_what_limits_the_kernel(tour: dict):
    assert tour["title"] == "matmul"
    assert "NUM_STAGES=2, predicted on H200: 76,752 cycles for the launch, 43.7 us at 1.75 GHz" in tour["facts"]
    assert "The tensor cores work 64 % of the time." in tour["facts"]
    assert "(0.82 x the time of 1)" in tour["facts"]
    assert "consumer 1, 4 warps: work 1.6 %, issue 3.8 %, store 7.3 %, wait for tensor cores 62 %" in tour["shares"]
    assert tour["first wait"].endswith(", for products before it")
    assert "tensor core at work: hopper_gemm_ws.py:67 acc = " in tour["path"]
    assert "copy under way: hopper_gemm_ws.py:57 tlx.async_descriptor_load" in tour["path"]


@needs_browser
def test_keys_go_from_span_to_span(tour: dict):
    assert tour["first"].startswith("prologue: 300 cycles (0.171 us), from 0 to 300; warp 0, producer")
    assert tour["second"].startswith("TMA load: 60 cycles")
    assert "hopper_gemm_ws.py:57 tlx.async_descriptor_load" in tour["second"]
    assert tour["below"].startswith("wait full[0] phase 0: 1,660 cycles")
    assert "ended by: TMA load of line 57" in tour["below"]
    assert tour["after"].startswith("48 KiB to slot 0")
    assert tour["end"].startswith("store of C")
    assert tour["line in focus"] == "examples/hopper_gemm_ws.py:80"
    assert tour["nothing"].startswith("Point at a span")


def width(of: list[float]) -> float:
    return of[1] - of[0]


@needs_browser
def test_keys_wheel_and_drag_move_the_view(tour: dict):
    assert width(tour["close"]) < 0.2 * width(tour["all"])
    assert tour["home"] == tour["all"]
    assert width(tour["in"]) == pytest.approx(0.7 * width(tour["all"]))
    assert width(tour["out"]) == pytest.approx(width(tour["all"]))
    assert tour["left"][0] < tour["out"][0]
    assert width(tour["wheel"]) < 0.7 * width(tour["all"])
    assert width(tour["sideways"]) == pytest.approx(width(tour["wheel"]))
    assert tour["sideways"][0] > tour["wheel"][0]
    assert tour["dragged"][0] > tour["sideways"][0]


@needs_browser
def test_two_fingers_zoom(tour: dict):
    assert width(tour["pinched"]) == pytest.approx(width(tour["all"]) / 3, rel=0.1)
    assert tour["pinched"][0] > tour["all"][0]
    assert tour["not chosen"], "what was chosen before is chosen still"


@needs_browser
def test_the_pointer_names_a_span(tour: dict):
    assert tour["hover"].startswith("wait full[0] phase 0: 1,660 cycles")
    assert "ended by: TMA load of line 57" in tour["tip"]
    assert tour["clicked"]


@needs_browser
def test_a_line_shows_its_spans(tour: dict):
    assert tour["chosen line"][:2] == ["true", "examples/hopper_gemm_ws.py:67"]
    assert tour["chosen line"][2].startswith("Highlighted: hopper_gemm_ws.py:67 acc = ")
    assert tour["chosen again"] is None


@needs_browser
def test_rows_are_paired_and_groups_folded(tour: dict):
    assert tour["critical"] == ["true", True]
    stacked, paired = tour["apart"]
    assert stacked > 200
    assert 0 < paired < 30
    assert (tour["folded"], tour["unfolded"]) == (6, 0)


@needs_browser
def test_the_theme_changes(tour: dict):
    system, first, colour, second, other = tour["themes"]
    assert {first, second} == {"Theme: dark", "Theme: light"}
    assert colour != system
    assert other == system


@needs_browser
def test_readers_of_the_screen_know_what_is_there(tour: dict):
    assert {"toolbar", "status", "application"} <= set(tour["roles"])
    assert tour["focus"] == 0
    assert tour["labelled"]
    assert tour["network"] == 0


@needs_browser
def test_names_do_not_run_in_the_browser(tmp_path: Path):
    script = "note('hacked', window.hacked ?? 0); chart.focus(); key('End'); note('said', said());"
    notes = acted(to_html(evil()), script, tmp_path)
    assert notes["hacked"] == 0
    assert EVIL in notes["said"]


@needs_browser
def test_twenty_thousand_spans_take_few_strokes(tmp_path: Path):
    """Strokes are counted, since seconds depend on what else the machine does."""
    count = """
      let strokes = 0;
      for (const name of ["fillRect", "drawImage", "fillText", "stroke"]) {
        const drawn = CanvasRenderingContext2D.prototype[name];
        CanvasRenderingContext2D.prototype[name] = function (...rest) { strokes += 1; return drawn.apply(this, rest); };
      }
      const counted = (name) => { strokes = 0; T.draw(); note(name, strokes); };
      counted("all"); chart.focus(); key("ArrowRight"); key("f"); counted("close"); key("c"); counted("critical");
    """
    notes = acted(to_html(replace(many(20_000), critical=[0, 1, 2])), count, tmp_path)
    assert notes["all"] < 800
    assert notes["close"] < 800
    assert notes["critical"] < 800


@needs_browser
def test_a_phone_shows_the_whole_width(tmp_path: Path):
    script = """
      const page = document.getElementById("frame").contentDocument, inner = page.getElementById("chart");
      note("overflow", page.documentElement.scrollWidth);
      note("chart", [inner.clientWidth, inner.clientHeight]);
      const small = [...page.querySelectorAll("button, p, h1, h2, li, summary")].filter((each) => each.offsetParent);
      note("letters", Math.min(...small.map((each) => parseFloat(getComputedStyle(each).fontSize))));
      note("low", Math.min(...[...page.querySelectorAll("#bar button")].map((each) => each.offsetHeight || 99)));
    """
    notes = acted(within(to_html(ring(2), ring(3)), 390, 844), script, tmp_path)
    assert notes["overflow"] == 390
    assert notes["chart"][0] == 390
    assert notes["chart"][1] > 300
    assert notes["letters"] >= 12
    assert notes["low"] >= 36
