"""HTML for notebooks: well-formed, it loads nothing, and a Python line and its IR belong together."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.backend.result import BackendResult, KernelResources
from tlx_xdsl.runtime.show.storage_map_svg import map_as_svg
from tlx_xdsl.text.located import located_lines
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import PROFILES
from tlx_xdsl.tools.launch_line.loading import load_kernel

EXAMPLES = Path(__file__).parents[3] / "examples"
GEMM, DEFAULTS = load_kernel(f"{EXAMPLES / 'hopper_gemm_ws.py'}:matmul")


@tlx_xdsl.jit
def marked(x_ptr, n):
    if n < 3:  # <b> & "quotes"
        tl.store(x_ptr, n)


@pytest.fixture(scope="module")
def last_step():
    return tlx_xdsl.first_step(GEMM, DEFAULTS.signature, DEFAULTS.constexprs).finish()


class Page(HTMLParser):
    """Elements of a page: their tag, attributes and text; every one must be closed in order."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))
        self.open.append(self.elements[-1])

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        assert self.open[-1][0] == tag
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element[2].append(data)

    def lines(self, side):
        """(classes, text without the number) of the lines of a side: 0 is Python, 1 is IR."""
        starts = [i for i, (_, attrs, _) in enumerate(self.elements) if attrs.get("class") == "side"]
        ends = [*starts[1:], len(self.elements)]
        inside = self.elements[starts[side] : ends[side]]
        return [
            (attrs["class"].split(), "".join(text[1:] if text and text[0].isdigit() else text))
            for tag, attrs, text in inside
            if tag == "div" and attrs.get("class", "").startswith("l")
        ]


def pages(step):
    compiled = GEMM.compile(DEFAULTS.signature, DEFAULTS.constexprs)
    warning = tlx_xdsl.Interpretation(3, 1000, 0.5, (), 2)
    result = BackendResult("cubin", "3.9.0", "<ttgir>", ptx="ptx", cubin=b"123", resources=KernelResources(168))
    return [step, GEMM, marked, compiled, warning, result, tlx_xdsl.show(step.printed)]


def test_every_page_is_well_formed_and_alone(last_step):
    for value in pages(last_step):
        html = value._repr_html_()
        Page(html)
        loaded = re.findall(r"(?:src|href)\s*=|url\((?!#)|@import|<script|<link", html)
        assert loaded == [], type(value)


def test_lines_of_both_sides_belong_together(last_step):
    page = Page(last_step._repr_html_())
    python, ir = page.lines(0), page.lines(1)
    (mark,) = [set(classes) for classes, text in python if "tlx.async_dot(a[" in text]
    number = (mark - {"l"}).pop()
    together = [text.strip() for classes, text in ir if number in classes]
    assert sum("ttng.warp_group_dot " in text for text in together) == 2
    assert all("= " in text for text in together)
    rules = "".join(page.elements[1][2])
    assert f":has(.{number}:hover) .{number}{{" in rules
    # What points at nothing has no rule.
    assert all(classes[1] == "quiet" for classes, text in python if text.strip().startswith("#"))


def test_two_modules_on_a_page_light_up_apart(last_step):
    marks = {re.match(r'<div class="tlx (\w+)"', step._repr_html_())[1] for step in last_step.path}
    # Passes that changed nothing show the same; all others have their own mark.
    assert len(marks) == len(last_step.path)


def test_what_a_kernel_says_is_escaped():
    html = marked._repr_html_()
    assert "&lt;b&gt; &amp; &quot;quotes&quot;" in html
    assert "<b>" not in html


def test_a_kernel_with_a_table_shows_its_ir():
    html = GEMM._repr_html_()
    assert "tlx.storage_alias_spec storage = smem" in re.sub("<[^>]*>", "", html)
    assert "<td>BLOCK_N</td><td>constexpr</td><td>256</td>" in html
    assert "storage map of matmul" in html


def test_a_kernel_with_a_fault_shows_it(tmp_path):
    path = tmp_path / "faulty.py"
    path.write_text(
        "import tlx_xdsl\nimport tlx_xdsl.language as tl\n\n@tlx_xdsl.jit\ndef k(n):\n    tl.store(n, 1 < m)\n\n"
        "TLX_COMPILE = {'k': {'signature': {'n': 'i32'}}}\n"
    )
    kernel, _ = load_kernel(f"{path}:k")
    assert "faulty.py:6:21: error: " in kernel._repr_html_()


def test_the_figures_of_a_binary():
    result = BackendResult("cubin", "3.9.0", "", cubin=b"123", resources=KernelResources(168, 4, 8))
    html = result._repr_html_()
    assert "<td>registers per thread</td><td>168</td>" in html
    assert "<td>4 and 8</td>" in html


def test_a_page_can_be_saved(last_step, tmp_path):
    page = tlx_xdsl.show(last_step.module(), title="gemm")
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert str(page) == last_step.text


@pytest.mark.parametrize("profile", [None, *PROFILES], ids=lambda each: each and each.name)
def test_located_lines_are_the_printed_lines(last_step, profile):
    module = last_step.module()
    lines = located_lines(module, profile=profile)
    printed = print_module(module, profile=profile, locations=False)
    assert [line.text for line in lines] == printed.splitlines()
    starts = {line.op for line in lines if line.op is not None}
    # The custom syntax leaves out the ends of regions that yield nothing, and the holder of partitions.
    unseen = {op.name for op in module.walk() if op not in starts}
    assert unseen <= {"scf.yield", "ttg.warp_specialize.partitions"}
    assert all(line.op.name.split(".")[-1] in line.text for line in lines if line.op and line.op.name != "ttg.barrier")


def test_a_picture_s_rules_hold_for_pictures_only(last_step):
    (map_,) = last_step.storage_maps()
    rules = re.search(r"<style>(.*?)</style>", map_as_svg(map_))[1]
    rules = rules.replace("@media(prefers-color-scheme:dark){", "")
    assert all(rule.startswith((".tlx-map ", ".tlx-map{")) for rule in rules.split("}") if rule)


def test_showing_needs_no_triton():
    # In a process of its own: other tests here run Triton.
    program = f"""
import sys, tlx_xdsl
from tlx_xdsl.tools.launch_line.loading import load_kernel
kernel, defaults = load_kernel({f"{EXAMPLES / 'hopper_gemm_ws.py'}:matmul"!r})
tlx_xdsl.first_step(kernel, defaults.signature, defaults.constexprs).finish()._repr_html_()
assert "triton" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
