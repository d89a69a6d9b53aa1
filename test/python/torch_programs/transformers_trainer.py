# transformers' Trainer: a tiny model of random weights trained by DDP, as one process trains it,
# evaluated, saved and loaded.
import os

import torch
import torch.distributed as dist
import transformers

from support import BACKEND, alike, begin, carried, check, near

LIMIT = 180
ROWS, WORDS = 48, 32


def marked(tokens):
    """The first has nothing before it: no label, whether shifted or not."""
    labels = tokens.clone()
    labels[..., 0] = -100
    return labels


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return ROWS

    def __getitem__(self, row):
        tokens = torch.randint(WORDS, (8,), generator=torch.Generator().manual_seed(row))
        return {"input_ids": tokens, "labels": marked(tokens)}


def model_of():
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=WORDS, n_positions=8, n_embd=16, n_layer=2,
                                     n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                                     bos_token_id=0, eos_token_id=0)
    return transformers.GPT2LMHeadModel(config)


def alone(steps, size):
    """What the Trainer does, in one process: batches in the data's order, SGD of a constant rate,
    clipped gradients."""
    model, data = model_of(), Sentences()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(steps):
        tokens = torch.stack([data[row]["input_ids"]
                              for row in range(step * 4 * size, (step + 1) * 4 * size)])
        model(input_ids=tokens, labels=marked(tokens)).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return {name: value.detach() for name, value in model.named_parameters()}


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    if BACKEND != "gloo":
        begin()            # its Accelerate asks for gloo by itself, and takes a group that is there
    folder = os.environ["TUTTI_TEST_FOLDER"]
    steps = 3
    arguments = transformers.TrainingArguments(
        output_dir=folder, use_cpu=True, max_steps=steps, per_device_train_batch_size=4,
        learning_rate=0.5, optim="sgd", lr_scheduler_type="constant", weight_decay=0.0,
        train_sampling_strategy="sequential", report_to=[], disable_tqdm=True, logging_steps=1,
        save_strategy="no")
    trainer = transformers.Trainer(model=model_of(), args=arguments, train_dataset=Sentences(),
                                   eval_dataset=Sentences())
    size = arguments.world_size
    check(size == int(os.environ["WORLD_SIZE"]) and dist.get_backend() == BACKEND)
    trainer.train()
    expected = alone(steps, size)
    for name, value in trainer.model.named_parameters():
        near(value.detach(), expected[name], name, rtol=1e-4, atol=1e-5)
        alike(value, name)
    scores = trainer.evaluate()
    with torch.no_grad():
        tokens = torch.stack([row["input_ids"] for row in map(Sentences().__getitem__,
                                                              range(ROWS))])
        near(torch.tensor(scores["eval_loss"]),
             trainer.model(input_ids=tokens, labels=marked(tokens)).loss, "loss", rtol=1e-4)
    trainer.save_model(os.path.join(folder, "saved"))
    dist.barrier()
    loaded = transformers.GPT2LMHeadModel.from_pretrained(os.path.join(folder, "saved"))
    for (name, got), value in zip(loaded.named_parameters(), trainer.model.parameters()):
        near(got.detach(), value.detach(), name, rtol=0, atol=0)
    check(trainer.predict(Sentences()).predictions.shape[0] == ROWS)
    carried()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
