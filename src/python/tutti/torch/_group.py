"""A process group on a comm: torch's operations in the library's terms."""
import datetime
import sys
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch
import torch.distributed as dist

from .. import _tutti
from ..errors import Error, Invalid, Mismatch, Timeout
from . import _several as several
from ._sparse import all_reduce_sparse
from ._tensors import LOCAL_OPS, OP_NAMES, OPS, PREMUL_SUM, TYPES, Side, is_plain, is_wrapped, plain, same_type
from ._threads import Line
from ._words import monitored, refused
from ._work import DONE, Done, Flights, Work, by_engine, owned

_KIND = _tutti.KINDS
_BARRIER, _BROADCAST, _REDUCE, _ALL_REDUCE = (_KIND[name] for name in ("barrier", "broadcast", "reduce", "all_reduce"))
_REDUCE_SCATTER, _ALL_GATHER, _ALL_TO_ALL = _KIND["reduce_scatter"], _KIND["all_gather"], _KIND["all_to_all"]
_ALL_REDUCE_MANY, _ALL_GATHER_V, _GATHER_V, _SCATTER_V, _REDUCE_SCATTER_V, _ALL_TO_ALL_V = (
    _KIND[name] for name in ("all_reduce_many", "all_gather_v", "gather_v", "scatter_v", "reduce_scatter_v", "all_to_all_v"))
_SEND, _RECV = _KIND["send"], _KIND["recv"]
_caller_waits = _tutti.caller_waits
_Tensor = torch.Tensor
_by_dispatcher = sys.modules["torch._ops"].__file__
_U8 = 1
_ANY = -1
_BRIEF_COUNT, _BRIEF_MS = 1 << 16, 1    # of a reducer's bucket: up to there it is awaited so long before a thread does that


def _milliseconds(opts: Any) -> int:
    """The timeout of a call's options; 0: the group's."""
    timeout = getattr(opts, "timeout", None)
    seconds = timeout.total_seconds() if timeout is not None else 0
    return 0 if seconds <= 0 else min(int(seconds * 1000) or 1, 0x7FFFFFFF)


def _op(opts: Any) -> int:
    """Of options, of a ReduceOp, or None for SUM."""
    return 0 if opts is None else OPS[hash(getattr(opts, "reduceOp", opts))]


def _factor(opts: Any, tensor: Any) -> Any:
    """PREMUL_SUM's factor as one element of the tensor's type."""
    op = getattr(opts, "reduceOp", opts)
    try:
        factor = op.__getstate__()[1]
    except Exception:
        raise NotImplementedError(f"PREMUL_SUM: torch {torch.__version__} does not tell a backend in Python the factor: "
                                  "multiply the tensor by it, and use SUM") from None
    return torch.as_tensor(factor).reshape(-1)[:1].to(device="cpu", dtype=tensor.dtype)


def _root(what: str, opts: Any, root: Optional[int], size: int) -> int:
    at = root if root is not None else opts if isinstance(opts, int) else 0 if opts is None else opts.rootRank
    if not 0 <= at < size:
        raise refused(what, f"invalid root rank: {at}; there are 0 to {size - 1}")
    return at


def _check_root_tensor(what: str, opts: Any, tensors: Any) -> None:
    at, count = getattr(opts, "rootTensor", 0), 1 if isinstance(tensors, torch.Tensor) else len(tensors)
    if not 0 <= at < count:
        raise refused(what, f"invalid root tensor: {at}; there are {count}")


def _given(opts: Any) -> Tuple[Any, ...]:
    return () if opts is None else (opts,)


def _one(what: str, tensors: Any, side: str = "") -> Any:
    """torch's lists have a tensor for each device of this process, of which there is one."""
    if isinstance(tensors, torch.Tensor):
        return tensors
    if len(tensors) != 1:
        raise refused(what, f"requires a single-element {side}tensor list, not one of {len(tensors)}: a rank has one device")
    return tensors[0]


def _row(what: str, side: str, lists: Any, mine: Any, group: Any) -> List[Any]:
    """The tensors of all ranks, out of a list of lists or a list; the one for this rank goes with `mine`."""
    if not lists or len(lists) != 1 and not isinstance(lists[0], torch.Tensor):
        raise refused(what, f"requires a single-element {side} list, which has a tensor for each of {group._size} ranks")
    row = lists if isinstance(lists[0], torch.Tensor) else lists[0]
    if len(row) != group._size:
        raise refused(what, f"Incorrect {side} list size {len(row)}. {side.capitalize()} list size should be {group._size}, a tensor for each "
                            "rank")
    if row[group._me].dtype is not mine.dtype:
        raise refused(what, f"invalid tensor type: {row[group._me].dtype} in the {side} list, {mine.dtype} beside it")
    if row[group._me].numel() != mine.numel():
        raise refused(what, f"invalid tensor size: {tuple(row[group._me].shape)} in the {side} list for this rank, {tuple(mine.shape)} beside it")
    return list(row)


def _splits(what: str, tensor: Any, sizes: Sequence[int], ranks: int) -> Tuple[List[int], List[int]]:
    """Addresses and counts of the pieces along the first axis; no sizes: equal ones."""
    edge = tensor.shape[0] if tensor.dim() else 0
    if not sizes:
        if edge % ranks:
            raise refused(what, f"the first axis has {edge} elements, which cannot be divided among {ranks} ranks: give split sizes")
        sizes = [edge // ranks] * ranks
    if len(sizes) != ranks or sum(sizes) != edge:
        raise refused(what, f"the split sizes {list(sizes)} are to be {ranks} numbers whose sum is {edge}, the first axis of the tensor")
    row = tensor.numel() // edge if edge else 0
    address, step = tensor.data_ptr(), row * tensor.element_size()
    addresses = []
    for size in sizes:
        addresses.append(address)
        address += size * step
    return addresses, [size * row for size in sizes]


class Group(dist.ProcessGroup):
    """The process group "tutti". _comm is the tutti.Comm of its ranks; whole: it is a world, and left with the group."""

    def __init__(self, comm: Any, rank: int, size: int, whole: bool):
        super().__init__(rank, size)
        self._comm, self._me, self._size, self._whole = comm, rank, size, whole
        self._raw, self._line = comm._raw, Line()

    def __del__(self) -> None:
        try:
            if self._whole and self._comm.is_world:
                self._comm.finalize()
        except Exception:
            pass                                                        # at the end of the program the library does it

    def getBackendName(self) -> str:
        return "tutti"

    def abort(self, why: str = "the process group was aborted") -> None:
        """Breaks the group: all its ranks get tutti.Aborted, in calls under way, too."""
        self._comm.abort(why)

    _abort = abort

    # ---- what all operations have in common ----

    def _go(self, waits: Any, kind: int, send: Any, recv: Any, number: int, op: int, root: int, opts: Any, stream: int,
            held: Any, value: Any, finish: Optional[Callable[[Any], Any]] = None, factor: Any = None) -> Any:
        """waits: of caller_waits(): the caller waits at once (then it is the locals of that function); it does not; it is not known, and may
        be C++."""
        element = factor.data_ptr() if factor is not None else None
        if waits:
            ended = self._raw(kind, *send, *recv, number, op, root, 0, stream, element, False, None)
            if finish is not None:
                finish(ended)
            return DONE
        try:
            flight = self._raw(kind, *send, *recv, number, op, root, 0 if waits is False else _milliseconds(opts), stream, element, True,
                               (held, factor))
        except Invalid:
            raise
        except Error as error:
            return Work.failed(error, value)
        work = Work(flight, value, finish, None if kind in (_SEND, _RECV) else self._line)
        return owned(work) if waits is None and sys._getframe(2).f_code.co_filename == _by_dispatcher else work

    # ---- reductions ----

    def _bucket(self, tensor: Any, opts: Any) -> Any:
        """A reducer's all_reduce, which sets no deadline, of a few dense elements: awaited a moment, for then it is mostly over. None: it is
        another one."""
        number, count = TYPES.get(tensor.dtype), tensor.numel()
        if number is None or count > _BRIEF_COUNT or type(tensor) is not _Tensor or not tensor.is_cpu or not is_plain(tensor):
            return None
        address, which = tensor.data_ptr(), _op(opts)
        if which == PREMUL_SUM:
            return None
        try:
            flight = self._raw(_ALL_REDUCE, address, count, address, count, number, which, 0, 0, 0, None, _BRIEF_MS, tensor)
        except Invalid:
            raise
        except Error as error:
            return Work.failed(error, [tensor])
        return Done(-1, [tensor], True) if flight is tensor else Work(flight, [tensor], None, self._line)

    def _allreduce(self, tensors: Any, opts: Any = None, op: Any = None) -> Any:
        waits = _caller_waits()
        if waits is None and type(tensors) is list and len(tensors) == 1 and by_engine(sys._getframe().f_back):
            work = self._bucket(tensors[0], opts)
            if work is not None:
                return work
        if type(tensors) is list and len(tensors) == 1:
            tensor = tensors[0]
        elif isinstance(tensors, torch.Tensor):
            tensor = tensors
        else:
            return several.all_reduce(self, tensors, op or opts, _op(op or opts))
        if type(tensor) is not _Tensor and is_wrapped(tensor):
            return super().allreduce([tensor], *_given(opts))
        if tensor.is_sparse:
            return all_reduce_sparse(self, tensor, _op(op or opts), waits is None)
        address, count, number, stream = plain(tensor)
        which = _op(op or opts)
        if waits and which != PREMUL_SUM:
            self._raw(_ALL_REDUCE, address, count, address, count, number, which, 0, 0, stream, None, False, None)
            return DONE
        factor = _factor(op or opts, tensor) if which == PREMUL_SUM else None
        return self._go(waits, _ALL_REDUCE, (address, count), (address, count), number, which, 0, opts, stream, tensor, [tensor],
                        factor=factor)

    allreduce = _tutti.usual_all_reduce(_allreduce, TYPES, LOCAL_OPS, _Tensor, torch.strided, DONE)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Any:
        waits = _caller_waits()
        tensors = list(tensors)
        if not tensors:
            raise refused("all_reduce_coalesced", "requires non-empty tensor list")
        for i, tensor in enumerate(tensors):
            if tensor.layout is not tensors[0].layout:
                raise refused("all_reduce_coalesced", f"invalid tensor layout at index {i}: {tensor.layout}, after {tensors[0].layout}")
            plain(tensor)
        side = Side(tensors, True)
        both = side.addresses, side.counts
        which = _op(opts)
        if which == PREMUL_SUM:
            raise NotImplementedError("all_reduce_coalesced with PREMUL_SUM: call all_reduce for each tensor")
        if len(set(side.addresses)) < len(tensors):                     # a tensor that is there twice: it is summed twice, and gets the sum
            copies = [tensor.clone() for tensor in tensors]
            return several.then(self.allreduce_coalesced(copies, opts), tensors,
                                lambda: [tensor.copy_(copy) for tensor, copy in zip(tensors, copies)])
        return self._go(waits, _ALL_REDUCE_MANY, both, both, side.number, which, 0, opts, side.stream, tensors, tensors)

    def reduce(self, tensors: Any, opts: Any = None, root: Optional[int] = None, op: Any = None) -> Any:
        waits = _caller_waits()
        to = _root("reduce", opts, root, self._size)
        _check_root_tensor("reduce", opts, tensors)
        tensor = _one("reduce", tensors)
        address, count, number, stream = plain(tensor)
        how = op if op is not None else opts if hasattr(opts, "reduceOp") else None
        which = _op(how)
        mine = (address, count)
        return self._go(waits, _REDUCE, mine, mine if to == self._me else (None, 0), number, which, to, opts, stream, tensor, [tensor],
                        factor=_factor(how, tensor) if which == PREMUL_SUM else None)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, op: Any = None) -> Any:
        waits = _caller_waits()
        output = _one("reduce_scatter", outputs)
        if type(output) is not _Tensor and is_wrapped(output):
            return super().reduce_scatter([output], inputs, *_given(opts))
        send, recv = Side(_row("reduce_scatter", "input", inputs, output, self), False), Side([output], True)
        which = _op(op or opts)
        return self._go(waits, _REDUCE_SCATTER_V, (send.addresses, send.counts), (recv.addresses[0], recv.counts[0]), same_type(send, recv),
                        which, 0, opts, recv.stream, (send.held, recv.held), [output], lambda _: recv.finish(),
                        _factor(op or opts, output) if which == PREMUL_SUM else None)

    def _reduce_scatter_base(self, output: Any, input: Any, opts: Any = None) -> Any:
        waits = _caller_waits()
        send, recv = Side([input], False), Side([output], True)
        if send.counts[0] != recv.counts[0] * self._size:
            raise refused("reduce_scatter", f"the input has {send.counts[0]} elements; expected {self._size} times the output's {recv.counts[0]}")
        which = _op(opts)
        return self._go(waits, _REDUCE_SCATTER, (send.addresses[0], send.counts[0]), (recv.addresses[0], recv.counts[0]), same_type(send, recv),
                        which, 0, opts, recv.stream, (send.held, recv.held), [output], lambda _: recv.finish(),
                        _factor(opts, output) if which == PREMUL_SUM else None)

    # ---- one to all, all to one, all to all ----

    def broadcast(self, tensors: Any, opts: Any = None, root: Optional[int] = None) -> Any:
        waits = _caller_waits()
        origin = _root("broadcast", opts, root, self._size)
        _check_root_tensor("broadcast", opts, tensors)
        if not isinstance(tensors, torch.Tensor) and len(tensors) > 1:
            return several.broadcast(self, tensors, opts, origin)
        tensor = _one("broadcast", tensors)
        if type(tensor) is not _Tensor and is_wrapped(tensor):
            return super().broadcast([tensor], *_given(opts))
        address, count, number, stream = plain(tensor)
        return self._go(waits, _BROADCAST, (None, 0), (address, count), number, 0, origin, opts, stream, tensor, [tensor])

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        waits = _caller_waits()
        if not isinstance(inputs, torch.Tensor) and (len(inputs) != 1 or len(outputs) != 1):
            return several.all_gather(self, outputs, inputs)
        tensor = _one("all_gather", inputs)
        if type(tensor) is not _Tensor and is_wrapped(tensor):
            return super().allgather(outputs, [tensor], *_given(opts))
        if not isinstance(outputs[0], torch.Tensor) and len(outputs[0]) != self._size:
            raise refused("all_gather", f"invalid output tensor list at index 0: expected {self._size} tensors, not {len(outputs[0])}")
        row = _row("all_gather", "output", outputs, tensor, self)
        send, recv = Side([tensor], False), Side(row, True)
        return self._go(waits, _ALL_GATHER_V, (send.addresses[0], send.counts[0]), (recv.addresses, recv.counts), same_type(send, recv), 0, 0,
                        opts, send.stream, (send.held, recv.held), row, lambda _: recv.finish())

    def _allgather_base(self, output: Any, input: Any, opts: Any = None) -> Any:
        waits = _caller_waits()
        send, recv = Side([input], False), Side([output], True)
        if send.counts[0] * self._size != recv.counts[0]:
            raise refused("all_gather", f"the output has {recv.counts[0]} elements; expected {self._size} times the input's {send.counts[0]}")
        return self._go(waits, _ALL_GATHER, (send.addresses[0], send.counts[0]), (recv.addresses[0], recv.counts[0]), same_type(send, recv), 0,
                        0, opts, send.stream, (send.held, recv.held), [output], lambda _: recv.finish())

    def allgather_coalesced(self, output_lists: Any, inputs: Any, opts: Any = None) -> Any:
        waits = _caller_waits()
        several.check_coalesced(self, output_lists, inputs)
        works = []
        for i, tensor in enumerate(inputs):
            send, recv = Side([tensor], False), Side([row[i] for row in output_lists], True)
            works.append(self._go(False, _ALL_GATHER_V, (send.addresses[0], send.counts[0]), (recv.addresses, recv.counts),
                                  same_type(send, recv), 0, 0, opts, send.stream, (send.held, recv.held), None, lambda _, recv=recv: recv.finish()))
        return self._all(works, output_lists, waits)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None, root: Optional[int] = None) -> Any:
        waits = _caller_waits()
        to = _root("gather", opts, root, self._size)
        tensor = _one("gather", inputs, "input ")
        if to != self._me and outputs:
            raise refused("gather", f"requires empty output on non-root: rank {to} is the root")
        row = _row("gather", "output", outputs, tensor, self) if to == self._me else []
        send, recv = Side([tensor], False), Side(row, True)
        into = (recv.addresses, recv.counts) if row else (None, 0)
        return self._go(waits, _GATHER_V, (send.addresses[0], send.counts[0]), into, same_type(send, recv), 0, to, opts, send.stream,
                        (send.held, recv.held), row, lambda _: recv.finish())

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None, root: Optional[int] = None) -> Any:
        waits = _caller_waits()
        origin, output = _root("scatter", opts, root, self._size), _one("scatter", outputs, "output ")
        if type(output) is not _Tensor and is_wrapped(output):
            return super().scatter([output], inputs, *_given(opts))
        if origin != self._me and inputs:
            raise refused("scatter", f"requires empty input on non-root: rank {origin} is the root")
        row = _row("scatter", "input", inputs, output, self) if origin == self._me else []
        send, recv = Side(row, False), Side([output], True)
        out = (send.addresses, send.counts) if row else (None, 0)
        return self._go(waits, _SCATTER_V, out, (recv.addresses[0], recv.counts[0]), same_type(send, recv), 0, origin, opts, recv.stream,
                        (send.held, recv.held), [output], lambda _: recv.finish())

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        waits = _caller_waits()
        if len(outputs) != self._size or len(inputs) != self._size:
            raise refused("all_to_all", f"lists of {len(outputs)} and {len(inputs)} tensors; expected one for each of {self._size} ranks")
        row = list(outputs)
        send, recv = Side(list(inputs), False), Side(row, True)
        return self._go(waits, _ALL_TO_ALL_V, (send.addresses, send.counts), (recv.addresses, recv.counts), same_type(send, recv), 0, 0, opts,
                        recv.stream, (send.held, recv.held), row, lambda _: recv.finish())

    def alltoall_base(self, output: Any, input: Any, output_split_sizes: Sequence[int] = (), input_split_sizes: Sequence[int] = (),
                      opts: Any = None) -> Any:
        waits = _caller_waits()
        send, recv = Side([input], False), Side([output], True)
        out = _splits("all_to_all: input", send.held[0], input_split_sizes, self._size)
        into = _splits("all_to_all: output", recv.held[0], output_split_sizes, self._size)
        return self._go(waits, _ALL_TO_ALL_V, out, into, same_type(send, recv), 0, 0, opts, recv.stream, (send.held, recv.held), [output],
                        lambda _: recv.finish())

    def barrier(self, opts: Any = None) -> Any:
        waits = _caller_waits()
        if waits:
            self._raw(_BARRIER, None, 0, None, 0, _U8, 0)
            return DONE
        return self._go(waits, _BARRIER, (None, 0), (None, 0), _U8, 0, 0, opts, 0, None, [])

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """A barrier with a deadline of its own; its error, tutti.Timeout on every rank that waits, names all that are missing."""
        seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
        ms = None if seconds is None else min(int(seconds * 1000), 0x7FFFFFFF)
        try:
            self._raw(_BARRIER, None, 0, None, 0, _U8, 0, 0, 0 if ms is None else max(1, ms), 0, None, False, None)
        except Timeout as error:
            raise monitored(error, self._me, ms, wait_all_ranks) from None

    # ---- point to point ----

    def send(self, tensors: Any, dst: int, tag: int = 0) -> Any:
        waits = _caller_waits()
        tensor = _one("send", tensors)
        address, count, number, stream = plain(tensor)
        if stream or not tensor.is_cpu:
            host = tensor.cpu()
            return self._go(waits, _SEND, (host.data_ptr(), count), (None, 0), number, tag, dst, None, 0, host, [tensor])
        return self._go(waits, _SEND, (address, count), (None, 0), number, tag, dst, None, 0, tensor, [tensor])

    def recv(self, tensors: Any, src: int, tag: int = 0) -> Any:
        return self._receive(_caller_waits(), tensors, src, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Any:
        return self._receive(_caller_waits(), tensors, _ANY, tag)

    def _receive(self, waits: Optional[bool], tensors: Any, src: int, tag: int) -> Any:
        tensor = _one("recv", tensors)
        _, count, number, _ = plain(tensor)
        host = tensor if tensor.is_cpu else torch.empty_like(tensor, device="cpu")

        def finish(got: Tuple[int, int, int]) -> None:
            if got[2] != count:
                raise Mismatch(f"recv: rank {got[0]} sent {got[2]} elements; the tensor has {count}")
            if host is not tensor:
                tensor.copy_(host)
        if waits:
            got = self._raw(_RECV, None, 0, host.data_ptr(), count, number, tag, src, 0, 0, None, False, None)
            finish(got)
            return DONE if src >= 0 else Done(got[0])
        return self._go(waits, _RECV, (None, 0), (host.data_ptr(), count), number, tag, src, None, 0, host, [tensor], finish)

    # ---- torch's own ways of taking several operations together: each is under way when it has been called ----

    def _start_coalescing(self, *device: Any) -> None:
        pass

    def _end_coalescing(self, *reqs: Any) -> Any:
        return DONE

    def _all(self, works: List[Any], value: Any, waits: Optional[bool]) -> Any:
        if waits:
            for work in works:
                work.wait()
            return DONE
        return Work(Flights(works), value, None, self._line)

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        waits = _caller_waits()
        return self._all([self._allgather_base(output, input, opts) for output, input in zip(outputs, inputs)], outputs, waits)

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        waits = _caller_waits()
        return self._all([self._reduce_scatter_base(output, input, opts) for output, input in zip(outputs, inputs)], outputs, waits)

    # ---- later names of the same (torch 2) ----

    all_gather_single, reduce_scatter_single, all_to_all_single = _allgather_base, _reduce_scatter_base, alltoall_base
    all_gather_single_coalesced, reduce_scatter_single_coalesced = allgather_into_tensor_coalesced, reduce_scatter_tensor_coalesced
    start_coalescing, end_coalescing = _start_coalescing, _end_coalescing
