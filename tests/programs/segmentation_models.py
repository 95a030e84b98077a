"""Networks that segment images, each with an untrained encoder; their losses and metrics."""

import segmentation_models_pytorch as smp
import torch
from report import draw_on_the_cpu, finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
g = torch.Generator().manual_seed(0)
image = torch.randn(2, 3, 64, 64, generator=g).to(device)
mask = (torch.rand(2, 1, 64, 64, generator=g) > 0.5).float().to(device)
networks = {
    "Unet": {"decoder_attention_type": "scse", "decoder_channels": (32, 16, 16, 16, 16)},
    "UnetPlusPlus": {"decoder_channels": (32, 16, 16, 8, 8)},
    "MAnet": {"decoder_channels": (32, 16, 16, 8, 8), "decoder_pab_channels": 8},
    "Linknet": {},
    "FPN": {"decoder_pyramid_channels": 16, "decoder_segmentation_channels": 32},
    "PSPNet": {"psp_out_channels": 32},
    "DeepLabV3Plus": {"decoder_channels": 16, "encoder_output_stride": 16},
    "UPerNet": {"decoder_channels": 16},
    "Segformer": {"decoder_segmentation_channels": 16},
}
for name, options in networks.items():
    torch.manual_seed(0)
    # Batch norm over few numbers amplifies what float32 rounds: doubles.
    model = getattr(smp, name)("resnet18", encoder_weights=None, classes=1, **options)
    model.double().to(device)
    with torch.no_grad():
        report(f"{name}: evaluated", model.eval()(image.double()))
    loss = smp.losses.DiceLoss("binary")(model.train()(image.double()), mask.double())
    loss.backward()
    report(f"{name}: loss", loss)
    norms = [p.grad.norm().item() for p in model.parameters() if p.grad is not None]
    report(f"{name}: gradients", [n for n in norms if n > 1e-4 * max(norms)])

torch.manual_seed(1)
model = smp.Unet(
    "timm-mobilenetv3_small_minimal_100",
    encoder_weights=None,
    encoder_depth=3,
    decoder_channels=(16, 8, 8),
    classes=3,
    aux_params={"classes": 4, "pooling": "avg"},
).double()
model.to(device)
masks, labels = model(image.double())
report("two heads", masks)
report("labels", labels)

logits = torch.randn(2, 3, 16, 16, generator=g).to(device)
classes = torch.randint(0, 3, (2, 16, 16), generator=g).to(device)
marks = torch.nn.functional.one_hot(classes, 3).permute(0, 3, 1, 2).float()
losses = {
    "Dice": (smp.losses.DiceLoss("multiclass", smooth=0.1), classes),
    "Jaccard": (smp.losses.JaccardLoss("multiclass", log_loss=True), classes),
    "Tversky": (smp.losses.TverskyLoss("multilabel", alpha=0.3, beta=0.7), marks),
    "focal": (smp.losses.FocalLoss("multiclass", gamma=1.5), classes),
    "Lovasz": (smp.losses.LovaszLoss("multiclass"), classes),
    "soft BCE": (smp.losses.SoftBCEWithLogitsLoss(smooth_factor=0.1), marks),
    "soft CE": (smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1), classes),
    "MCC": (smp.losses.MCCLoss(), None),
}
for name, (loss, truth) in losses.items():
    x = logits.clone().requires_grad_()
    value = loss(x[:, :1].sigmoid(), marks[:, :1]) if truth is None else loss(x, truth)
    value.backward()
    report(f"{name}: loss", value)
    report(f"{name}: gradient", x.grad * 1e3)

counts = smp.metrics.get_stats(logits.argmax(1), classes, mode="multiclass", num_classes=3)
report("counts", torch.stack(counts))
for name in ("iou_score", "f1_score", "accuracy", "recall", "precision"):
    for reduction in ("micro", "macro-imagewise"):
        report(f"{name}, {reduction}", getattr(smp.metrics, name)(*counts, reduction=reduction))
finish()
