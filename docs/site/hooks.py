"""The hook of mkdocs: adds the generated pages, and keeps links inside the site."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# mkdocs loads this file alone, from wherever it was started.
sys.path.insert(0, str(Path(__file__).parents[2]))

from docs.site import pages, playground


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the pages of the reference, and the README as the first page."""
    from mkdocs.structure.files import File

    for path, make in {**pages.generated(), **pages.beside_the_menu()}.items():
        files.append(File.generated(config, path, content=make()))
    for path, held in playground.files().items():
        given = {"abs_src_path": str(held)} if isinstance(held, Path) else {"content": held}
        files.append(File.generated(config, path, **given))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files of the repository into their names, and add those that open examples in the playground."""
    return playground.with_links(pages.within_site(markdown, page.file.src_uri), page.file.src_uri)
