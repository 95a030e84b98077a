"""A network trained by Lion, whose weights three kinds of running averages follow."""

import torch
from ema_pytorch import EMA, PostHocEMA
from lion_pytorch import Lion
from lion_pytorch.cautious_lion import Lion as CautiousLion
from report import finish, report, report_model

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.randn(32, 6, generator=torch.Generator().manual_seed(1)).to(device)
y = x[:, :2].sin() + x[:, 2:4]
for optimizer_class, options in ((Lion, {"decoupled_weight_decay": True}), (CautiousLion, {})):
    name = f"{optimizer_class.__module__}"
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.LayerNorm(16), torch.nn.SiLU(), torch.nn.Linear(16, 2)
    ).to(device)
    optimizer = optimizer_class(model.parameters(), lr=1e-2, weight_decay=1e-2, **options)
    average = EMA(model, beta=0.9, update_after_step=2, update_every=2, power=0.8)
    losses = []
    for _ in range(12):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
        losses.append(loss.item())
    report(f"{name}: losses", losses)
    report(f"{name}: decay", average.get_current_decay())
    report_model(f"{name}: model", model)
    report_model(f"{name}: average", average.ema_model)
    with torch.no_grad():
        report(f"{name}: average applied", average(x))
    average.update_model_with_ema()
    report_model(f"{name}: model from its average", model)

torch.manual_seed(0)
model = torch.nn.Linear(6, 2).to(device)
optimizer = Lion(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
several = PostHocEMA(
    model, sigma_rels=(0.05, 0.3), update_every=2, checkpoint_every_num_steps="manual"
)
for _ in range(10):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    several.update()
for average in several.ema_models:
    report(f"sigma {average.gamma:.2f}", average.ema_model.weight)
finish()
