# SPDX-License-Identifier: MIT
"""What DLPack puts into its capsules, as ctypes sees it. Loaded with the first such array: ctypes
takes as long to import as all the rest of the package."""
import ctypes


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object,
                             ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object,
                            ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
