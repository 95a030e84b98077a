"""A GPT of characters with the habits of scripts for CUDA: nothing in it names this package."""

import contextlib
import inspect
import math
import os
import tempfile

import torch
from report import finish, report
from torch import nn
from torch.nn import functional as F

# What a launcher sets, if there is one.
rank = int(os.environ.get("RANK", -1))
is_parallel = rank != -1
is_master = rank in (-1, 0)
device = "cuda" if torch.cuda.is_available() else "cpu"
device_type = "cuda" if "cuda" in device else "cpu"
dtype = os.environ.get("DTYPE", "float32")
ptdtype = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[dtype]
if device_type == "cuda":
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
torch.backends.cuda.matmul.allow_tf32 = dtype != "float32"
torch.backends.cudnn.allow_tf32 = dtype != "float32"
torch.manual_seed(1337 + max(rank, 0))
mixed = contextlib.nullcontext()
if device_type == "cuda" and dtype != "float32":
    mixed = torch.amp.autocast(device_type=device_type, dtype=ptdtype)

text = "a brown fox saw a quick dog, and the quick dog saw a brown fox by the old red barn. " * 12
letters = sorted(set(text))
code = {c: i for i, c in enumerate(letters)}
data = torch.tensor([code[c] for c in text])
context, batch, width, heads, depth = 16, 8, 32, 4, 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (y.view(n, t, heads, width // heads).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(n, t, width))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after, self.attend = nn.LayerNorm(width), nn.LayerNorm(width), Attention()
        self.think = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attend(self.before(x))
        return x + self.think(self.after(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(len(letters), width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, len(letters), bias=False)
        self.token.weight = self.head.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.08)

    def forward(self, ids, targets=None):
        places = torch.arange(ids.shape[1], dtype=torch.long, device=ids.device)
        x = self.token(ids) + self.place(places)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    @torch.no_grad()
    def generate(self, ids, n):
        for _ in range(n):
            logits, _ = self(ids[:, -context:])
            ids = torch.cat((ids, logits[:, -1:].argmax(-1)), dim=1)
        return ids


picks = torch.Generator().manual_seed(7)


def get_batch():
    starts = torch.randint(len(data) - context, (batch,), generator=picks)
    x = torch.stack([data[i : i + context] for i in starts])
    y = torch.stack([data[i + 1 : i + 1 + context] for i in starts])
    if device_type == "cuda":
        x = x.pin_memory().to(device, non_blocking=True)
        y = y.pin_memory().to(device, non_blocking=True)
        return x, y
    return x.to(device), y.to(device)


def make():
    model = GPT().to(device)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    can_fuse = "fused" in inspect.signature(torch.optim.AdamW).parameters
    more = {"fused": True} if can_fuse and device_type == "cuda" else {}
    return model, torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), **more)


def rate(step, warm=3, last=20):
    if step < warm:
        return 1e-2 * (step + 1) / warm
    return 1e-3 + 0.5 * 9e-3 * (1 + math.cos(math.pi * min(1, (step - warm) / (last - warm))))


def train(model, raw, optimizer, scaler, first, last):
    losses = []
    x, y = get_batch()
    for step in range(first, last):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        for _ in range(accumulate):
            with mixed:
                _, loss = model(x, y)
                loss = loss / accumulate
            x, y = get_batch()  # while the GPU works
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(raw.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach() * accumulate)
    return [loss.item() for loss in losses]


accumulate = 2
raw, optimizer = make()
scaler = torch.amp.GradScaler(device_type, enabled=dtype == "float16" and device_type == "cuda")
model = torch.compile(raw) if device_type == "cuda" else raw
report("losses", train(model, raw, optimizer, scaler, 0, 8))

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "ckpt.pt")
    if is_master:
        kept = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 8}
        torch.save({**kept, "picks": picks.get_state(), "scaler": scaler.state_dict()}, path)
    report("losses without a break", train(model, raw, optimizer, scaler, 8, 12))
    kept = torch.load(path, map_location=device)
state = kept["model"]
for key in list(state):
    if key.startswith("_orig_mod."):
        state[key.removeprefix("_orig_mod.")] = state.pop(key)
raw, optimizer = make()
raw.load_state_dict(state)
optimizer.load_state_dict(kept["optimizer"])
scaler.load_state_dict(kept["scaler"])
picks.set_state(kept["picks"].cpu())
model = torch.compile(raw) if device_type == "cuda" else raw
report("losses after a break", train(model, raw, optimizer, scaler, kept["step"], 20))
raw.eval()
with mixed:
    ids = raw.generate(torch.tensor([[code["a"]]], device=device), 24)
report("letters", ids[0].tolist())
if device_type == "cuda":
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() > 0
finish()
