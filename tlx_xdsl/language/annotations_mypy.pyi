from typing import Any

constexpr: Any
