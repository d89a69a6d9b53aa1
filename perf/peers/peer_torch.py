"""A rank of torch.distributed's gloo: peer_torch.py STAGE RANK FOLDER. Tensors lie over the buffers
of the harness, so nothing is copied that a program would not copy; they are made once for each
buffer and size."""
import ctypes
import os
import sys

SYSTEM_PYTHON = "/usr/bin/python3"


def main():
    stage_path, me, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    try:
        import torch
        import torch.distributed as dist
    except Exception as e:
        if os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON) and os.path.exists(
                SYSTEM_PYTHON):
            # the python3 of the path may be another than the distribution's
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON] + sys.argv)
        sys.exit(f"python3 has no torch: {e}")
    lib = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpeer.so"))
    lib.peer_join.restype = ctypes.c_void_p
    lib.peer_ranks.argtypes = [ctypes.c_void_p]
    lib.peer_operation.restype = ctypes.c_char_p
    stage = lib.peer_join(stage_path.encode())
    if not stage:
        sys.exit(2)
    n = lib.peer_ranks(stage)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/torch", rank=me, world_size=n)

    tensors = {}

    def tensor(at, bytes):
        key = (at, bytes)
        if key not in tensors:
            tensors[key] = torch.frombuffer((ctypes.c_char * bytes).from_address(at),
                                            dtype=torch.float32)
        return tensors[key]

    parts = {}

    def split(at, bytes):
        key = (at, bytes)
        if key not in parts:
            parts[key] = [tensor(at + i * bytes, bytes) for i in range(n)]
        return parts[key]

    # all_reduce and reduce are in place in torch: what is given must be copied first, as a program
    # that keeps its gradients does.
    def all_reduce(send, recv, b, work):
        out = tensor(recv, b)
        out.copy_(tensor(send, b))
        return dist.all_reduce(out, async_op=work)

    def broadcast(send, recv, b, work):
        return dist.broadcast(tensor(send if me == 0 else recv, b), 0, async_op=work)

    def reduce(send, recv, b, work):
        out = tensor(recv, b)
        out.copy_(tensor(send, b))
        return dist.reduce(out, 0, async_op=work)

    def all_gather(send, recv, b, work):
        return dist.all_gather(split(recv, b), tensor(send, b), async_op=work)

    def gather(send, recv, b, work):
        return dist.gather(tensor(send, b), split(recv, b) if me == 0 else None, 0, async_op=work)

    def scatter(send, recv, b, work):
        return dist.scatter(tensor(recv, b), split(send, b) if me == 0 else None, 0, async_op=work)

    def all_to_all(send, recv, b, work):
        return dist.all_to_all_single(tensor(recv, b * n), tensor(send, b * n), async_op=work)

    def sendrecv(send, recv, b, work):
        there = dist.isend(tensor(send, b), (me + 1) % n)
        dist.recv(tensor(recv, b), (me + n - 1) % n)
        there.wait()

    calls = {"barrier": lambda send, recv, b, work: dist.barrier(async_op=work),
             "all_reduce": all_reduce, "broadcast": broadcast, "reduce": reduce,
             "all_gather": all_gather, "gather": gather, "scatter": scatter,
             "all_to_all": all_to_all}
    if n > 1:
        calls["sendrecv"] = sendrecv
    by_number, can = {}, 0
    number = 1
    while True:
        name = lib.peer_operation(number)
        if name is None:
            break
        if name.decode() in calls:
            by_number[number] = calls[name.decode()]
            can |= 1 << number
        number += 1

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t,
                      ctypes.c_size_t)
    def once(op, work, send, recv, b):
        try:
            handle = by_number[op](send, recv, b, bool(work))
            if handle is not None:
                handle.wait()
            return 0
        except Exception as e:
            print(f"torch: {e}", file=sys.stderr, flush=True)
            return -1

    dist.barrier()
    lib.peer_first(ctypes.c_void_p(stage), me)
    if me == 0:
        lib.peer_version(ctypes.c_void_p(stage), torch.__version__.encode())
    failed = lib.peer_serve(ctypes.c_void_p(stage), me, can, can, once)
    sys.stderr.flush()
    os._exit(failed)       # nobody waits for a goodbye


main()
