"""A dilated 1-D convolution network that learns an amplifier's sound from windows of it."""

import os

import torch
from report import finish, report
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
dtype = os.environ.get("DTYPE", "float32")
half = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(dtype)
torch.manual_seed(3)


class Layer(nn.Module):
    """A gated convolution that looks back `dilation` samples at a time."""

    def __init__(self, channels, kernel, dilation):
        super().__init__()
        self.gated = nn.Conv1d(channels, 2 * channels, kernel, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)
        self.cut = dilation * (kernel - 1)

    def forward(self, x):
        signal, gate = self.gated(x).chunk(2, dim=1)
        y = torch.tanh(signal) * torch.sigmoid(gate)
        return x[..., self.cut :] + self.mix(y), y


class Amplifier(nn.Module):
    def __init__(self, channels=6, kernel=3, dilations=(1, 2, 4, 8, 16)):
        super().__init__()
        self.enter = nn.Conv1d(1, channels, 1)
        self.layers = nn.ModuleList(Layer(channels, kernel, d) for d in dilations)
        self.leave = nn.Conv1d(channels * len(dilations), 1, 1)
        self.reach = sum(layer.cut for layer in self.layers)

    def forward(self, x):
        y, skips = self.enter(x), []
        for layer in self.layers:
            y, skip = layer(y)
            skips.append(skip)
        return self.leave(torch.cat([s[..., -y.shape[-1] :] for s in skips], dim=1))


def emphasis(x):
    """Weigh what changes, as ears do."""
    return x[..., 1:] - 0.95 * x[..., :-1]


def error(got, want):
    got, want = emphasis(got), emphasis(want)
    return (got - want).square().sum() / (want.square().sum() + 1e-6)


t = torch.arange(4096) / 1024
clean = 0.6 * torch.sin(2 * torch.pi * 55 * t) + 0.3 * torch.sin(2 * torch.pi * (90 + 30 * t) * t)
driven = torch.tanh(4 * clean + 0.4 * torch.roll(clean, 3)) * 0.7
net = Amplifier().to(device)
window, step = 256 + net.reach, 256
x, y = clean.unfold(0, window, step)[:, None], driven.unfold(0, window, step)[:, None, net.reach :]
loader = DataLoader(
    TensorDataset(x, y), 5, shuffle=True, pin_memory=device.type == "cuda",
    generator=torch.Generator().manual_seed(1),
)  # fmt: skip
optimizer = torch.optim.Adam(net.parameters(), 8e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.97)
mixed = torch.autocast(device.type, dtype=half, enabled=half is not None and device.type == "cuda")
losses = []
for _ in range(6):
    for dry, wet in loader:
        dry, wet = dry.to(device, non_blocking=True), wet.to(device, non_blocking=True)
        optimizer.zero_grad()
        with mixed:
            out = net(dry)
        loss = error(out.float(), wet)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    schedule.step()
report("losses", torch.stack(losses).cpu().tolist())
net.eval()
with torch.no_grad():
    whole = net(clean[None, None].to(device)).cpu()
report("sound", whole)
# In blocks, each with what the network looks back to, the sound is the same.
with torch.no_grad():
    starts = range(0, len(clean) - net.reach, 500)
    parts = [net(clean[None, None, i : i + 500 + net.reach].to(device)).cpu() for i in starts]
assert torch.allclose(torch.cat(parts, -1), whole, atol=1e-4)
finish()
