"""A small residual network on images, as people train one on CUDA: with workers, AMP and EMA."""

import copy
import os

import torch
from report import finish, report
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
use_cuda = device.type == "cuda"
dtype = os.environ.get("DTYPE", "float32")
half = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(dtype, torch.float16)
use_amp = use_cuda and dtype != "float32"
torch.backends.cudnn.benchmark = True
torch.manual_seed(0)
if use_cuda:
    torch.cuda.manual_seed_all(0)


class Shapes(Dataset):
    """Noisy bars, upright or lying, and crosses."""

    def __len__(self):
        return 48

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        image, label = 0.3 * torch.randn(3, 12, 12, generator=g), i % 3
        at = 2 + int(torch.randint(8, (1,), generator=g))
        if label != 1:
            image[:, :, at] += 1.5
        if label != 0:
            image[:, at, :] += 1.5
        return image, label


class Residual(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outside) for _ in range(2))
        self.short = nn.Identity()
        if stride != 1 or inside != outside:
            short = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.short = nn.Sequential(short, nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.norms[0](self.first(x)).relu()
        return (self.norms[1](self.second(y)) + self.short(x)).relu()


net = nn.Sequential(
    nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
    Residual(8, 8, 1), Residual(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 3),
)  # fmt: skip
net = net.to(device, memory_format=torch.channels_last)
average = copy.deepcopy(net).eval()
for p in average.parameters():
    p.requires_grad_(False)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
loader = DataLoader(
    Shapes(), batch_size=16, shuffle=True, num_workers=2, pin_memory=use_cuda, drop_last=True,
    persistent_workers=True, generator=torch.Generator().manual_seed(5),
)  # fmt: skip
schedule = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 0.1, epochs=3, steps_per_epoch=len(loader)
)
scaler = torch.cuda.amp.GradScaler(enabled=use_amp and half == torch.float16)
losses, right = [], torch.zeros((), device=device)
if use_cuda:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.reset_peak_memory_stats(device)
    start.record()
for _ in range(3):
    net.train()
    for images, labels in loader:
        images = images.to(device, non_blocking=True, memory_format=torch.channels_last)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast(device_type=device.type, dtype=half, enabled=use_amp):
            out = net(images)
            loss = criterion(out, labels)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        with torch.no_grad():
            for slow, fast in zip(average.state_dict().values(), net.state_dict().values()):
                if slow.dtype.is_floating_point:
                    slow.mul_(0.8).add_(fast.detach(), alpha=0.2)
                else:
                    slow.copy_(fast)
        losses.append(loss.detach())
        right += (out.argmax(1) == labels).sum()
if use_cuda:
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) > 0 and torch.cuda.max_memory_allocated(device) > 0
report("losses", [loss.item() for loss in losses])
report("right", right.item())
images = torch.stack([Shapes()[i][0] for i in range(6)]).to(device)
with torch.inference_mode():
    report("average on images", average(images.to(memory_format=torch.channels_last)).float())
weights = [p.float().abs().mean().item() for p in average.parameters()]
report("average's weights", weights)
finish()
