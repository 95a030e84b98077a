"""A small vision network whose shapes are all einops'."""

import torch
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange, Reduce
from report import finish, report, report_model
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
x = torch.randn(4, 3, 16, 16).to(device)
patches = rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4)
report("patches", patches)
report("pooled", reduce(x, "b c (h 2) (w 2) -> b c h w", "max"))
report("repeated", repeat(x.mean(1), "b h w -> b c h w", c=2))
report("products", einsum(patches, patches, "b i d, b j d -> b i j"))

model = nn.Sequential(
    Rearrange("b c (h p) (w q) -> b (h w) c p q", p=4, q=4),
    EinMix("b n c p q -> b n d", weight_shape="c p q d", bias_shape="d", c=3, p=4, q=4, d=32),
    nn.LayerNorm(32),
    nn.GELU(),
    EinMix("b n d -> b m d", weight_shape="n m d", bias_shape="m d", n=16, m=8, d=32),
    Reduce("b m d -> b d", "mean"),
    nn.Linear(32, 5),
).to(device)
y = torch.arange(4, device=device) % 5
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
losses = []
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report("losses", losses)
report_model("model", model)
finish()
