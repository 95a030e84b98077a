"""Attention by random features: its kernels, a language model, reversible layers."""

import torch
from performer_pytorch import (
    CrossAttention,
    FastAttention,
    Performer,
    PerformerLM,
    SelfAttention,
)
from report import draw_on_the_cpu, finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
g = torch.Generator().manual_seed(0)
words = torch.randint(0, 24, (2, 32), generator=g).to(device)
q, k, v = (torch.randn(1, 2, 16, 8, generator=g).to(device) for _ in range(3))
for name, options in {
    "softmax": {},
    "generalized": {"generalized_attention": True, "kernel_fn": torch.nn.ReLU()},
    "no projection": {"no_projection": True},
    "ordered": {"ortho_scaling": 1},
}.items():
    torch.manual_seed(1)
    attention = FastAttention(dim_heads=8, nb_features=16, **options).to(device)
    q1 = q.clone().requires_grad_()
    out = attention(q1, k, v)
    out.square().sum().backward()
    report(f"{name}: out", out)
    report(f"{name}: gradient", q1.grad)

models = {
    "plain": {"causal": False},
    "local": {"local_attn_heads": (2, 1), "local_window_size": 8, "rotary_position_emb": False},
    "reversible": {"reversible": True, "ff_chunks": 2, "ff_glu": True},
    "shifted": {"shift_tokens": True, "use_scalenorm": True, "axial_position_emb": True},
    "rezero": {"use_rezero": True, "tie_embed": True, "generalized_attention": True},
}
for name, options in models.items():
    torch.manual_seed(2)
    if options.get("axial_position_emb"):
        options["axial_position_shape"] = (8, 4)
    model = PerformerLM(
        num_tokens=24,
        max_seq_len=32,
        dim=24,
        depth=2,
        heads=2,
        dim_head=8,
        nb_features=16,
        **options,
    ).to(device)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for step in range(4):
        logits = model(words)
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), words)
        optimizer.zero_grad()
        loss.backward()
        if not step:
            norms = [p.grad.norm().item() for p in model.parameters() if p.grad is not None]
            report(f"{name}: gradients", [n for n in norms if n > 1e-4 * max(norms)])
        optimizer.step()
        losses.append(loss.item())
    report(f"{name}: losses", losses)

torch.manual_seed(3)
x = torch.randn(1, 16, 24, generator=g).to(device)
layer = SelfAttention(dim=24, heads=2, dim_head=8, nb_features=16, causal=False).to(device)
mask = torch.ones(1, 16, dtype=torch.bool, device=device)
mask[:, 12:] = False
report("self", layer(x, mask=mask))
cross = CrossAttention(dim=24, heads=2, dim_head=8, nb_features=16).to(device)
report("cross", cross(x, context=x.flip(1)[:, :10]))
torch.manual_seed(4)
performer = Performer(
    dim=24, depth=1, heads=2, dim_head=8, nb_features=16, feature_redraw_interval=1
).to(device)
report("before", performer(x))
performer.train()
report("drawn anew", performer(x))
performer.fix_projection_matrices_()
report("fixed", performer(x))
finish()
