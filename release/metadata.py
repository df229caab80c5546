"""Metadata of the packages that depend on the project's public address: URLs, and the README's links.

A hook of hatchling, which loads this file alone. The address stands once, in pyproject.toml under
`[tool.hatch.metadata.hooks.custom]`. A package index shows the README away from the repository, where a relative link
is dead: each becomes an address at the tag of the version, or its text where there is no address.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_CODE_OR_LINK = re.compile(
    r"^```.*?^```$|`[^`\n]*`|(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)", re.DOTALL | re.MULTILINE
)


def with_absolute_links(markdown: str, file_address: str) -> str:
    """The text with its relative links made absolute; code stays as it is, and pictures of files become their texts.

    `file_address` has `{path}` where a file's path in the repository belongs; "" makes links to their texts.
    """

    def absolute(match: re.Match[str]) -> str:
        target = match["target"]
        if target is None or re.match(r"[a-z]+:|#", target):
            return match[0]
        # An address shows a page about a picture, not the picture.
        known = bool(file_address) and not match["picture"]
        return f"[{match['text']}]({file_address.format(path=target)})" if known else match["text"]

    return _CODE_OR_LINK.sub(absolute, markdown)


def project_urls(repository: str, file_address: str) -> dict[str, str]:
    """The links that a package index shows beside the description; none without an address."""
    if not repository:
        return {}
    return {
        "Repository": repository,
        "Documentation": file_address.format(path="docs/ten-minutes.md"),
        "Changelog": file_address.format(path="CHANGELOG.md"),
        "Issues": f"{repository}/issues",
    }


class MetadataHook(MetadataHookInterface):
    """Sets `readme` and `urls` from `repository` and `file-address` of the configuration."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the two fields to the project's metadata."""
        repository = self.config["repository"].rstrip("/")
        known = {"repository": repository, "version": metadata["version"], "path": "{path}"}
        file_address = self.config["file-address"].format(**known) if repository else ""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(readme, file_address),
        }
        metadata["urls"] = project_urls(repository, file_address)
