"""Transformers of x-transformers: language models, an encoder and decoder, images, numbers."""

import random

import torch
import x_transformers as xt
from report import draw_on_the_cpu, finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
g = torch.Generator().manual_seed(0)
words = torch.randint(0, 32, (2, 24), generator=g).to(device)


def train(name, model, *arguments, steps=4, **options):
    """Take steps of Adam and report the losses and the gradients of the first."""
    model.to(device)
    random.seed(0)  # wrappers toss coins with it
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=3e-3), []
    for step in range(steps):
        loss = model(*arguments, **options)
        loss = loss[0] if isinstance(loss, tuple) else loss
        optimizer.zero_grad()
        loss.backward()
        if not step:
            norms = [p.grad.norm().item() for p in model.parameters() if p.grad is not None]
            largest = max(norms)
            report(f"{name}: gradients", [n for n in norms if n > 1e-4 * largest])
        optimizer.step()
        losses.append(loss.item())
    report(f"{name}: losses", losses)


decoders = {
    "plain": {},
    "rotary": {"rotary_pos_emb": True, "use_rmsnorm": True, "ff_glu": True, "ff_swish": True},
    "rotary with xpos": {"rotary_xpos": True, "attn_one_kv_head": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2},
    "relative": {"rel_pos_bias": True, "attn_qk_norm": True},
    "dynamic": {"dynamic_pos_bias": True, "residual_attn": True},
    "flash": {"attn_flash": True, "rotary_pos_emb": True, "attn_kv_heads": 2},
    "sandwich": {"sandwich_norm": True, "attn_gate_values": True, "shift_tokens": 1},
    "talking": {"attn_pre_talking_heads": True, "attn_num_mem_kv": 2, "scale_residual": True},
    "sparse": {"attn_sparse_topk": 4, "gate_residual": True, "ff_relu_squared": True},
    "macaron": {"macaron": True, "use_scalenorm": True, "attn_sigmoid": False},
    "hyper": {"num_residual_streams": 2, "integrate_layers": True},
}
for name, options in decoders.items():
    torch.manual_seed(0)
    model = xt.TransformerWrapper(
        num_tokens=32,
        max_seq_len=32,
        attn_layers=xt.Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **options),
    )
    train(name, xt.AutoregressiveWrapper(model), words)

torch.manual_seed(1)
model = xt.TransformerWrapper(
    num_tokens=32,
    max_seq_len=32,
    num_memory_tokens=2,
    tie_embedding=True,
    attn_layers=xt.Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, rotary_pos_emb=True),
)
writer = xt.AutoregressiveWrapper(model, pad_value=0)
train("memory", writer, words)
writer.eval()
report("greedy", writer.generate(words[:, :4], 12, temperature=0.0))
torch.manual_seed(2)
report("sampled", writer.generate(words[:, :4], 12, filter_logits_fn="top_p"))
report("without cache", writer.generate(words[:1, :4], 6, temperature=0.0, cache_kv=False))
report("beams", writer.beam_search(words[:1, :4], 6, beams=2))

torch.manual_seed(3)
model = xt.XTransformer(
    dim=32,
    enc_num_tokens=32,
    enc_depth=1,
    enc_heads=2,
    enc_max_seq_len=24,
    dec_num_tokens=32,
    dec_depth=1,
    dec_heads=2,
    dec_max_seq_len=24,
    tie_token_emb=True,
)
mask = torch.ones(2, 24, dtype=torch.bool, device=device)
mask[1, 18:] = False
train("both", model, words, words.flip(1), mask=mask)
report("translated", model.generate(words, words[:, :1], 8, mask=mask, temperature=0.0))

torch.manual_seed(4)
model = xt.ViTransformerWrapper(
    image_size=16,
    patch_size=4,
    num_classes=5,
    num_register_tokens=2,
    attn_layers=xt.Encoder(dim=32, depth=2, heads=2),
)
image = torch.randn(3, 3, 16, 16).to(device)
logits = model.to(device)(image)
torch.nn.functional.cross_entropy(logits, torch.tensor([0, 3, 4], device=device)).backward()
report("images", logits)
report("images: gradient", model.patch_to_embedding[1].weight.grad)

torch.manual_seed(5)
model = xt.ContinuousTransformerWrapper(
    dim_in=4, dim_out=4, max_seq_len=24, attn_layers=xt.Decoder(dim=32, depth=1, heads=2)
)
series = torch.randn(2, 16, 4).to(device)
train("series", xt.ContinuousAutoregressiveWrapper(model), series)
numbers = torch.randn(2, 24, generator=g).to(device)
torch.manual_seed(6)
model = xt.XValTransformerWrapper(
    num_tokens=32,
    numerical_token_id=3,
    max_seq_len=32,
    attn_layers=xt.Decoder(dim=32, depth=1, heads=2),
)
train("numbers", xt.XValAutoregressiveWrapper(model), words, numbers)
torch.manual_seed(7)
model = xt.TransformerWrapper(
    num_tokens=33, max_seq_len=24, attn_layers=xt.Encoder(dim=32, depth=1, heads=2)
)
hidden = xt.NonAutoregressiveWrapper(model, mask_id=32, steps=4)
train("masked", hidden, words)
torch.manual_seed(8)
model = xt.TransformerWrapper(
    num_tokens=32,
    max_seq_len=12,
    max_mem_len=12,
    attn_layers=xt.Decoder(dim=32, depth=1, heads=2, rel_pos_bias=True),
)
train("recurrent", xt.XLAutoregressiveWrapper(model), words)
finish()
