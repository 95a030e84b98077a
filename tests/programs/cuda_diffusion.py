"""Steps of a diffusion UNet with gradient checkpointing, in float16 where that is asked for."""

import math
import os

import torch
from report import finish, report
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
dtype = os.environ.get("DTYPE", "float32")
half = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(dtype)
use_amp = half is not None and device.type == "cuda"
torch.manual_seed(4)


def at_times(t, width=32):
    """Return sines and cosines of times."""
    rates = torch.exp(-math.log(1000) * torch.arange(width // 2, device=t.device) / (width // 2))
    angles = t.float()[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Res(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.enter, self.leave = nn.GroupNorm(4, inside), nn.GroupNorm(4, outside)
        self.first = nn.Conv2d(inside, outside, 3, padding=1)
        self.second = nn.Conv2d(outside, outside, 3, padding=1)
        self.time = nn.Linear(32, outside)
        same = inside == outside
        self.short = nn.Identity() if same else nn.Conv2d(inside, outside, 1)

    def forward(self, x, t):
        y = self.first(F.silu(self.enter(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.second(F.silu(self.leave(y))) + self.short(x)


class Attend(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv = nn.GroupNorm(4, width), nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(n, 3, 2, c // 2, h * w).mT.unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).mT.reshape(n, c, h, w)
        return x + self.out(y)


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 32))
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.down = nn.ModuleList([Res(width, width), Res(width, 2 * width)])
        self.shrink = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle, self.attend = Res(2 * width, 2 * width), Attend(2 * width)
        self.grow = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.up = Res(2 * width, width)
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x, t):
        t = self.time(at_times(t))
        first = checkpoint(self.down[0], self.enter(x), t, use_reentrant=False)
        y = checkpoint(self.down[1], self.shrink(first), t, use_reentrant=False)
        y = self.attend(checkpoint(self.middle, y, t, use_reentrant=False))
        y = torch.cat([self.grow(y), first], dim=1)
        return self.leave(checkpoint(self.up, y, t, use_reentrant=False))


net = UNet().to(device)
betas = torch.linspace(1e-3, 0.2, 20, device=device)
left = torch.cumprod(1 - betas, 0)
g = torch.Generator().manual_seed(8)
grid = torch.linspace(-1, 1, 8)
radii = 0.3 + 0.5 * torch.rand(32, generator=g)
images = ((grid[:, None] ** 2 + grid**2).sqrt() < radii[:, None, None]).float()[:, None] * 2 - 1
optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
scaler = torch.amp.GradScaler(device.type, enabled=use_amp and half == torch.float16)
losses = []
for step in range(10):
    x = images[(step * 8) % 32 : (step * 8) % 32 + 8].to(device, non_blocking=True)
    t = torch.randint(20, (8,), generator=g).to(device)
    noise = torch.randn(8, 1, 8, 8, generator=g).to(device)
    mixed = left[t][:, None, None, None]
    noisy = mixed.sqrt() * x + (1 - mixed).sqrt() * noise
    with torch.autocast(device.type, dtype=half, enabled=use_amp):
        loss = F.mse_loss(net(noisy, t), noise)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
report("losses", losses)
report("last norm", norm.item())
net.eval()
with torch.no_grad():
    x = torch.randn(2, 1, 8, 8, generator=g).to(device)
    for t in reversed(range(0, 20, 4)):
        times = torch.full((2,), t, device=device)
        guess = net(x, times)
        clean = ((x - (1 - left[t]).sqrt() * guess) / left[t].sqrt()).clamp(-1.5, 1.5)
        last = left[t - 4] if t >= 4 else left.new_ones(())
        x = last.sqrt() * clean + (1 - last).sqrt() * guess
report("made", x)
if device.type == "cuda":
    torch.cuda.empty_cache()
finish()
