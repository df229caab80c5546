"""Puzzle 15: read a timeline: what do the warps wait for, and what would help?

marimo edit notebooks/puzzles/15_timeline.py      as a notebook
python notebooks/puzzles/15_timeline.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 15: a timeline")


@app.cell
def _():
    from pathlib import Path

    import marimo as mo

    from tlx_xdsl.runtime.answers import Verdict, settled
    from tlx_xdsl.timing.timeline import Timeline

    IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
    two, three = map(Timeline.from_json, (IMAGES / "timeline-example.json").read_text(encoding="utf-8").splitlines())

    return Verdict, mo, settled, three, two


@app.cell
def _(mo):
    mo.md("""
    # 15. A timeline

    The clock has predicted a Hopper GEMM, `examples/hopper_gemm_ws.py`, twice: with two slots in its ring and with three
    (`docs/clock.md` says how). Below is the timeline of the run with two. Rows are warps under the name of their task, then
    TMA, barriers, tensor cores and slots. A click on a span shows its line.

    Replace each `None` by a number.
    """)
    return


@app.cell
def _(two):
    two
    return


@app.cell
def _():
    answers = {
        # At which cycle does the timeline of two slots end, to the nearest thousand?
        "cycles": None,
        # Part of the time, in percent, that `tensor core 1` multiplies: the length of its spans `product` over the whole.
        "busy": None,
        # The line of the kernel in which the warps of 'partition 0' wait longest, all spans `wait` together.
        "line": None,
        # By how many percent is the timeline of three slots shorter?
        "gain": None,
    }

    return (answers,)


@app.cell
def _(Verdict, answers, settled, three, two):
    track = next(index for index, each in enumerate(two.tracks) if each.name == "tensor core 1")
    product = sum(span.end - span.start for span in two.spans if span.track == track and span.kind == "product")
    partition = {index for index, each in enumerate(two.tracks) if each.group == "partition 0"}
    waits = {}
    for span in two.spans:
        if span.track in partition and span.kind == "wait" and span.place >= 0:
            line = two.places[span.place].line
            waits[line] = waits.get(line, 0) + span.end - span.start
    # What is asked for, by how much an answer may be off, and where it is to be seen.
    right = {
        "cycles": (two.end, 600, "where the axis ends"),
        "busy": (100 * product / two.end, 3, "zoom in on the row 'tensor core 1', or print two.sentences"),
        "line": (max(waits, key=waits.get), 0, "click on the longest spans 'wait' of warps 4 to 7"),
        "gain": (100 * (1 - three.end / two.end), 2, "three.end and two.end are the cycles of both"),
    }
    missing = [name for name in right if not isinstance(answers.get(name), int | float)]
    wrong = [f"{name}: {answers[name]} is not it; look {where}" for name, (value, off, where) in right.items()
             if name not in missing and abs(answers[name] - value) > off]  # fmt: skip
    said = [*wrong, *([f"still to answer: {', '.join(missing)}"] if missing else [])]
    verdict = Verdict(not said, "\n".join(said) or "right: four of four")
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    `two.spans` are the spans as Python objects: `kind`, `start`, `end`, `track` (a place in `two.tracks`), `place` (in `two.places`).
    ///

    /// details | What would help?
    The warps wait for loads. With three slots a load begins while two products are still to come.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
