# Which of PyTorch's tests a backend is let into. They ask for it by name, most where they are
# defined: `BACKEND != "gloo"` in a decorator skips a test for good. So the name that stands in
# BACKEND while they are defined compares as told here; when they run, it is a plain name.
#
# Opened, and why:
#   gloo           what gloo can do on the CPU, tutti can: sparse sums, coalesced calls, timeouts,
#                  objects, DDP, futures, barriers that tell. `== "gloo"`, `in {"gloo"}` and the
#                  sets of features that name gloo (gpu, cuda, ddp, subgroup) stand for tutti, too.
#   mpi            "Only MPI supports all_to_all": tutti has all_to_all and
#                  all_to_all_single on the CPU.
#   nccl           "Only NCCL supports CUDA ...": where torch has CUDA tutti takes CUDA tensors in
#                  every collective. Without CUDA the gate stays closed: some of these tests ask for
#                  a device without having looked for one.
#   plugin         require_backend_is_available asks whether torch has the backend, of others only
#                  by this set.
#   profiling      the lists of backends whose events torch's profiler shows: "tutti:all_reduce" is
#                  to stand where "gloo:all_reduce" does.
#   small world    torch lets only eight ranks and more into tests with a group of some; three have
#                  one of two, on gloo, too.
#   monitored_barrier   torch.distributed's refuses all but gloo; the tests get
#                       tutti.torch.monitored_barrier in its place.
#   INIT_METHOD    a test of timeouts wants it to be a file: it is, a fresh one for each test.
# Not opened, and why:
#   requires_nccl_version, require_backend_is_available({"nccl"}), nccl's streams: they ask NCCL
#   itself. `== "nccl"`, `== "mpi"`, `== "ucc"`, skip_collective: what these cannot do is
#   nothing to tutti.
PROFILED = {"tutti"}  # backends whose events bear their name
# bodies that choose by name what they test; by any other name they test nothing, or fail on a
# variable that is not set
AS_GLOO = {
    "_test_accumulate_gradients_no_sync": "makes a model for mpi, gloo, nccl",
}


class Gate(str):
    """A backend's name that is another's, too, while tests are defined; a plain name
    after `close()`."""

    def __new__(cls, name, alike, also):
        gate = super().__new__(cls, name)
        gate.alike, gate.also, gate.open = alike, {alike, *also}, True
        return gate

    def close(self):
        self.open = False

    def __eq__(self, other):
        return str.__eq__(self, other) or (self.open and other == self.alike)

    def __ne__(self, other):
        return str.__ne__(self, other) and not (self.open and other in self.also)

    def __hash__(self):  # it is looked for in sets of names
        return hash(self.alike) if self.open else str.__hash__(self)
