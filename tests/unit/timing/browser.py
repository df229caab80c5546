"""Pages in headless Chromium: a script acts on a page as a user would, and its notes come back."""

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed to show pages in")

# What a script has to act with: `note` adds to what comes back.
HELP = """
const notes = {}, chart = document.getElementById("chart"), T = chart.timeline;
addEventListener("error", (event) => { notes.error = event.message; });
function note(name, value) { notes[name] = value; }
function said() { return document.getElementById("said").textContent; }
function key(name, more = {}) {
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
}
function pointer(kind, x, y) {
  const box = chart.getBoundingClientRect();
  chart.dispatchEvent(new PointerEvent(kind, { clientX: box.left + x, clientY: box.top + y, pointerId: 1,
    pointerType: "mouse", bubbles: true, cancelable: true }));
}
function wheel(x, y, delta, more = {}) {
  const box = chart.getBoundingClientRect();
  chart.dispatchEvent(new WheelEvent("wheel", { clientX: box.left + x, clientY: box.top + y, deltaY: delta,
    bubbles: true, cancelable: true, ...more }));
}
function at(track, number) {
  const one = T.all[0], span = one.tracks.find((each) => each.name === track).spans[number];
  return { one, span, x: (T.x(one.start[span]) + T.x(one.end[span])) / 2, y: T.rowOf(one, span).y - T.pane.scrollTop };
}
function range() { return [T.view.from, T.view.to]; }
"""


def acted(page: str, script: str, folder: Path, width: int = 1280, height: int = 800) -> dict:
    """Return the notes of a script that has run in a page, in a window of so many pixels."""
    run = f"""<script>addEventListener("load", () => {{ {HELP}
      try {{ {script} }} catch (error) {{ notes.error = String(error) + error.stack; }}
      const held = document.createElement("pre");
      held.id = "notes";
      held.textContent = JSON.stringify(notes);
      document.body.append(held);
    }});</script></body>"""
    file = folder / "page.html"
    file.write_text(page.replace("</body>", run), encoding="utf-8")
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={folder}/user", f"--window-size={width},{height}",
            "--virtual-time-budget=2000", "--dump-dom", file.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    found = re.search(r'<pre id="notes">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    notes = json.loads(unescape(found[1]))
    assert "error" not in notes, notes["error"]
    return notes


def within(page: str, width: int, height: int) -> str:
    """Return a page that shows another in a frame of so many pixels: windows can't be as narrow as a phone."""
    return (
        f'<!doctype html><body><iframe id="frame" srcdoc="{escape(page)}" style="border:0;width:{width}px;'
        f'height:{height}px"></iframe><canvas id="chart"></canvas></body>'
    )
