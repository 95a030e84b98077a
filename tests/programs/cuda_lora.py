"""Low-rank fine-tuning of a small transformer whose own weights stay as they are."""

import math
import os
import tempfile

import torch
from report import finish, report
from torch import nn
from torch.nn import functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = os.environ.get("DTYPE", "float32")
half = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(dtype)
torch.manual_seed(11)


class LowRank(nn.Module):
    """A linear layer that stays, and a product of two thin matrices that is learned beside it."""

    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / rank
        self.down = nn.Parameter(torch.empty(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.down), self.up)

    def merged(self):
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        with torch.no_grad():
            layer.weight.copy_(self.base.weight + self.scale * self.up @ self.down)
            layer.bias.copy_(self.base.bias)
        return layer


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 24)
        layer = nn.TransformerEncoderLayer(24, 3, 48, 0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(24, 2)

    def forward(self, ids):
        x = self.body(self.embed(ids), src_key_padding_mask=ids == 0)
        kept = (ids != 0).unsqueeze(-1)
        return self.head((x * kept).sum(1) / kept.sum(1))


g = torch.Generator().manual_seed(2)
ids = torch.randint(1, 20, (40, 10), generator=g)
ids[::3, 7:] = 0
labels = ((ids == 4).sum(1) + (ids == 9).sum(1) > 0).long()
model = Classifier()
for p in model.parameters():
    p.requires_grad_(False)
for layer in model.body.layers:
    layer.linear1, layer.linear2 = LowRank(layer.linear1), LowRank(layer.linear2)
model.head.requires_grad_(True)
model.to(device)
learned = [p for p in model.parameters() if p.requires_grad]
report("learned", sum(p.numel() for p in learned))
optimizer = torch.optim.AdamW(learned, lr=2e-2, weight_decay=0.01)
scaler = torch.amp.GradScaler(device, enabled=half == torch.float16 and device == "cuda")
before = model.body.layers[0].linear1.base.weight.clone()
losses = []
for step in range(12):
    at = [(step * 10 + i) % 40 for i in range(10)]
    x, y = ids[at].to(device, non_blocking=True), labels[at].to(device, non_blocking=True)
    with torch.autocast(device, dtype=half, enabled=half is not None and device == "cuda"):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(learned, 1.0)
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
report("losses", losses)
assert torch.equal(before, model.body.layers[0].linear1.base.weight)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "adapter.pt")
    torch.save({k: v for k, v in model.state_dict().items() if "down" in k or "up" in k}, path)
    adapter = torch.load(path, map_location="cpu", weights_only=True)
report("adapter", [v.abs().mean().item() for v in adapter.values()])
model.eval()
with torch.no_grad():
    want = model(ids.to(device))
    for layer in model.body.layers:
        layer.linear1 = layer.linear1.merged().to(device)
        layer.linear2 = layer.linear2.merged().to(device)
    got = model(ids.to(device))
assert torch.allclose(got, want, atol=1e-4)
report("answers", got)
finish()
