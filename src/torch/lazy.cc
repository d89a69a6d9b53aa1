/* torch has a rule for a lazy conjugate, negative or zero whose operation has no kernel for it. It
 * gives the operation a copy. After the operation it writes the copy back, if the schema says that
 * the tensor changes. Schemas of c10d do not say so: their results would stay in the copy.
 * Functional collectives say so, and return before there is a result. So for our groups these
 * operations take such tensors as they are: a Side makes the copy, and writes it back at the end.
 * One case is copied here: a lazy conjugate in a functional collective, which views it as pairs of
 * numbers before our backend gets it. Quantized, nested and other tensors have no kernel at all,
 * and torch would refuse them by a list of keys: they are passed on, and refused with the reason.
 * Cost: none for other tensors. Groups of other backends get torch's own treatment. */
#include "torch/lazy.h"

#include <ATen/native/MathBitsFallback.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>

#include "torch/backend.h"

namespace tutti {

namespace {

using c10::DispatchKey;
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

const char *const SPACES[] = { "c10d", "_c10d_functional" };

/* The index of the argument that names the group; -1: none. */
int group_at(const c10::FunctionSchema &schema)
{
    for (size_t i = 0; i < schema.arguments().size(); i++)
        if (schema.arguments()[i].name() == "process_group"
            || schema.arguments()[i].name() == "group_name")
            return (int)i;
    return -1;
}

bool is_wait(const c10::FunctionSchema &schema)
{
    return schema.name() == "_c10d_functional::wait_tensor";
}

std::optional<c10::Device> device_of(const c10::IValue &value)
{
    if (value.isTensor())
        return value.toTensor().defined() ? std::optional<c10::Device>(value.toTensor().device())
                                          : std::nullopt;
    if (value.isTensorList() && !value.toTensorList().empty())
        return device_of(c10::IValue(value.toTensorList().get(0)));
    return std::nullopt;
}

/* A group by its name or as an object. torch stores an object as a capsule if the argument may have
 * any type. */
Group group_of(const c10::IValue &said)
{
    if (said.isString())
        return c10d::resolve_process_group(said.toStringRef());
    return said.isCapsule()
        ? c10::dynamic_intrusive_pointer_cast<c10d::ProcessGroup>(said.toCapsule())
        : said.toCustomClass<c10d::ProcessGroup>();
}

std::optional<c10::Device> device_of(c10::ArrayRef<c10::IValue> args)
{
    std::optional<c10::Device> device;
    for (size_t i = 0; i < args.size() && !device; i++)
        device = device_of(args[i]);
    return device;
}

/* True also for a wrapper, as torch's for TORCH_DISTRIBUTED_DEBUG=DETAIL: it has the options of the
 * wrapped backend. */
bool is_ours(const c10::OperatorHandle &op, const torch::jit::Stack &stack)
{
    if (is_wait(op.schema()))
        /* the wait finds its work by the tensor's memory, for every backend; a copy has other */
        return true;
    auto args = torch::jit::last(stack, op.schema().arguments().size());
    const c10::IValue &said = args[group_at(op.schema())];
    std::optional<c10::Device> device = device_of(args);
    try {
        Group group = group_of(said);
        return group && device
            && dynamic_cast<OptionsOfOurs *>(
                   group->getBackend(device->type())->getBackendOptions().get());
    } catch (const std::exception &) {
        /* no such group, or it has no backend for the device, or one without options */
        return false;
    }
}

struct Torchs : at::native::MathOpFallback {
    explicit Torchs(DispatchKey k) : MathOpFallback(k, c10::toString(k)) {}
    bool is_bit_set(const at::Tensor &t) override
    {
        return key == DispatchKey::Conjugate ? t.is_conj()
            : key == DispatchKey::Negative ? t.is_neg()
            : t._is_zerotensor();
    }
};

at::Tensor resolved(const at::Tensor &t) { return t.is_conj() ? t.clone() : t; }

/* Copies each lazy conjugate. If the operation changes one, waits for it here and writes it
 * back. */
void functional(const c10::OperatorHandle &op, c10::DispatchKeySet under, torch::jit::Stack *stack)
{
    const auto &arguments = op.schema().arguments();
    std::vector<std::pair<at::Tensor, at::Tensor>> back;
    std::optional<c10::IValue> changed;
    for (size_t i = 0; i < arguments.size(); i++) {
        c10::IValue &arg = torch::jit::peek(*stack, i, arguments.size());
        bool written = arguments[i].alias_info() && arguments[i].alias_info()->isWrite();
        auto copy = [&](const at::Tensor &t) {
            at::Tensor mine = resolved(t);
            if (written && !mine.is_same(t))
                back.emplace_back(t, mine);
            return mine;
        };
        if (written)
            changed = arg;
        if (arg.isTensor())
            arg = copy(arg.toTensor());
        else if (arg.isTensorList()) {
            c10::List<at::Tensor> mine;
            for (const at::Tensor &t : arg.toTensorVector())
                mine.push_back(copy(t));
            arg = mine;
        }
    }
    op.redispatchBoxed(under, stack);
    at::NoGradGuard without;
    for (auto &[theirs, mine] : back)
        theirs.copy_(c10d::wait_tensor(mine));
    if (changed)
        stack->back() = *changed;
}

/* Messages do not; and to wait here for a message that comes later would block for ever. */
bool views_as_pairs(const c10::FunctionSchema &schema)
{
    const std::string &name = schema.name();
    bool message = name == "_c10d_functional::isend" || name == "_c10d_functional::irecv"
        || name == "_c10d_functional::batch_p2p_ops";
    return name.rfind("_c10d_functional::", 0) == 0 && !is_wait(schema) && !message;
}

template <DispatchKey key>
void lazy(const c10::OperatorHandle &op, c10::DispatchKeySet keys, torch::jit::Stack *stack)
{
    auto under = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
    if (!is_ours(op, *stack))
        Torchs(key).fallback_impl(op, keys, stack);
    else if (key == DispatchKey::Conjugate && views_as_pairs(op.schema()))
        functional(op, under, stack);
    else
        op.redispatchBoxed(under, stack);
}

template <DispatchKey key>
void strange(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack)
{
    TORCH_CHECK_NOT_IMPLEMENTED(is_ours(op, *stack), "Could not run '", op.schema().name(),
                                "' with arguments from the '", key, "' backend.");
    auto device = device_of(torch::jit::last(*stack, op.schema().arguments().size()));
    op.redispatchBoxed(c10::DispatchKeySet(device && device->is_cuda() ? DispatchKey::CUDA
                                                                       : DispatchKey::CPU),
                       stack);
}

template <DispatchKey key,
          void (*kernel)(const c10::OperatorHandle &, c10::DispatchKeySet, torch::jit::Stack *)>
void put()
{
    auto &dispatcher = c10::Dispatcher::singleton();
    for (const char *space : SPACES) {
        /* never freed, like the operations */
        auto *library = new torch::Library(torch::Library::IMPL, space, key, __FILE__, __LINE__);
        for (const c10::OperatorName &name : dispatcher.getAllOpNames()) {
            auto op = dispatcher.findSchema(name);
            if (name.getNamespace() != space || !op || op->hasKernelForDispatchKey(key))
                continue;
            if (group_at(op->schema()) >= 0 || is_wait(op->schema()))
                library->impl(c10::str(name).c_str(),
                              torch::CppFunction::makeFromBoxedFunction<kernel>());
        }
    }
}

}

void lazy_setup()
{
    put<DispatchKey::Conjugate, lazy<DispatchKey::Conjugate>>();
    put<DispatchKey::Negative, lazy<DispatchKey::Negative>>();
    put<DispatchKey::ZeroTensor, lazy<DispatchKey::ZeroTensor>>();
    put<DispatchKey::QuantizedCPU, strange<DispatchKey::QuantizedCPU>>();
    put<DispatchKey::AutogradNestedTensor, strange<DispatchKey::AutogradNestedTensor>>();
    put<DispatchKey::NestedTensorCPU, strange<DispatchKey::NestedTensorCPU>>();
    put<DispatchKey::MkldnnCPU, strange<DispatchKey::MkldnnCPU>>();
    put<DispatchKey::SparseCPU, strange<DispatchKey::SparseCPU>>();
    put<DispatchKey::SparseCsrCPU, strange<DispatchKey::SparseCsrCPU>>();
    put<DispatchKey::QuantizedCUDA, strange<DispatchKey::QuantizedCUDA>>();
    put<DispatchKey::NestedTensorCUDA, strange<DispatchKey::NestedTensorCUDA>>();
    put<DispatchKey::SparseCUDA, strange<DispatchKey::SparseCUDA>>();
    put<DispatchKey::SparseCsrCUDA, strange<DispatchKey::SparseCsrCUDA>>();
}

}
