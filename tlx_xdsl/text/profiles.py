"""How the Triton versions spell the same IR. This is the only place that knows.

The IR in memory is version-neutral; a profile picks the spelling and refuses what its version can't express.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import TypeAlias

Version: TypeAlias = tuple[int, int]


@dataclass(frozen=True)
class Profile:
    """The text conventions of one Triton version."""

    version: Version
    tensordesc_wraps_tensor: bool
    """`!tt.tensordesc<tensor<64x64xf16, #shared>>` (3.6, 3.7) or `!tt.tensordesc<64x64xf16, #shared>` (3.8, 3.9)."""
    missing_ops: dict[str, Version] = field(default_factory=dict[str, Version])
    """Operations that this version lacks, with the first version that has them."""

    @property
    def name(self) -> str:
        """The version as text, such as `3.9`."""
        return ".".join(map(str, self.version))


PROFILES: tuple[Profile, ...] = (
    Profile((3, 6), tensordesc_wraps_tensor=True),
    Profile((3, 7), tensordesc_wraps_tensor=True),
    Profile((3, 8), tensordesc_wraps_tensor=False),
    Profile((3, 9), tensordesc_wraps_tensor=False),
)
"""From the oldest version to the newest."""

NEUTRAL = PROFILES[-1]
"""The spelling of IR between our own passes."""


def parse_version(text: str) -> Version:
    """The major and minor number in `text` (`3.9`, `3.9.0`, `3.9.0+git123`).

    Raises ValueError for anything else.
    """
    match = re.match(r"(\d+)\.(\d+)(?![\d])", text)
    if match is None:
        raise ValueError(f"expected a Triton version such as 3.9, found '{text}'")
    return int(match[1]), int(match[2])


def profile_for(version: str) -> Profile:
    """The profile of a Triton version; an unlisted one gets the nearest lower profile and a warning.

    Raises ValueError when `version` is no version or lies below the oldest profile.
    """
    wanted = parse_version(version)
    at_most = [profile for profile in PROFILES if profile.version <= wanted]
    if not at_most:
        raise ValueError(f"Triton {version} is not supported, the oldest supported version is {PROFILES[0].name}")
    profile = at_most[-1]
    if profile.version != wanted:
        warnings.warn(f"Triton {version} is not known, its text is written as for {profile.name}", stacklevel=2)
    return profile
