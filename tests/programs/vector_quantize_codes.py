"""Quantizers of vectors: codebooks that learn, residual ones, and those without a codebook."""

import torch
import vector_quantize_pytorch as vq
from report import draw_on_the_cpu, finish, report

# Codes are chosen by distances, some of which are close: doubles.
torch.set_default_dtype(torch.float64)
device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
x = torch.randn(2, 48, 16, generator=torch.Generator().manual_seed(0)).to(device)
kinds = {
    "plain": lambda: vq.VectorQuantize(dim=16, codebook_size=24, decay=0.8, commitment_weight=1.0),
    "k-means": lambda: vq.VectorQuantize(
        dim=16, codebook_size=12, kmeans_init=True, kmeans_iters=4, threshold_ema_dead_code=2
    ),
    "cosine": lambda: vq.VectorQuantize(
        dim=16, codebook_size=24, use_cosine_sim=True, codebook_dim=8
    ),
    "heads": lambda: vq.VectorQuantize(
        dim=16, codebook_dim=4, heads=4, separate_codebook_per_head=True, codebook_size=24
    ),
    "learned": lambda: vq.VectorQuantize(
        dim=16,
        codebook_size=24,
        learnable_codebook=True,
        ema_update=False,
        orthogonal_reg_weight=10.0,
    ),
    "sampled": lambda: vq.VectorQuantize(
        dim=16, codebook_size=24, stochastic_sample_codes=True, sample_codebook_temp=0.5
    ),
    "rotated": lambda: vq.VectorQuantize(dim=16, codebook_size=24, rotation_trick=True),
    "residual": lambda: vq.ResidualVQ(dim=16, num_quantizers=3, codebook_size=24),
    "shared": lambda: vq.ResidualVQ(
        dim=16,
        num_quantizers=3,
        codebook_size=24,
        shared_codebook=True,
        kmeans_init=True,
        kmeans_iters=3,
        stochastic_sample_codes=True,
    ),
    "implicit": lambda: vq.ResidualVQ(
        dim=16,
        num_quantizers=2,
        codebook_size=24,
        implicit_neural_codebook=True,
        quantize_dropout=True,
    ),
    "grouped": lambda: vq.GroupedResidualVQ(dim=16, num_quantizers=2, groups=2, codebook_size=24),
    "simple": lambda: vq.SimVQ(dim=16, codebook_size=24, rotation_trick=True),
    "residual simple": lambda: vq.ResidualSimVQ(dim=16, num_quantizers=2, codebook_size=24),
    "finite": lambda: vq.FSQ(levels=[8, 5, 5], dim=16),
    "finite, symmetric": lambda: vq.FSQ(
        levels=[5, 5, 5, 3], dim=16, preserve_symmetry=True, noise_dropout=0.5
    ),
    "residual finite": lambda: vq.ResidualFSQ(dim=16, levels=[8, 5, 5], num_quantizers=2),
    "free": lambda: vq.LFQ(codebook_size=64, dim=16, entropy_loss_weight=0.1, diversity_gamma=1.0),
    "spherical": lambda: vq.LFQ(codebook_size=64, dim=16, spherical=True, num_codebooks=2),
    "residual free": lambda: vq.ResidualLFQ(dim=16, codebook_size=64, num_quantizers=2),
    "latent": lambda: vq.LatentQuantize(levels=[5, 5, 8], dim=16, commitment_loss_weight=0.1),
}
for name, make in kinds.items():
    torch.manual_seed(1)
    quantizer, project = make().to(device), torch.nn.Linear(16, 16).to(device)
    optimizer = torch.optim.Adam([*project.parameters(), *quantizer.parameters()], lr=1e-2)
    losses = []
    for _ in range(3):
        inputs = project(x)
        found = quantizer(inputs.transpose(1, 2) if name == "latent" else inputs)
        quantized, indices = found[0], found[1]
        if name == "latent":
            quantized = quantized.transpose(1, 2)
        loss = (quantized - x).square().mean()
        if len(found) > 2:
            loss = loss + found[2].sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    report(f"{name}: losses", losses)
    report(f"{name}: indices", indices)
    report(f"{name}: quantized", quantized)
    report(f"{name}: gradient", project.weight.grad)

torch.manual_seed(2)
residual = vq.ResidualVQ(dim=16, num_quantizers=3, codebook_size=24).eval().to(device)
quantized, indices, _, codes = residual(x, return_all_codes=True)
report("codes", codes)
report("from indices", residual.get_output_from_indices(indices))
finite = vq.FSQ(levels=[8, 5, 5]).eval().to(device)
quantized, indices = finite(x[..., :3])
report("finite codes", finite.indices_to_codes(indices))
projected = vq.RandomProjectionQuantizer(dim=16, num_codebooks=4, codebook_dim=8, codebook_size=32)
report("projected", projected.to(device)(x))
image = vq.VectorQuantize(dim=16, codebook_size=24, accept_image_fmap=True)
report("image", image.to(device)(torch.randn(1, 16, 4, 4).to(device))[1])
finish()
