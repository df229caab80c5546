"""C++: what `emitc` is as text, and the versions of the API that kernels call."""

from __future__ import annotations

from .printer import cpp_text, print_cpp
from .profiles import MAIN_PROFILE, PROFILES, CppProfile, cpp_profile

__all__ = ["MAIN_PROFILE", "PROFILES", "CppProfile", "cpp_profile", "cpp_text", "print_cpp"]
