"""
A GPT that writes letters
=========================

It learns to write documentation, one letter after the other, from the text of this library's own
docstrings.

``python -m pytensorlib.examples char_gpt`` runs this page as a program; ``--device wgpu`` trains on
the GPU, ``--width 256 --layers 4 --steps 5000`` trains a larger one.
"""

# %%
# The text
# --------
#
# Nothing is downloaded: every function of the library has a docstring. Joined, they are some
# eight hundred thousand letters of plain English and short programs.

import inspect

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.examples import _common as common
from pytensorlib.nn import functional as F


def text_of(module):
    """Return the docstrings of a module's public functions and classes, each once."""
    values = (getattr(module, name) for name in sorted(dir(module)) if name[0] != "_")
    found = (inspect.getdoc(value) for value in values if callable(value))
    return "\n\n".join(dict.fromkeys(text for text in found if text))


def corpus():
    """Return the text to learn from."""
    return "\n\n".join(text_of(module) for module in (torch, nn, F, torch.optim))


# %%
# The model
# ---------
#
# A decoder-only transformer: each layer has causal attention, in which a letter sees those before
# it, and a small network. ``F.scaled_dot_product_attention`` is one fused kernel.


class Block(nn.Module):
    """Attention and a network, each added to what comes in."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        """Return (batch, length, width) of the same shape."""
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """A transformer over letters."""

    def __init__(self, letters, width=96, layers=2, heads=4, length=64):
        super().__init__()
        self.length = length
        self.token, self.place = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

    def forward(self, tokens):
        """Return a score for each letter that may come next, at each place."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.token(tokens) + self.place(places))))


# %%
# Writing
# -------
#
# The model gives probabilities for the next letter. One is drawn, added to the text, and so on.


@torch.no_grad()
def write(model, tokens, count, temperature=0.8):
    """Return `tokens` with `count` more."""
    for _ in range(count):
        scores = model(tokens[None, -model.length :])[0, -1] / temperature
        chosen = torch.multinomial(scores.softmax(-1).cpu(), 1).to(tokens.device)
        tokens = torch.cat([tokens, chosen])
    return tokens


# %%
# Training
# --------
#
# Each step takes 24 pieces of the text at random. The target is the same piece, one letter later.


def main(argv=None):
    """Train, draw the loss, and write a little."""
    options = common.parser("char_gpt", __doc__, steps=700, small=5)
    options.add_argument("--width", type=int, default=96)
    options.add_argument("--layers", type=int, default=2)
    args = common.parse(options, argv)
    text = corpus()
    letters = sorted(set(text))
    number = {letter: k for k, letter in enumerate(letters)}
    data = torch.tensor([number[letter] for letter in text])
    print(f"{len(text):,} letters, {len(letters)} of them different")

    model = GPT(len(letters), args.width, args.layers).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    batch, length = 24, model.length
    run = common.Run(args, "letters", batch * length, model=model, optimizer=optimizer)
    ahead = torch.arange(length + 1)
    for step in run.steps():
        for group in optimizer.param_groups:  # warm up, then fall to a tenth
            group["lr"] = 3e-3 * min((step + 1) / 50, 1) * (1 - 0.9 * step / max(args.steps, 700))
        starts = torch.randint(0, len(data) - length - 1, (batch, 1))
        piece = data[starts + ahead].to(args.device)
        loss = F.cross_entropy(model(piece[:, :-1]).flatten(0, 1), piece[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        run.note(loss)

    # After a minute on a CPU: words, sections of docstrings, and sentences that mean nothing.
    begin = torch.tensor([number[letter] for letter in "\nParameters\n"]).to(args.device)
    written = write(model, begin, 20 if args.small else 300)
    print("".join(letters[k] for k in written.tolist()))
    with common.figure(args, "char_gpt.png", width=6) as axes:
        if axes is not None:
            axes[0].plot(run.losses, linewidth=0.7)
            axes[0].set(xlabel="step", ylabel="loss (nats per letter)")


if __name__ == "__main__":
    main()
