# DeepSpeed on processors: ZeRO of stages 0 to 3, each the same training; gradients accumulated; a
# checkpoint saved and loaded.
import logging
import os

os.environ["DS_ACCELERATOR"] = "cpu"
import deepspeed  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

from support import (BACKEND, RATE, alike, alone, batch, carried, check,  # noqa: E402
                     loss, near, net)

LIMIT = 180
ROUNDED = {"rtol": 1e-5, "atol": 1e-5}          # it computes in single precision


def single():
    return net().float()


def halves(rank, step):
    return (one.float() for one in batch(rank, step))


def engine_of(stage, accumulated=1):
    model = single()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    made, *_ = deepspeed.initialize(model=model, optimizer=optimizer, dist_init_required=False,
                                    config={
        "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": accumulated,
        "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False,
        "gradient_clipping": 0.0,
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 200,
                              "stage3_param_persistence_threshold": 0}})
    return made


def weights(engine, stage):
    if stage < 3:
        return {name: value.detach().clone() for name, value in engine.module.named_parameters()}
    parameters = dict(engine.module.named_parameters())
    with deepspeed.zero.GatheredParameters(list(parameters.values())):
        return {name: value.detach().clone() for name, value in parameters.items()}


def trained(engine, stage, size, steps):
    expected = alone(size, steps)
    for name, value in weights(engine, stage).items():
        near(value, expected[name].float(), f"stage {stage} {name}", **ROUNDED)
        alike(value, f"stage {stage} {name}")


def main():
    torch.set_num_threads(1)
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    # As where there is no compiler: this would be built in a minute, and is for inference.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend=BACKEND, verbose=False)
    me, size = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
    check(dist.is_initialized() and dist.get_backend() == BACKEND)

    value = torch.full((3,), float(me))
    deepspeed.comm.all_reduce(value)
    check(value.tolist() == [size * (size - 1) / 2] * 3)

    for stage in (0, 1, 2, 3):
        engine = engine_of(stage)
        for step in range(2):
            engine.backward(loss(engine, *halves(me, step)))
            engine.step()
        trained(engine, stage, size, 2)
        if stage in (1, 3):
            folder = os.path.join(os.environ["TUTTI_TEST_FOLDER"], f"stage{stage}")
            engine.save_checkpoint(folder, tag="two")
            again = engine_of(stage)
            again.load_checkpoint(folder, tag="two")
            trained(again, stage, size, 2)

    engine = engine_of(2, accumulated=2)
    model = single().double()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for step in range(2):
        engine.backward(loss(engine, *halves(me, step)))
        engine.step()
        (sum(loss(model, *batch(rank, step)) for rank in range(size)) / size / 2).backward()
    optimizer.step()
    for name, value in weights(engine, 2).items():
        near(value, model.state_dict()[name].float(), f"accumulated {name}", **ROUNDED)
    carried()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
