"""
A variational autoencoder
=========================

It learns to draw handwritten digits. Each digit becomes two numbers, and from any two numbers it
draws a digit.

``python -m pytensorlib.examples vae`` runs this page as a program; ``--device wgpu`` trains on the
GPU.
"""

# %%
# The idea: an encoder maps an image to a normal distribution over a small *latent* space, a
# decoder maps a point of that space to an image. Both learn together. The loss asks two things:
# the drawn image is like the first one, and the distributions stay near the standard normal one,
# so that there are no gaps between them.

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.examples import _common as common
from pytensorlib.nn import functional as F

# %%
# The model
# ---------
#
# ``nn.Linear``, ``nn.Module`` and the others are PyTorch's. The encoder gives four numbers for each
# image: two means and two logarithms of variances.


class VAE(nn.Module):
    """An encoder to two dimensions, and a decoder back."""

    def __init__(self, width=256, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.moments = nn.Linear(width, 2 * latent)
        self.decoder = nn.Sequential(
            *(nn.Linear(latent, width), nn.GELU(), nn.Linear(width, width), nn.GELU()),
            nn.Linear(width, 64),
        )

    def encode(self, x):
        """Return the mean and the log variance of each image's place."""
        return self.moments(self.encoder(x)).chunk(2, dim=-1)

    def forward(self, x):
        """Return the image drawn again, as logits, and the moments."""
        mean, log_variance = self.encode(x)
        # Noise times a learned width, plus a learned mean: gradients go through both.
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(z), mean, log_variance


# %%
# The loss
# --------
#
# The first term is how surprised the decoder is by the pixels. The second is the Kullback-Leibler
# divergence between two normal distributions, which has a formula.


def loss_of(model, x):
    """Return the negative evidence lower bound, in nats per image."""
    logits, mean, log_variance = model(x)
    pixels = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    return (pixels + divergence) / len(x)


# %%
# Training
# --------
#
# The loop is PyTorch's: zero the gradients, compute the loss, go backward, step. ``Run`` prints how
# it goes and writes a checkpoint at the end; ``--resume --steps 4000`` goes on from there.


def main(argv=None):
    """Train, and draw what was learned."""
    args = common.parse(common.parser("vae", __doc__, steps=2000, small=30), argv)
    x, _, test_x, test_y = common.digits()
    x, batch = x.to(args.device), 128
    model = VAE().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    run = common.Run(args, "images", batch, model=model, optimizer=optimizer)
    for _ in run.steps():
        chosen = torch.randint(0, len(x), (batch,)).to(args.device)
        loss = loss_of(model, x[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.note(loss)
    with torch.no_grad():
        print(f"loss on unseen digits {loss_of(model, test_x.to(args.device)).item():.2f}")
        draw(args, run.losses, model, test_x, test_y)


# %%
# The picture
# -----------
#
# Left, the loss. In the middle, where the encoder puts digits that it has not seen, one colour for
# each digit; nobody told it the labels. Right, what the decoder draws for a grid of points.


def draw(args, losses, model, x, y):
    """Draw the loss, the latent space, and what the decoder makes of it."""
    with common.figure(args, "vae.png", 3) as axes:
        if axes is None:
            return
        axes[0].plot(losses, linewidth=0.6)
        axes[0].set(xlabel="step", ylabel="loss (nats per image)")
        mean, _ = model.encode(x.to(args.device))
        places = mean.cpu().numpy()
        axes[1].scatter(places[:, 0], places[:, 1], c=y.numpy(), cmap="tab10", s=8)
        axes[1].set(xlabel="first latent number", ylabel="second")
        line = torch.linspace(-2, 2, 15)
        grid = torch.cartesian_prod(-line, line).flip(1).to(args.device)
        images = model.decoder(grid).sigmoid().cpu().reshape(15, 15, 8, 8)
        axes[2].imshow(images.permute(0, 2, 1, 3).reshape(120, 120).numpy(), cmap="gray_r")
        axes[2].axis("off")


if __name__ == "__main__":
    main()
