# SPDX-License-Identifier: MIT
"""The extension, loaded when the first group is made, because it may have to be built first."""
import atexit
import contextlib
import os
import threading
from typing import Any

_lock = threading.Lock()
_loaded: Any = None


def extension() -> Any:
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = _load()
    return _loaded


def _load() -> Any:
    import _tutti_autoload
    import torch
    from . import _build, _errors
    module = _build.load()
    passed_over = [os.path.join(os.path.dirname(path), "")
                   for path in (torch.__file__, os.path.dirname(__file__))]
    passed_over += [_tutti_autoload.__file__, contextlib.__file__]   # between the program and torch
    module.setup(_errors.make, _errors.Interrupted, _errors.is_default, passed_over)
    module.site_check()
    atexit.register(module.leave)
    return module
