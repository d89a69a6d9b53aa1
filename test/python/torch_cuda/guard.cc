/* CUDA for a torch that was built without it, as far as a process group needs it, over the driver
 * of the tests: the guard that stands for streams, events and devices, memory, and copies as torch
 * makes them: in the current stream, and awaited where host memory takes part. There are no
 * kernels. What a kernel would do to a strided tensor is done on the host, and then put in place by
 * a copy in the stream. */
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <dlfcn.h>
#include <stdint.h>

#include <map>
#include <mutex>
#include <tuple>

namespace py = pybind11;
using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

namespace {

using Address = unsigned long long;
using Handle = void *;                                  /* a stream, an event, a context */
enum { DEVICES = 8, POOL = 4, NOT_READY = 600, NON_BLOCKING = 1, NO_TIMING = 2 };

/* ---- the driver ---- */

void *symbol(const char *name)
{
    static void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    TORCH_CHECK(driver, "there is no libcuda.so.1");
    void *found = dlsym(driver, name);
    TORCH_CHECK(found, "libcuda.so.1 has no ", name);
    return found;
}

template <class... A> int ask(const char *name, A... args)
{
    return ((int (*)(A...))symbol(name))(args...);
}

template <class... A> void cu(const char *name, A... args)
{
    int error = ask(name, args...);
    TORCH_CHECK(error == 0, name, " gave ", error);
}

/* The device's context, made current in this thread. */
void enter(DeviceIndex device)
{
    static std::mutex lock;
    static Handle context[DEVICES];
    std::lock_guard<std::mutex> hold(lock);
    TORCH_CHECK(device >= 0 && device < DEVICES, "no device ", (int)device);
    cu("cuInit", 0u);
    if (!context[device])
        cu("cuDevicePrimaryCtxRetain", &context[device], (int)device);
    cu("cuCtxSetCurrent", context[device]);
}

thread_local DeviceIndex device_now;
thread_local Handle stream_now[DEVICES];                /* null: the default stream */

Handle stream_made(DeviceIndex device)
{
    Handle made = nullptr;
    enter(device);
    cu("cuStreamCreate", &made, (unsigned)NON_BLOCKING);
    return made;
}

Stream as_stream(DeviceIndex device, Handle handle)
{
    return Stream(Stream::UNSAFE, Device(c10::kCUDA, device), (c10::StreamId)(intptr_t)handle);
}

Handle handle_of(const Stream &stream) { return (Handle)(intptr_t)stream.id(); }

/* ---- the guard ---- */

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return c10::kCUDA; }
    Device getDevice() const override { return Device(c10::kCUDA, device_now); }

    Device exchangeDevice(Device device) const override
    {
        Device old = getDevice();
        setDevice(device);
        return old;
    }

    void setDevice(Device device) const override { uncheckedSetDevice(device); }

    void uncheckedSetDevice(Device device) const noexcept override
    {
        if (device.has_index())
            device_now = device.index();
    }

    DeviceIndex deviceCount() const noexcept override
    {
        int count = 0;
        return ask("cuInit", 0u) == 0 && ask("cuDeviceGetCount", &count) == 0 ? (DeviceIndex)count
                                                                              : 0;
    }

    Stream getStream(Device device) const override
    {
        DeviceIndex index = device.has_index() ? device.index() : device_now;
        return as_stream(index, stream_now[index]);
    }

    Stream getDefaultStream(Device device) const override
    {
        return as_stream(device.index(), nullptr);
    }

    Stream getStreamFromGlobalPool(Device device, bool) const override
    {
        static std::mutex lock;
        static Handle pool[DEVICES][POOL];
        static unsigned next;
        std::lock_guard<std::mutex> hold(lock);
        Handle &one = pool[device.index()][next++ % POOL];
        if (!one)
            one = stream_made(device.index());
        return as_stream(device.index(), one);
    }

    Stream exchangeStream(Stream stream) const override
    {
        Stream old = getStream(stream.device());
        stream_now[stream.device_index()] = handle_of(stream);
        return old;
    }

    void *getStreamNativeHandle(const Stream stream) const override { return handle_of(stream); }

    bool queryStream(const Stream &stream) const override
    {
        enter(stream.device_index());
        return ask("cuStreamQuery", handle_of(stream)) != NOT_READY;
    }

    void synchronizeStream(const Stream &stream) const override
    {
        enter(stream.device_index());
        cu("cuStreamSynchronize", handle_of(stream));
    }

    void record(void **event, const Stream &stream, const DeviceIndex,
                const c10::EventFlag) const override
    {
        enter(stream.device_index());
        if (!*event)
            cu("cuEventCreate", event, (unsigned)NO_TIMING);
        cu("cuEventRecord", *event, handle_of(stream));
    }

    void block(void *event, const Stream &stream) const override
    {
        enter(stream.device_index());
        if (event)
            cu("cuStreamWaitEvent", handle_of(stream), event, 0u);
    }

    bool queryEvent(void *event) const override
    {
        return !event || ask("cuEventQuery", event) != NOT_READY;
    }

    void synchronizeEvent(void *event) const override
    {
        if (event)
            cu("cuEventSynchronize", event);
    }

    void destroyEvent(void *event, const DeviceIndex) const noexcept override
    {
        if (event)
            ask("cuEventDestroy_v2", event);
    }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

/* ---- memory ---- */

/* As torch's allocator does it: what is given back is given out again for the same stream, at once,
 * and the driver does not get it. */
struct Block { Address at; size_t bytes; DeviceIndex device; Handle stream; };

std::mutex blocks_lock;
std::multimap<std::tuple<DeviceIndex, Handle, size_t>, Block *> blocks;

void give_back(void *given)
{
    auto *block = (Block *)given;
    std::lock_guard<std::mutex> hold(blocks_lock);
    blocks.insert({ { block->device, block->stream, block->bytes }, block });
}

struct Memory final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override
    {
        const Device here(c10::kCUDA, device_now);
        Block *block = nullptr;
        {
            std::lock_guard<std::mutex> hold(blocks_lock);
            auto left = blocks.find({ device_now, stream_now[device_now], bytes });
            if (left != blocks.end()) {
                block = left->second;
                blocks.erase(left);
            }
        }
        if (!block) {
            block = new Block{ 0, bytes, device_now, stream_now[device_now] };
            enter(device_now);
            if (bytes)
                cu("cuMemAlloc_v2", &block->at, bytes);
        }
        return c10::DataPtr((void *)block->at, block, give_back, here);
    }

    void copy_data(void *, const void *, size_t) const override
    {
        TORCH_CHECK(false, "no copy is made here");
    }
};

Memory memory;

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format)
{
    c10::DeviceGuard there(*device);
    return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                     c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<Device> device, std::optional<bool>)
{
    c10::DeviceGuard there(*device);
    return at::detail::empty_strided_generic(size, stride, &memory,
                                             c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                             c10::dtype_or_default(type));
}

/* ---- copies ---- */

Handle current(const at::Tensor &t)
{
    enter(t.device().index());
    return stream_now[t.device().index()];
}

void down(void *to, const void *from, size_t bytes, Handle stream)
{
    cu("cuMemcpyDtoHAsync_v2", to, (Address)from, bytes, stream);
    cu("cuStreamSynchronize", stream);
}

void up(void *to, const void *from, size_t bytes, Handle stream)
{
    cu("cuMemcpyHtoDAsync_v2", (Address)to, from, bytes, stream);
    cu("cuStreamSynchronize", stream);
}

/* The whole storage, in host memory, seen as the tensor sees it. */
at::Tensor host_of(const at::Tensor &t)
{
    size_t bytes = t.storage().nbytes();
    at::Tensor whole = at::empty({ (int64_t)(bytes / t.element_size()) },
                                 t.options().device(at::kCPU));
    down(whole.mutable_data_ptr(), t.storage().data(), bytes, current(t));
    return whole.as_strided(t.sizes(), t.strides(), t.storage_offset());
}

bool is_plain(const at::Tensor &to, const at::Tensor &from)
{
    return to.scalar_type() == from.scalar_type() && to.sizes() == from.sizes()
        && to.is_contiguous() && from.is_contiguous();
}

at::Tensor &copy_(at::Tensor &to, const at::Tensor &from, bool)
{
    if (!to.numel())
        return to;
    if (is_plain(to, from)) {
        void *a = to.mutable_data_ptr();
        const void *b = from.const_data_ptr();
        if (to.is_cpu())
            down(a, b, to.nbytes(), current(from));
        else if (from.is_cpu())
            up(a, b, to.nbytes(), current(to));
        else
            cu("cuMemcpyDtoDAsync_v2", (Address)a, (Address)b, to.nbytes(), current(to));
        return to;
    }
    at::Tensor source = from.is_cpu() ? from : host_of(from);
    if (to.is_cpu())
        return to.copy_(source);
    at::Tensor result = host_of(to);
    result.copy_(source);
    c10::DeviceGuard there(to.device());
    c10::DataPtr beside = memory.allocate(result.storage().nbytes());
    up(beside.get(), result.storage().data(), result.storage().nbytes(), current(to));
    cu("cuMemcpyDtoDAsync_v2", (Address)to.storage().mutable_data(), (Address)beside.get(),
       result.storage().nbytes(), current(to));
    return to;
}

TORCH_LIBRARY_IMPL(aten, CUDA, m)
{
    m.impl("empty.memory_format", TORCH_FN(empty));
    m.impl("empty_strided", TORCH_FN(empty_strided));
    m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
    m.impl("view", TORCH_FN(at::native::view));
    m.impl("copy_", TORCH_FN(copy_));
}

}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    using Release = py::call_guard<py::gil_scoped_release>;
    m.def("empty", [](const at::Tensor &like, DeviceIndex device) {
        return at::empty(like.sizes(), like.options().device(Device(c10::kCUDA, device)));
    }, py::arg("like"), py::arg("device") = 0, Release());
    m.def(
        "stream", [](DeviceIndex device) { return (intptr_t)stream_made(device); },
        py::arg("device") = 0, Release());
    m.def(
        "use",
        [](intptr_t stream, DeviceIndex device) {
            return (intptr_t)handle_of(c10::impl::getDeviceGuardImpl(c10::kCUDA)
                                           ->exchangeStream(as_stream(device, (Handle)stream)));
        },
        py::arg("stream"), py::arg("device") = 0);
    m.def(
        "now", [](DeviceIndex device) { return (intptr_t)stream_now[device]; },
        py::arg("device") = 0);
    m.def("hold", [](intptr_t stream, bool on) {
        ((void (*)(Handle, int))symbol("fakeHold"))((Handle)stream, on);
    });
    m.def("is_idle",
          [](intptr_t stream) { return ask("cuStreamQuery", (Handle)stream) != NOT_READY; });
}
