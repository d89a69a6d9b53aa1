# FullyShardedDataParallel (FSDP1): its strategies, wrapped layers, gradients kept back, whole and
# sharded state.
import functools

import torch
from torch.distributed.fsdp import (FullStateDictConfig, FullyShardedDataParallel as FSDP,
                                    ShardingStrategy, StateDictType)
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy

from support import (ADAM, STEPS, Net, alone, batch, begin, check, end, exact, fit, loss, near, net,
                     sgd, trained)


def wrapped(strategy=ShardingStrategy.FULL_SHARD, **words):
    layers = functools.partial(size_based_auto_wrap_policy, min_num_params=100)
    words.setdefault("auto_wrap_policy", layers)
    return FSDP(net(), sharding_strategy=strategy, device_id=torch.device("cpu"), **words)


def whole(model):
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT):
        return {name: value.clone() for name, value in model.state_dict().items()}


def main():
    me, size = begin()
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP,
                     ShardingStrategy.NO_SHARD):
        trained(whole(fit(wrapped(strategy), me)), size, strategy)
    trained(whole(fit(wrapped(use_orig_params=True), me)), size, "original parameters")
    trained(whole(fit(wrapped(auto_wrap_policy=None), me)), size, "one unit")

    model = wrapped()
    with model.no_sync():
        loss(model, *batch(me, 0)).backward()
    loss(model, *batch(me, 1)).backward()
    single = net()
    (sum(loss(single, *batch(rank, step)) for rank in range(size)
         for step in (0, 1)) / size).backward()
    sgd(model).step()
    sgd(single).step()
    for name, value in whole(model).items():
        exact(size)(value, single.state_dict()[name].detach(), name)

    model, single = FSDP(net().float(), device_id=torch.device("cpu")), net().float()
    loss(model, *(one.float() for one in batch(0))).backward()
    loss(single, *(one.float() for one in batch(0))).backward()
    near(model.clip_grad_norm_(1.0), torch.nn.utils.clip_grad_norm_(single.parameters(), 1.0),
         "norm", rtol=1e-6)

    # The state on rank 0 alone, and each rank's own of model and optimizer.
    model = wrapped(use_orig_params=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1 / 64)
    fit(model, me, optimizer=optimizer)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT,
                              FullStateDictConfig(rank0_only=True)):
        state = model.state_dict()
    check(bool(state) == (me == 0), state.keys())
    steps = FSDP.full_optim_state_dict(model, optimizer)
    single = net()
    expected = alone(size, model=single, optimizer=torch.optim.Adam(single.parameters(), lr=1 / 64))
    for name, value in state.items():
        near(value, expected[name], name, **ADAM)
    if me == 0:
        check(all(int(one["step"]) == STEPS for one in steps["state"].values()),
              steps["state"].keys())
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        state = model.state_dict()
        fresh = FSDP(Net().double(), auto_wrap_policy=functools.partial(size_based_auto_wrap_policy,
                                                                        min_num_params=100),
                     use_orig_params=True, device_id=torch.device("cpu"))
        with FSDP.state_dict_type(fresh, StateDictType.SHARDED_STATE_DICT):
            fresh.load_state_dict(state)
    for name, value in whole(fresh).items():
        near(value, expected[name], name, **ADAM)
    end()


if __name__ == "__main__":
    main()
