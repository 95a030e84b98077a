"""LoRA on a small GPT-2: trained, saved, loaded and merged."""

import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from report import finish, report
from transformers import GPT2Config, GPT2LMHeadModel

device = "cuda" if torch.cuda.is_available() else "cpu"


def base():
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0)
    )


ids = torch.randint(0, 50, (2, 8), generator=torch.Generator().manual_seed(1)).to(device)
config = LoraConfig(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True)
model = get_peft_model(base(), config).to(device)
report("trainable", list(model.get_nb_trainable_parameters()))
model.eval()  # no dropout
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)
losses = []
for _ in range(8):
    loss = model(input_ids=ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report("losses", losses)
with torch.no_grad():
    logits = model(input_ids=ids).logits
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = PeftModel.from_pretrained(base(), folder).to(device).eval()
        torch.testing.assert_close(loaded(input_ids=ids).logits, logits)
    with model.disable_adapter():
        report("without", model(input_ids=ids).logits)
    merged = model.merge_and_unload()
    torch.testing.assert_close(merged(input_ids=ids).logits, logits, rtol=1e-4, atol=1e-4)
report("logits", logits)
finish()
