"""What a run moves and computes, counted on the checking machine, in cycles where the vendor has published them."""

from __future__ import annotations

from .observe import Observer as Observer
from .report import Profile as Profile, profile as profile
