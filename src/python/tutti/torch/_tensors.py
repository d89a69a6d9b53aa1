"""What a tensor is to the library: an address, a count, a type; and the stream of its device."""
from typing import Any, Dict, List, Tuple

import torch

from ..comm import _TYPES as _NUMBERS
from ..errors import Invalid

_NAMES = {"int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "int64": "i64", "uint16": "u16", "uint32": "u32", "uint64": "u64",
          "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "bool", "complex64": "c64",
          "complex128": "c128", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2"}
#: dtype -> the library's number; what this torch does not have is left out.
TYPES = {getattr(torch, name): _NUMBERS[number] for name, number in _NAMES.items() if hasattr(torch, name)}
_strided = torch.strided
_no_dispatch = torch.Tensor.__torch_dispatch__

#: torch's number of a ReduceOp (its hash) -> the library's.
OPS = {0: 0, 1: 4, 2: 1, 3: 2, 4: 3, 5: 5, 6: 6, 7: 7, 8: 11}
#: id of a ReduceOp -> the library's number: for a caller whose local `op` it is. Filled where torch's functions are known to pass it on.
LOCAL_OPS: Dict[int, int] = {}
OP_NAMES = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"]
SUM, PREMUL_SUM = 0, 11


def stream_of(tensor: Any) -> int:
    """The current stream of a CUDA tensor's device; 0 for the host's memory."""
    if tensor.is_cuda:
        return torch.cuda.current_stream(tensor.device).cuda_stream
    if tensor.device.type == "cpu":
        return 0
    raise TypeError(f"tensors on {tensor.device} are out of tutti's reach: give tensors of the CPU or of CUDA")


def refuse(tensor: Any) -> Any:
    """Raises for a tensor that is not plain: what is wrong, and what to do."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a tensor, not {type(tensor).__name__}")
    if tensor.layout is not _strided:
        raise Invalid(f"unsupported layout {tensor.layout}: tutti takes dense tensors, and sparse ones in all_reduce with SUM")
    if tensor.dtype not in TYPES:
        raise TypeError(f"tensors of {tensor.dtype} are no type of tutti: give one of {', '.join(str(dtype) for dtype in TYPES)}")
    raise Invalid(f"a tensor of shape {tuple(tensor.shape)} and strides {tensor.stride()} does not lie in one piece: "
                     "give tensor.contiguous(), and copy the result back")


def plain(tensor: Any) -> Tuple[int, int, int, int]:
    """(address, count, type, stream) of a tensor that lies in one piece."""
    number = TYPES.get(tensor.dtype)
    if number is None or tensor.layout is not _strided or not tensor.is_contiguous():
        refuse(tensor)
    return tensor.data_ptr(), tensor.numel(), number, 0 if tensor.is_cpu else stream_of(tensor)


def is_wrapped(tensor: Any) -> bool:
    """Whether the tensor's class looks on at every operation, as a tracer's does: torch's dispatcher has to see this one, too."""
    return type(tensor).__torch_dispatch__ is not _no_dispatch


def is_plain(tensor: Any) -> bool:
    return tensor.layout is _strided and tensor.is_contiguous()


class Side:
    """A list of tensors as one side of a call: addresses, counts, one type; copies of those that do not lie in one piece.

    out: the copies are written back by finish(), which the end of the operation calls.
    """

    def __init__(self, tensors: List[Any], out: bool):
        self.held = []
        self.back: List[Tuple[Any, Any]] = []
        self.addresses, self.counts = [], []
        self.number = self.stream = 0
        first = None
        for tensor in tensors:
            flat = tensor
            if not is_plain(tensor):
                if tensor.layout is not _strided:
                    refuse(tensor)
                flat = tensor.contiguous()
                if out:
                    self.back.append((tensor, flat))
            address, count, number, stream = plain(flat)
            if first is not None and (number, tensor.device) != first:
                raise Invalid(f"invalid tensor type: tensors must all have the same type and device; there are {tensors[0].dtype} on "
                              f"{tensors[0].device} and {tensor.dtype} on {tensor.device}")
            first = number, tensor.device
            self.held.append(flat)
            self.addresses.append(address)
            self.counts.append(count)
            self.number, self.stream = number, stream

    def finish(self) -> None:
        for tensor, flat in self.back:
            tensor.copy_(flat)


def same_type(send: Side, recv: Side) -> int:
    if send.held and recv.held and send.number != recv.number:
        raise Invalid(f"invalid tensor type: the input is of {send.held[0].dtype}, the output of {recv.held[0].dtype}: give the same type")
    return send.number if send.held else recv.number
