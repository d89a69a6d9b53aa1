# SPDX-License-Identifier: MIT
"""How a child has ended. If a program ignores SIGCHLD, the system does not keep that, and a wait
for the child may look as if it had ended well."""
from __future__ import annotations

import threading

from ._hints import Any


class Kept:
    """While it lasts, the system keeps the ends of this process's children. Only the main thread
    can do that: in another thread it does nothing."""

    def __enter__(self) -> "Kept":
        import signal
        mine = threading.current_thread() is threading.main_thread()
        self._ignored = mine and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
        if self._ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._ignored:
            import signal
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
