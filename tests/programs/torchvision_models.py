"""Image models, detection's operators written in Python, and both kinds of transforms."""

import numpy as np
import torch
import torchvision
from PIL import Image
from report import draw_on_the_cpu, finish, report
from torchvision import transforms
from torchvision.transforms import functional as F
from torchvision.transforms import v2

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)).to(device)
for name in ("resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5"):
    torch.manual_seed(0)
    model = torchvision.models.get_model(name, num_classes=5).to(device)
    with torch.no_grad():
        report(f"{name}: evaluated", model.eval()(x))
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    loss = torch.nn.functional.cross_entropy(model.train()(x), torch.tensor([1, 3], device=device))
    loss.backward()
    report(f"{name}: loss", loss)
    norms = [p.grad.double().norm().item() for p in model.parameters()]
    report(f"{name}: gradients", [g for g in norms if g > 1e-4 * max(norms)])

pixels = (np.arange(40 * 30 * 3).reshape(40, 30, 3) * 7 % 256).astype(np.uint8)
image = Image.fromarray(pixels)
torch.manual_seed(0)
first = transforms.Compose(
    [
        transforms.Resize(24),
        transforms.RandomCrop(20),
        transforms.RandomHorizontalFlip(),
        transforms.ColorJitter(0.2, 0.2, 0.2, 0.1),
        transforms.ToTensor(),
        transforms.Normalize([0.5] * 3, [0.25] * 3),
        transforms.RandomErasing(p=1.0),
    ]
)
report("transforms", first(image))
torch.manual_seed(0)
second = v2.Compose(
    [
        v2.ToImage(),
        v2.RandomResizedCrop(16, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.GaussianBlur(3),
        v2.Normalize([0.5] * 3, [0.25] * 3),
    ]
)
report("transforms v2", second(image))
t = F.to_tensor(image).to(device)
report("rotated", F.rotate(t, 30.0, interpolation=F.InterpolationMode.BILINEAR))
report("adjusted", F.adjust_hue(t, 0.1))
report(
    "perspective",
    F.perspective(t, [[0, 0], [29, 0], [29, 39], [0, 39]], [[2, 2], [27, 1], [28, 38], [1, 37]]),
)
report("grid", torchvision.utils.make_grid(x[:, :, :8, :8], nrow=2, normalize=True))
boxes = torch.tensor([[0.0, 0, 10, 10], [2, 2, 12, 12], [20, 20, 30, 30]], device=device)
report("areas", torchvision.ops.box_area(boxes))
report("overlaps", torchvision.ops.box_iou(boxes, boxes))
report(
    "focal", torchvision.ops.sigmoid_focal_loss(x[0, 0], (x[0, 1] > 0).float(), reduction="mean")
)
finish()
