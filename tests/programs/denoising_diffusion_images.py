"""Diffusion models of images and sequences: losses, samples, interpolation, learned variances."""

import random

import denoising_diffusion_pytorch as ddp
import torch
from report import draw_on_the_cpu, finish, report

g = torch.Generator().manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
image = torch.rand(2, 3, 16, 16, generator=g).to(device)


def train(name, diffusion, data, steps=3):
    """Take steps of Adam and report the losses and the gradients of the first."""
    diffusion.to(device)
    torch.manual_seed(1)
    random.seed(1)  # self-conditioning tosses its coin with it
    optimizer, losses = torch.optim.Adam(diffusion.parameters(), lr=1e-3), []
    for step in range(steps):
        loss = diffusion(data)
        optimizer.zero_grad()
        loss.backward()
        if not step:
            norms = [p.grad.norm().item() for p in diffusion.parameters() if p.grad is not None]
            report(f"{name}: gradients", [n for n in norms if n > 1e-3 * max(norms)])
        optimizer.step()
        losses.append(loss.item())
    report(f"{name}: losses", losses)


def net(**options):
    """Return a small network."""
    torch.manual_seed(0)
    return ddp.Unet(dim=8, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8, **options)


for name, options, more in (
    ("noise", {}, {}),
    ("start", {"objective": "pred_x0", "beta_schedule": "cosine"}, {"self_condition": True}),
    ("velocity", {"objective": "pred_v", "min_snr_loss_weight": True}, {"flash_attn": True}),
    ("offset", {"offset_noise_strength": 0.1, "beta_schedule": "linear"}, {"dropout": 0.1}),
):
    diffusion = ddp.GaussianDiffusion(
        net(**more), image_size=16, timesteps=50, sampling_timesteps=4, **options
    )
    train(name, diffusion, image)
    torch.manual_seed(2)
    report(f"{name}: sample", diffusion.sample(batch_size=2))
torch.manual_seed(3)
report(
    "mean",
    torch.stack(
        diffusion.q_posterior(image, image.flip(0), torch.tensor([3, 20], device=device))[0:1]
    ),
)
report("between", diffusion.interpolate(image[:1], image[1:], t=3, lam=0.4))

short = ddp.GaussianDiffusion(net(), image_size=16, timesteps=5, objective="pred_v")
short.to(device)
torch.manual_seed(4)
report("all steps", short.sample(batch_size=1, return_all_timesteps=True))
learned = ddp.LearnedGaussianDiffusion(net(learned_variance=True), image_size=16, timesteps=20)
train("learned variance", learned, image)
weighted = ddp.WeightedObjectiveGaussianDiffusion(net(out_dim=8), image_size=16, timesteps=20)
train("weighted", weighted, image)
continuous = ddp.ContinuousTimeGaussianDiffusion(
    net(random_fourier_features=True), image_size=16, num_sample_steps=3, noise_schedule="cosine"
)
train("continuous", continuous, image)
torch.manual_seed(5)
report("continuous: sample", continuous.sample(batch_size=1))
elucidated = ddp.ElucidatedDiffusion(
    net(random_fourier_features=True), image_size=16, num_sample_steps=4
)
train("elucidated", elucidated, image)
torch.manual_seed(6)
report("elucidated: sample", elucidated.sample(batch_size=1))
report("DPM++", elucidated.sample_using_dpmpp(batch_size=1, num_sample_steps=4))

torch.manual_seed(7)
model = ddp.Unet1D(dim=8, dim_mults=(1, 2), channels=4)
series = ddp.GaussianDiffusion1D(model, seq_length=16, timesteps=20, objective="pred_v")
train("series", series, torch.rand(3, 4, 16, generator=g).to(device))
torch.manual_seed(8)
karras = ddp.KarrasUnet(
    image_size=16,
    dim=8,
    dim_max=16,
    num_downsamples=1,
    num_blocks_per_stage=1,
    attn_dim_head=8,
    attn_res=(8,),
).to(device)
noisy = torch.randn(2, 4, 16, 16, generator=g).to(device)
out = karras(noisy, torch.tensor([0.3, 0.7], device=device))
out.square().mean().backward()
report("Karras", out)
finish()
