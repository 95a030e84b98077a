"""A training loop through Accelerator, its state saved and restored."""

import os
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import GradScalerKwargs, set_seed
from report import finish, report, report_model
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
precision = {"float16": "fp16", "bfloat16": "bf16"}.get(os.environ.get("DTYPE", ""), "no")
accelerator = Accelerator(
    gradient_accumulation_steps=2,
    mixed_precision=precision,
    kwargs_handlers=[GradScalerKwargs(init_scale=256.0)],  # at 65536 the first step overflows
)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
x = torch.randn(64, 8)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 16, shuffle=True)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)


def epoch():
    losses = []
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(inputs), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach()).item())
    return losses


report("first epoch", epoch())
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = epoch()
    accelerator.load_state(folder)
    again = epoch()
assert before == again, (before, again)
report("second epoch", before)
report("rate", optimizer.param_groups[0]["lr"])
report_model("model", accelerator.unwrap_model(model))
finish()
