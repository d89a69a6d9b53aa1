# SPDX-License-Identifier: MIT
"""Names for annotations. Loading typing takes 5 ms, half of what an import of this package takes.

So who asks for hints at run time (typing.get_type_hints) reads object for Any: both take anything.
"""
from __future__ import annotations

TYPE_CHECKING = False                   # as typing has it
if TYPE_CHECKING:
    from typing import Any as Any, NoReturn as NoReturn
else:
    Any = NoReturn = object

__all__ = ["Any", "NoReturn"]
