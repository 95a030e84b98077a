"""Six image models forward and backward; timm's optimizers, Mixup and averaged weights."""

import numpy as np
import timm
import timm.optim
import torch
from report import draw_on_the_cpu, finish, report
from timm.data import Mixup
from timm.utils import ModelEmaV3

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
generator = torch.Generator().manual_seed(3)
x = torch.randn(2, 3, 64, 64, generator=generator).to(device)
y = torch.tensor([1, 5], device=device)
models = {
    "resnet18": {},
    "vit_tiny_patch16_224": {"img_size": 64},
    "convnext_atto": {},
    "mobilenetv3_small_050": {},
    "efficientnet_lite0": {},
    "swin_tiny_patch4_window7_224": {"img_size": 56, "embed_dim": 24, "depths": (1, 1, 1, 1)},
}
for name, options in models.items():
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=7, **options).to(device)
    image = x[..., : options.get("img_size", 64), : options.get("img_size", 64)]
    with torch.no_grad():
        report(f"{name}: evaluated", model.eval()(image))
    if name == "efficientnet_lite0":
        # Batch norm over so few numbers that float32 gradients of PyTorch are off by 3e-4.
        model, image = model.double(), image.double()
    loss = torch.nn.functional.cross_entropy(model.train()(image), y)
    loss.backward()
    report(f"{name}: loss", loss)
    gradients = [p.grad.double().norm().item() for p in model.parameters() if p.grad is not None]
    largest = max(gradients)
    report(f"{name}: gradients", [g for g in gradients if g > 1e-4 * largest])

features = timm.create_model("resnet18", features_only=True).to(device)
report("features", [n for f in features.eval()(x) for n in f.shape])

for name in ("adamw", "lamb", "lion", "adafactor", "nadamw", "madgrad"):
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 4).to(device)
    average = ModelEmaV3(model, decay=0.9)
    optimizer = timm.optim.create_optimizer_v2(model, opt=name, lr=0.01, weight_decay=0.05)
    inputs, losses = torch.randn(8, 6).to(device), []
    for _ in range(5):
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        losses.append(loss.item())
    report(f"{name}: losses", losses)
    report(f"{name}: average", average.module.weight)

np.random.seed(0)  # noqa: NPY002  (Mixup draws from it)
mixed, target = Mixup(mixup_alpha=0.8, num_classes=7)(x.clone(), y)
report("mixed", mixed)
report("target", target)
finish()
