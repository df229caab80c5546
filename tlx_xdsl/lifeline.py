"""The end of a process with the one that started it, also when that one was killed and can end nothing any more."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable


def when_abandoned(descriptor: int, end: Callable[[], None]) -> None:
    """Call `end` in a thread of its own, once no process has the other end of a pipe or socket open.

    What is sent over it meanwhile stays there for others to read.
    """

    def wait() -> None:
        other_end = select.poll()
        # No event is asked for: that the other end is closed is reported in any case.
        other_end.register(descriptor, 0)
        other_end.poll()
        end()

    threading.Thread(target=wait, daemon=True).start()
