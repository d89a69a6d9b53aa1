"""How a child has ended. Where a program ignores SIGCHLD the system keeps that for nobody, and who
asks may take it for a good end."""
import signal
import threading
from typing import Any


class Kept:
    """While it lasts the ends of this process's children are kept. Only the main thread can
    see to that."""

    def __enter__(self) -> "Kept":
        mine = threading.current_thread() is threading.main_thread()
        self._ignored = mine and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN
        if self._ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
