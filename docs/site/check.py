"""Checks of a built site: the pages fetch nothing from elsewhere, and no name is missing on them.

python -m docs.site.check build/site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from docs.site import api, dialects, language, passes
from tlx_xdsl.dialects.registry import our_dialects

_FETCHED_BY_LINK = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "preconnect",
    "dns-prefetch",
    "modulepreload",
    "manifest",
}
"""Kinds of `<link>` for which a browser asks a server."""

_IN_CSS = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")


class _Page(HTMLParser):
    """The anchors of a page, and what a browser fetches to show it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.fetched: list[str] = []
        self.classes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchor, the classes and the resource of an element."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given["id"]} if "id" in given else set()
        self.classes |= set(given.get("class", "").split())
        if tag == "link" and not _FETCHED_BY_LINK.isdisjoint(given.get("rel", "").split()):
            self.fetched.append(given.get("href", ""))
        if tag in {"script", "img", "iframe", "audio", "video", "source", "embed"}:
            self.fetched.extend(given[name] for name in ("src", "srcset") if name in given)
        self.fetched.extend(_IN_CSS.findall(given.get("style", "")))

    def handle_data(self, data: str) -> None:
        """Note what styles within the page import."""
        if self.lasttag == "style":
            self.fetched.extend(_IN_CSS.findall(data))


def external(html: str) -> list[str]:
    """List what a page fetches from another place: addresses, and diagrams, whose program the theme would fetch."""
    page = _Page(html)
    found = [address for address in page.fetched if re.match(r"(?:https?:)?//", address)]
    return found + (["the program that draws mermaid diagrams"] if "mermaid" in page.classes else [])


def expected_anchors() -> dict[str, set[str]]:
    """The anchors that pages of the reference must have, by the page's path below the site."""
    expected: dict[str, set[str]] = {}
    for prefix, module, topics in (("tl", tl, language.TL_TOPICS), ("tlx", tlx, language.TLX_TOPICS)):
        for topic, names in language.names_by_topic(module, topics).items():
            expected[f"reference/{prefix}-{topic}.html"] = {f"{module.__name__}.{topic}.{name}" for name in names}
    expected["reference/passes.html"] = {name for group in passes.passes_by_group().values() for name in group}
    for name in dialects.names():
        expected[f"reference/{name}.html"] = {op.name for op in our_dialects()[name]().operations}
    expected["reference/python.html"] = {api.home_of(name) for name in api.public_names()} | set(
        api.runtime_names().values()
    )
    return expected


def problems(site: Path) -> Iterator[str]:
    """All that is wrong with a built site, a line each."""
    for file in sorted(site.rglob("*.html")):
        for address in external(file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)} needs {address}"
    for file in sorted(site.rglob("*.css")):
        for address in _IN_CSS.findall(file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)} needs {address}"
    for path, anchors in expected_anchors().items():
        ids = _Page((site / path).read_text(encoding="utf-8")).ids
        yield from (f"{path} lacks {anchor}" for anchor in sorted(anchors - ids))


def main() -> int:
    """Print the problems of the site that the command line names; returns the exit status."""
    site = Path(sys.argv[1])
    found = list(problems(site))
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        pages = len(list(site.rglob("*.html")))
        entries = sum(map(len, expected_anchors().values()))
        print(f"{pages} pages, {entries} entries of the reference; nothing is fetched from elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
