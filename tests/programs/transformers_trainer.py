"""Trainer over a small data set; a model saved and loaded again."""

import os
import tempfile

import torch
from report import finish, report, report_model
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

dtype = os.environ.get("DTYPE", "float32")
set_seed(0)
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
)
data = [
    {"input_ids": torch.randint(0, 50, (8,)), "attention_mask": torch.ones(8, dtype=torch.long)}
    for _ in range(32)
]
for row in data:
    row["labels"] = int(row["input_ids"][0] > 25)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=8,
        num_train_epochs=2,
        learning_rate=1e-3,
        logging_steps=1,
        report_to=[],
        fp16=dtype == "float16",
        bf16=dtype == "bfloat16",
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data, eval_dataset=data)
    trainer.train()
    history = [row for row in trainer.state.log_history if "loss" in row]
    report("losses", [row["loss"] for row in history])
    report("norms", [row["grad_norm"] for row in history])
    report("evaluation", trainer.evaluate()["eval_loss"])
    report_model("trained", model)

    model.save_pretrained(folder)
    loaded = AutoModelForSequenceClassification.from_pretrained(folder)
    same = zip(model.cpu().state_dict().items(), loaded.state_dict().items())
    assert all(a == b and torch.equal(x, y) for (a, x), (b, y) in same)
    half = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.bfloat16)
    report(
        "in bfloat16",
        half.eval().to(model.device)(data[0]["input_ids"][None].to(model.device)).logits.float(),
    )
finish()
