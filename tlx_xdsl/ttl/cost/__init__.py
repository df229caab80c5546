"""Bytes and tiles of a run, counted on the checking machine, and cycles where the vendor has published them."""

from __future__ import annotations

from .observe import Observer as Observer
from .report import Profile as Profile, profile as profile
