"""Six architectures, made small, trained for three steps with AdamW."""

import torch
from report import draw_on_the_cpu, finish, report, report_model
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
)

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
ids = torch.randint(1, 99, (2, 12), generator=torch.Generator().manual_seed(1))
text = {"input_ids": ids, "labels": ids}
small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
llama = {**small, "intermediate_size": 64, "num_key_value_heads": 2, "vocab_size": 99}
cases = {
    "gpt2": (
        lambda: GPT2LMHeadModel(
            GPT2Config(vocab_size=99, n_positions=32, n_embd=32, n_layer=2, n_head=4)
        ),
        text,
    ),
    "llama": (lambda: LlamaForCausalLM(LlamaConfig(**llama)), text),
    "mistral": (lambda: MistralForCausalLM(MistralConfig(**llama, sliding_window=8)), text),
    "bert": (
        lambda: BertForSequenceClassification(
            BertConfig(**small, intermediate_size=64, vocab_size=99, num_labels=3)
        ),
        {"input_ids": ids, "labels": torch.tensor([0, 2])},
    ),
    "t5": (
        lambda: T5ForConditionalGeneration(
            T5Config(
                vocab_size=99,
                d_model=32,
                d_kv=8,
                d_ff=64,
                num_layers=2,
                num_heads=4,
                decoder_start_token_id=0,
            )
        ),
        text,
    ),
    "vit": (
        lambda: ViTForImageClassification(
            ViTConfig(**small, intermediate_size=64, image_size=16, patch_size=4, num_labels=3)
        ),
        {
            "pixel_values": torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(2)),
            "labels": torch.tensor([0, 2]),
        },
    ),
}
for name, (make, batch) in cases.items():
    torch.manual_seed(0)
    model = make().to(device)
    batch = {k: v.to(device) for k, v in batch.items()}
    report(f"{name}: logits", model.eval()(**batch).logits)
    model.train()  # with the dropout of each architecture's own configuration
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses += [loss.item(), norm.item()]
    report(f"{name}: losses and norms", losses)
    report_model(name, model)
finish()
