"""The pages that are made when the site is built, by their path, and the README as the first page."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from docs.site import api, commands, dialects, language, notebooks, passes, ring
from tests import feature_map

ROOT = Path(__file__).parents[2]

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def generated() -> dict[str, Callable[[], str]]:
    """Return the functions that make the Markdown of pages, by each page's path below `docs/`."""
    return {
        "index.md": home,
        "reference/language.md": language.overview,
        **{
            f"reference/{prefix}-{topic}.md": partial(language.topic_page, module, topics, topic)
            for prefix, module, topics in (("tl", tl, language.TL_TOPICS), ("tlx", tlx, language.TLX_TOPICS))
            for topic in topics
        },
        "reference/tl-more.md": language.more_page,
        "reference/tlx-amd.md": language.amd_page,
        "reference/passes.md": passes.page,
        "reference/dialects.md": dialects.overview,
        **{f"reference/{name}.md": partial(dialects.page, name) for name in dialects.names()},
        "reference/commands.md": commands.page,
        "reference/python.md": api.page,
        "reference/feature-map.md": feature_map.page,
        **{name: partial(notebooks.page, path) for name, path in notebooks.pages().items()},
    }


def beside_the_menu() -> dict[str, Callable[[], str]]:
    """Return the functions that make the HTML of pages that others link to, by their path below `docs/`."""
    return {"timeline-example.html": ring.example_page}


def home() -> str:
    """The README; its links lead to pages of the site."""
    return (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")


def within_site(markdown: str, page: str) -> str:
    """The page's text with its links as the site has them.

    A link whose text is a page's file name gets the page's title; a link to a file of the repository that is no page
    becomes its text.
    """
    folder = (ROOT / "docs" / page).parent

    def replaced(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if "://" in target:
            return match[0]
        file = (folder / target).resolve()
        if file.is_relative_to(ROOT / "docs") and file.is_file():
            return match[0].replace(text, title(file), 1) if text.removeprefix("docs/") == target else match[0]
        # Links of the README start where it lies.
        return text if file.exists() or (ROOT / target).exists() else match[0]

    return _nested(_LINK.sub(replaced, markdown))


def _nested(markdown: str) -> str:
    """The text with four spaces before each line of a list's item, where GitHub is content with two."""
    lines: list[str] = []
    in_list = fenced = False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        if line and not line.startswith("  "):
            in_list = line.startswith("- ") and not fenced
        lines.append(f"  {line}" if in_list and line.startswith("  ") else line)
    return "\n".join(lines)


def title(file: Path) -> str:
    """The first heading of a page."""
    return file.read_text(encoding="utf-8").partition("# ")[2].partition("\n")[0]
