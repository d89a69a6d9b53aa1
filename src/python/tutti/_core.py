# SPDX-License-Identifier: MIT
"""The base of the package: the extension; or the same in Python over ctypes, if the extension
cannot be imported (another Python, no compiler when the package was made) or TUTTI_PYTHON_PLAIN=1
asks for it. That is slower by 20 to 40 µs a call."""
import os

TYPE_CHECKING = False                   # as typing has it, which is spared at run time

__all__ = ["core"]

if TYPE_CHECKING:
    from . import _tutti as core
else:
    def _chosen():
        if os.environ.get("TUTTI_PYTHON_PLAIN", "0") in ("", "0"):
            try:
                from . import _tutti
                return _tutti
            except ImportError as error:
                missing = error
        else:
            missing = None
        from . import _plain
        try:
            _plain.open_library()
        except OSError as error:
            raise ImportError(f"{error}; and the extension: {missing}" if missing
                              else str(error)) from None
        return _plain

    core = _chosen()
