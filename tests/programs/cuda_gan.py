"""Two networks against each other, each with an optimizer of its own."""

import os

import torch
from report import finish, report
from torch import nn
from torch.nn import functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dtype = os.environ.get("DTYPE", "float32")
half = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(dtype)
use_amp = half is not None and device.type == "cuda"
torch.manual_seed(21)


def init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.05)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


maker = nn.Sequential(
    nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
    nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
    nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Tanh(),
)  # fmt: skip
judge = nn.Sequential(
    nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True),
    nn.utils.spectral_norm(nn.Conv2d(8, 16, 4, 2, 1)), nn.LeakyReLU(0.2, inplace=True),
    nn.Conv2d(16, 1, 4, 1, 0), nn.Flatten(0),
)  # fmt: skip
maker, judge = maker.apply(init).to(device), judge.apply(init).to(device)
adam = {"lr": 2e-3, "betas": (0.5, 0.999)}
of_maker, of_judge = (torch.optim.Adam(m.parameters(), **adam) for m in (maker, judge))
scaler = torch.amp.GradScaler(device.type, enabled=use_amp and half == torch.float16)
g = torch.Generator().manual_seed(6)
fixed = torch.randn(4, 8, 1, 1, generator=g).to(device)
found = {"judge": [], "maker": [], "real": []}
for _ in range(10):
    at = torch.rand(16, 1, 1, generator=g) * 6
    line = torch.arange(16.0)
    real = torch.exp(-((line - 5 - at) ** 2) / 8).expand(16, 16, 16)[:, None] * 2 - 1
    real = real.to(device, non_blocking=True)
    noise = torch.randn(16, 8, 1, 1, generator=g).to(device, non_blocking=True)
    ones, zeros = torch.ones(16, device=device), torch.zeros(16, device=device)

    judge.zero_grad(set_to_none=True)
    with torch.autocast(device.type, dtype=half, enabled=use_amp):
        fake = maker(noise)
        says_real, says_fake = judge(real), judge(fake.detach())
        bad = F.binary_cross_entropy_with_logits(says_real, 0.9 * ones)
        bad = bad + F.binary_cross_entropy_with_logits(says_fake, zeros)
    scaler.scale(bad).backward()
    scaler.step(of_judge)

    maker.zero_grad(set_to_none=True)
    with torch.autocast(device.type, dtype=half, enabled=use_amp):
        fooled = F.binary_cross_entropy_with_logits(judge(fake), ones)
    scaler.scale(fooled).backward()
    scaler.step(of_maker)
    scaler.update()
    found["judge"].append(bad.item())
    found["maker"].append(fooled.item())
    found["real"].append(says_real.float().mean().item())
for name, values in found.items():
    report(name, values)
maker.eval()
with torch.no_grad():
    report("made", maker(fixed).float().cpu())
finish()
