"""A small U-Net trained to remove noise, and sampled by several schedulers."""

import torch
from diffusers import (
    DDIMScheduler,
    DDPMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    PNDMScheduler,
    UNet2DModel,
)
from report import finish, report, report_model

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 32),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    norm_num_groups=8,
    attention_head_dim=8,
).to(device)
images = (torch.rand(4, 3, 16, 16) * 2 - 1).to(device)
scheduler = DDPMScheduler(num_train_timesteps=100)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for _ in range(4):
    noise = torch.randn(images.shape).to(device)
    steps = torch.randint(0, 100, (4,)).to(device)
    noisy = scheduler.add_noise(images, noise, steps)
    loss = torch.nn.functional.mse_loss(model(noisy, steps).sample, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report("losses", losses)
report_model("model", model)
model.eval()
for kind in (
    DDPMScheduler,
    DDIMScheduler,
    PNDMScheduler,
    EulerDiscreteScheduler,
    DPMSolverMultistepScheduler,
):
    scheduler = kind(num_train_timesteps=100)
    scheduler.set_timesteps(5, device=device)
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(1, 3, 16, 16, generator=generator).to(device) * scheduler.init_noise_sigma
    with torch.no_grad():
        for t in scheduler.timesteps:
            noise = model(scheduler.scale_model_input(x, t), t).sample
            takes = {} if kind is PNDMScheduler else {"generator": generator}
            x = scheduler.step(noise, t, x, **takes).prev_sample
    report(kind.__name__, x)
finish()
