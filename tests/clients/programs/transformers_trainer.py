"""Hugging Face's Trainer on a small BERT without pretrained weights."""
import os

import torch
from transformers import (BertConfig, BertForSequenceClassification, Trainer, TrainerCallback,
                          TrainingArguments)

from client import kill_once, path, report


class Words(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(9)
        self.ids = torch.randint(1, 50, (128, 12), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {"input_ids": ids, "labels": (ids[0] > 25).long()}


class KillOnce(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        if state.global_step == 5:
            kill_once()


def main():
    torch.manual_seed(2)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0))
    arguments = TrainingArguments(
        output_dir=path("out"), per_device_train_batch_size=8, num_train_epochs=1, use_cpu=True,
        save_strategy="steps", save_steps=4, logging_steps=8, report_to=[], disable_tqdm=True,
        ddp_backend="gloo", seed=4)
    trainer = Trainer(model=model, args=arguments, train_dataset=Words(), callbacks=[KillOnce()])
    resumed = os.path.isdir(path("out/checkpoint-4"))
    outcome = trainer.train(resume_from_checkpoint=resumed)
    report(trainer.accelerator.unwrap_model(trainer.model), outcome.training_loss,
           mode=arguments.parallel_mode.name, resumed=int(resumed))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
