"""A learned distance of images with random weights: three networks, its gradients, its ranking."""

import lpips
import torch
from report import finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
g = torch.Generator().manual_seed(0)
image = (torch.rand(2, 3, 64, 64, generator=g) * 2 - 1).to(device)
other = (image + 0.2 * torch.randn(2, 3, 64, 64, generator=g).to(device)).clamp(-1, 1)
for net in ("alex", "squeeze", "vgg"):
    torch.manual_seed(0)
    distance = lpips.LPIPS(
        net=net,
        pretrained=False,
        pnet_rand=True,
        lpips=True,
        spatial=net == "squeeze",
        verbose=False,
    )
    # Untrained weights of features are as often negative: distances then cancel to rounding.
    with torch.no_grad():
        for layer in distance.lins:
            layer.model[-1].weight.abs_()
    distance.eval().to(device)
    moved = other.clone().requires_grad_()
    value = distance(image, moved)
    report(f"{net}: distance", value)
    value.mean().backward()
    report(f"{net}: gradient", moved.grad * 1e3)
    if net == "alex":
        _, layers = distance(image, other, retPerLayer=True)
        report("alex: of each layer", torch.cat([v.flatten() for v in layers]))
        report("alex: of unit range", distance((image + 1) / 2, (other + 1) / 2, normalize=True))

torch.manual_seed(0)
judge = lpips.BCERankingLoss().to(device)
near, far = (torch.rand(4, 1, 1, 1).to(device) for _ in range(2))
loss = judge(near, far, torch.tensor([0.0, 1.0, -1.0, 0.5], device=device).view(4, 1, 1, 1))
loss.backward()
report("ranking loss", loss)
report("its gradient", next(judge.parameters()).grad)
report("L2", lpips.L2(use_gpu=device == "cuda", colorspace="RGB")(image[:1], other[:1]))
report("PSNR", lpips.psnr(lpips.tensor2im(image), lpips.tensor2im(other)))
finish()
