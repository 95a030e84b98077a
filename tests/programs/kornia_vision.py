"""Filters, colours, warps, features, augmentations and losses of kornia, an image registered."""

import kornia as K
import kornia.augmentation as aug
import kornia.contrib
import torch
from report import draw_on_the_cpu, finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
g = torch.Generator().manual_seed(0)
image = torch.rand(2, 3, 32, 32, generator=g).to(device)
gray = image.mean(1, keepdim=True)
filters = {
    "gaussian": lambda x: K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "box": lambda x: K.filters.box_blur(x, (3, 5)),
    "median": lambda x: K.filters.median_blur(x, (3, 3)),
    "bilateral": lambda x: K.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "motion": lambda x: K.filters.motion_blur(x, 5, 35.0, 0.5),
    "sobel": K.filters.sobel,
    "laplacian": lambda x: K.filters.laplacian(x, 3),
    "gradient": lambda x: K.filters.spatial_gradient(x, order=2),
    "unsharp": lambda x: K.filters.unsharp_mask(x, (3, 3), (1.0, 1.0)),
    "guided": lambda x: K.filters.guided_blur(x, x, 3, 0.1),
    "pool": lambda x: K.filters.blur_pool2d(x, 3),
    "hsv": K.color.rgb_to_hsv,
    "lab": K.color.rgb_to_lab,
    "luv": K.color.rgb_to_luv,
    "yuv": K.color.rgb_to_yuv,
    "sepia": K.color.sepia,
    "equalized": K.enhance.equalize_clahe,
    "hue": lambda x: K.enhance.adjust_hue(x, 0.4),
    "sharpness": lambda x: K.enhance.sharpness(x, 0.7),
    "whitened": lambda x: K.enhance.zca_whiten(x.flatten(1).T.double(), eps=1e-2),
    "rotated": lambda x: K.geometry.rotate(x, torch.tensor([30.0, -10.0], device=device)),
    "resized": lambda x: K.geometry.resize(x, (20, 24), antialias=True),
    "elastic": lambda x: K.geometry.elastic_transform2d(
        x, torch.zeros(2, 2, 32, 32, device=device) + 0.3
    ),
    "pyramid": lambda x: K.geometry.pyrdown(x),
    "dilated": lambda x: K.morphology.dilation(x, torch.ones(3, 3, device=device)),
    "opened": lambda x: K.morphology.opening(x, torch.ones(3, 3, device=device)),
    "top hat": lambda x: K.morphology.top_hat(x, torch.ones(3, 3, device=device)),
    "patches": lambda x: K.contrib.extract_tensor_patches(x, 8, stride=8),
}
for name, run in filters.items():
    x = image.clone().requires_grad_()
    y = run(x)
    report(name, y)
    if y.requires_grad:
        y.square().mean().backward()
        report(f"{name}: gradient", x.grad * 1e3)
magnitude, edges = K.filters.canny(gray, 0.1, 0.2)
report("canny", torch.stack([magnitude, edges]))
bins, width = torch.linspace(0, 1, 8, device=device), torch.tensor(0.1, device=device)
report("histogram", K.enhance.histogram(gray.flatten(1), bins, width))
report("back", K.color.lab_to_rgb(K.color.rgb_to_lab(image)))
report("equalize", K.enhance.equalize((image * 255).round() / 255))

corners = torch.tensor([[[0.0, 0], [31, 0], [31, 31], [0, 31]]], device=device).repeat(2, 1, 1)
moved = corners + torch.randn(2, 4, 2, generator=g).to(device)
matrix = K.geometry.get_perspective_transform(corners, moved)
report("perspective", matrix)
report("warped", K.geometry.warp_perspective(image, matrix, (32, 32)))
report("affine", K.geometry.warp_affine(image, matrix[:, :2], (28, 30)))
points = torch.rand(2, 12, 2, generator=g).to(device) * 30
seen = K.geometry.transform_points(matrix, points)
report("homography", K.geometry.find_homography_dlt(points, seen))
one, two = (torch.rand(2, 12, 2, generator=g).double().to(device) for _ in range(2))
fundamental = K.geometry.epipolar.find_fundamental(one, two, torch.ones_like(one[..., 0]))
report("fundamental", fundamental / fundamental.norm(dim=(1, 2), keepdim=True))
turn = torch.tensor([[0.1, 0.4, -0.3], [1.0, 0.2, 0.5]], device=device)
quaternion = K.geometry.axis_angle_to_quaternion(turn)
report("turns", K.geometry.quaternion_to_rotation_matrix(quaternion))
report("logarithm", K.geometry.liegroup.So3.exp(turn).log())
report("distances", K.contrib.distance_transform((gray > 0.6).float()))
report("components", K.contrib.connected_components((gray > 0.6).float(), 50))

report("harris", K.feature.harris_response(gray))
report("hessian", K.feature.hessian_response(gray))
torch.manual_seed(0)
patches = torch.rand(6, 1, 32, 32, generator=g).to(device)
sift = K.feature.SIFTDescriptor(32).to(device)(patches)
report("SIFT", sift)
report("HardNet", K.feature.HardNet(pretrained=False).eval().to(device)(patches))
distance, pairs = K.feature.match_snn(sift[:4], sift.flip(0), 0.99)
report("matches", pairs)
torch.manual_seed(0)
detector = K.feature.ScaleSpaceDetector(
    8,
    resp_module=K.feature.BlobHessian(),
    mr_size=3.0,
    scale_pyr_module=K.geometry.ScalePyramid(3, 1.6, 8),
).to(device)
frames, responses = detector(gray)
report("frames", frames)
report("responses", responses)

mask = torch.randint(0, 3, (2, 32, 32), generator=g).to(device)
losses = {
    "SSIM": lambda x: K.losses.ssim_loss(x, image, 5),
    "MS-SSIM": lambda x: K.losses.MS_SSIMLoss(sigmas=[0.5, 1.0, 2.0]).to(device)(x, image),
    "PSNR": lambda x: K.losses.psnr_loss(x, image, 1.0),
    "variation": lambda x: K.losses.total_variation(x).mean(),
    "focal": lambda x: K.losses.focal_loss(x, mask, 0.5, 2.0, "mean"),
    "dice": lambda x: K.losses.dice_loss(x, mask),
    "Tversky": lambda x: K.losses.tversky_loss(x, mask, 0.4, 0.6),
    "Lovasz": lambda x: K.losses.lovasz_softmax_loss(x, mask),
    "depth": lambda x: K.losses.inverse_depth_smoothness_loss(x[:, :1], image),
    "Charbonnier": lambda x: K.losses.charbonnier_loss(x, image, "mean"),
    "Welsch": lambda x: K.losses.welsch_loss(x, image, "mean"),
    "JS": lambda x: K.losses.js_div_loss_2d(x.softmax(-1), image.softmax(-1)),
    "Hausdorff": lambda x: K.losses.HausdorffERLoss(k=3).to(device)(x, mask[:, None]),
}
for name, run in losses.items():
    x = (image.flip(0) * 0.8).requires_grad_()
    value = run(x)
    report(f"{name}: loss", value)
    value.backward()
    report(f"{name}: gradient", x.grad * 1e3)
report("overlap", K.metrics.mean_iou(mask, mask.flip(0), 3))

torch.manual_seed(1)
pipeline = aug.AugmentationSequential(
    aug.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    aug.RandomAffine(20.0, (0.1, 0.1), (0.8, 1.2), p=0.8),
    aug.RandomPerspective(0.3, p=1.0),
    aug.RandomHorizontalFlip(),
    aug.RandomGaussianBlur((3, 3), (0.5, 1.5)),
    aug.RandomErasing(p=0.7),
    data_keys=["input", "mask", "keypoints"],
)
new, new_mask, new_points = pipeline(image, mask[:, None].float(), points)
report("augmented", new)
report("augmented mask", new_mask)
report("augmented points", new_points)
report("its matrix", pipeline.transform_matrix)
torch.manual_seed(2)
for kind in (
    aug.RandomCrop((20, 20)),
    aug.RandomResizedCrop((16, 16)),
    aug.RandomElasticTransform(p=1.0),
    aug.RandomThinPlateSpline(p=1.0),
    aug.RandomSolarize(p=1.0),
    aug.RandomPosterize(p=1.0),
    aug.RandomMotionBlur(3, 35.0, 0.5, p=1.0),
    aug.RandomGaussianNoise(p=1.0),
    aug.RandomFisheye(
        torch.tensor([-0.3, 0.3]), torch.tensor([-0.3, 0.3]), torch.tensor([0.9, 1.1]), p=1.0
    ),
    aug.RandomPlasmaShadow(p=1.0),
):
    report(type(kind).__name__, kind(image))
mix = aug.RandomMixUpV2(p=1.0, data_keys=["input", "class"])
report("mixed", mix(image, torch.tensor([0, 1], device=device))[0])

goal = K.geometry.warp_perspective(gray[:1], matrix[:1], (32, 32))
registrator = K.geometry.ImageRegistrator("similarity", num_iterations=8, lr=1e-2, pyramid_levels=2)
registrator.to(device)
report("registered", registrator.register(gray[:1], goal))
finish()
