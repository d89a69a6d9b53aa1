# fully_shard (FSDP2): plain, kept whole after forward, accumulated, of mixed precision, and its
# state as one dictionary.
import torch
from torch.distributed.checkpoint.state_dict import (StateDictOptions, get_model_state_dict,
                                                     get_optimizer_state_dict, set_model_state_dict)
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from support import (ADAM, STEPS, alone, batch, begin, check, end, exact, fit, loss, near, net,
                     same, trained)


def sharded(**words):
    model = net()
    for layer in (model.first, model.second, model.third):
        fully_shard(layer, **words)
    return fully_shard(model, **words)


def main():
    me, size = begin()
    for words in ({}, {"reshard_after_forward": False}):
        model = sharded(**words)
        weight = model.first.weight
        check(isinstance(weight, DTensor)
              and weight.to_local().shape[0] == len(torch.arange(16).chunk(size)[me]), weight.shape)
        trained(fit(model, me).state_dict(), size, words)

    # Gradients of two batches in one exchange.
    model, single = sharded(), net()
    model.set_requires_gradient_sync(False)
    loss(model, *batch(me, 0)).backward()
    model.set_requires_gradient_sync(True)
    loss(model, *batch(me, 1)).backward()
    (sum(loss(single, *batch(rank, step)) for rank in range(size)
         for step in (0, 1)) / size).backward()
    for got, expected in zip(model.parameters(), single.parameters()):
        exact(size)(got.grad.full_tensor(), expected.grad)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
    near(norm, torch.nn.utils.clip_grad_norm_(single.parameters(), 1.0))

    # bfloat16 to compute with and float32 to sum in: small integers are exact in both.
    model = net().float()
    fully_shard(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16,
                                                      reduce_dtype=torch.float32))
    x, y = (one.bfloat16() for one in batch(me))
    loss(model, x, y).backward()
    check(all(one.grad.dtype == torch.float32 for one in model.parameters()))
    single = net()
    (sum(loss(single, *batch(rank)) for rank in range(size)) / size).backward()
    for got, expected in zip(model.parameters(), single.parameters()):
        near(got.grad.full_tensor(), expected.grad.float(), "of mixed precision", rtol=0.05, atol=2)

    # The whole state on every rank, and back.
    model = sharded()
    optimizer = torch.optim.Adam(model.parameters(), lr=1 / 64)
    fit(model, me, optimizer=optimizer)
    single = net()
    expected = alone(size, model=single, optimizer=torch.optim.Adam(single.parameters(), lr=1 / 64))
    whole = StateDictOptions(full_state_dict=True)
    state = get_model_state_dict(model, options=whole)
    for name in expected:
        near(state[name], expected[name], name, **ADAM)
    steps = get_optimizer_state_dict(model, optimizer, options=whole)["state"]
    for name, one in steps.items():
        check(int(one["step"]) == STEPS and one["exp_avg"].shape == expected[name].shape, name)
    fresh = sharded()
    spread = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(fresh, dict(state) if me == 0 else {}, options=spread)
    for name, value in fresh.state_dict().items():
        same(value.full_tensor(), state[name], name)
    end()


if __name__ == "__main__":
    main()
