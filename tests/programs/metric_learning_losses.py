"""Losses, miners, reducers and distances of pytorch-metric-learning, and embeddings trained."""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers
from pytorch_metric_learning.utils import loss_and_miner_utils
from report import draw_on_the_cpu, finish, report

device = "cuda" if torch.cuda.is_available() else "cpu"
draw_on_the_cpu()
g = torch.Generator().manual_seed(0)
points = torch.randn(24, 8, generator=g).to(device)
labels = torch.arange(24, device=device) % 4
ways = {
    "Angular": lambda: losses.AngularLoss(),
    "ArcFace": lambda: losses.ArcFaceLoss(4, 8),
    "Circle": lambda: losses.CircleLoss(),
    "Contrastive": lambda: losses.ContrastiveLoss(pos_margin=0.2, neg_margin=1.2),
    "CosFace": lambda: losses.CosFaceLoss(4, 8),
    "FastAP": lambda: losses.FastAPLoss(num_bins=10),
    "Histogram": lambda: losses.HistogramLoss(n_bins=20),
    "Instance": lambda: losses.InstanceLoss(),
    "LiftedStructure": lambda: losses.LiftedStructureLoss(),
    "GeneralizedLiftedStructure": lambda: losses.GeneralizedLiftedStructureLoss(),
    "LargeMarginSoftmax": lambda: losses.LargeMarginSoftmaxLoss(4, 8),
    "Manifold": lambda: losses.ManifoldLoss(l=8, K=10),
    "Margin": lambda: losses.MarginLoss(num_classes=4, learn_beta=True),
    "MultiSimilarity": lambda: losses.MultiSimilarityLoss(),
    "NCA": lambda: losses.NCALoss(softmax_scale=2),
    "NormalizedSoftmax": lambda: losses.NormalizedSoftmaxLoss(4, 8),
    "NPairs": lambda: losses.NPairsLoss(),
    "NTXent": lambda: losses.NTXentLoss(temperature=0.3),
    "P2SGrad": lambda: losses.P2SGradLoss(8, 4),
    "ProxyAnchor": lambda: losses.ProxyAnchorLoss(4, 8),
    "ProxyNCA": lambda: losses.ProxyNCALoss(4, 8),
    "RankedList": lambda: losses.RankedListLoss(margin=0.4, Tn=10),
    "SignalToNoise": lambda: losses.SignalToNoiseRatioContrastiveLoss(),
    "SmoothAP": lambda: losses.SmoothAPLoss(),
    "SoftTriple": lambda: losses.SoftTripleLoss(4, 8, centers_per_class=3),
    "SphereFace": lambda: losses.SphereFaceLoss(4, 8),
    "SubCenterArcFace": lambda: losses.SubCenterArcFaceLoss(num_classes=4, embedding_size=8),
    "SupCon": lambda: losses.SupConLoss(),
    "TripletMargin": lambda: losses.TripletMarginLoss(
        distance=distances.CosineSimilarity(),
        reducer=reducers.ThresholdReducer(low=0.1),
        embedding_regularizer=regularizers.LpRegularizer(),
    ),
    "TupletMargin": lambda: losses.TupletMarginLoss(),
    "VICReg": lambda: losses.VICRegLoss(),
}
for name, make in ways.items():
    torch.manual_seed(3)
    loss, x = make().to(device), points.clone().requires_grad_()
    if name == "VICReg":
        value = loss(x, ref_emb=points.flip(0))
    elif name == "Manifold":
        value = loss(x)
    else:
        value = loss(x, labels)
    value.backward()
    report(f"{name}: loss", value)
    report(f"{name}: gradient", x.grad)
    weights = [p.grad for p in loss.parameters() if p.grad is not None]
    if weights:
        report(f"{name}: gradient of weights", weights[0])

for name, miner in {
    "AngularMiner": miners.AngularMiner(angle=30),
    "BatchEasyHardMiner": miners.BatchEasyHardMiner(neg_strategy="semihard"),
    "BatchHardMiner": miners.BatchHardMiner(),
    "DistanceWeightedMiner": miners.DistanceWeightedMiner(),
    "HDCMiner": miners.HDCMiner(filter_percentage=0.3),
    "MultiSimilarityMiner": miners.MultiSimilarityMiner(),
    "PairMarginMiner": miners.PairMarginMiner(pos_margin=0.8, neg_margin=1.3),
    "TripletMarginMiner": miners.TripletMarginMiner(type_of_triplets="semihard"),
    "UniformHistogramMiner": miners.UniformHistogramMiner(
        num_bins=10, pos_per_bin=2, neg_per_bin=2
    ),
}.items():
    torch.manual_seed(4)
    found = miner(points, labels)
    report(name, [len(found[0]), *(i.double().mean() for i in found)])
    if len(found) == 3:
        report(f"{name}: loss", losses.TripletMarginLoss()(points, labels, found))
    else:
        report(f"{name}: loss", losses.ContrastiveLoss()(points, labels, found))
triplets = loss_and_miner_utils.get_all_triplets_indices(labels)
report("triplets", [len(triplets[0]), *(i.double().mean() for i in triplets)])
for kind in (distances.LpDistance, distances.SNRDistance, distances.DotProductSimilarity):
    report(kind.__name__, kind()(points, points[:5]))

torch.manual_seed(0)
trunk = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 6))
trunk.to(device)
memory = losses.CrossBatchMemory(losses.NTXentLoss(), 6, memory_size=48)
self_supervised = losses.SelfSupervisedLoss(losses.SupConLoss())
optimizer, values = torch.optim.Adam(trunk.parameters(), lr=1e-2), []
miner = miners.MultiSimilarityMiner()
for _ in range(6):
    embedded = trunk(points + 0.1 * torch.randn(24, 8).to(device))
    loss = memory(embedded, labels, miner(embedded, labels))
    loss = loss + self_supervised(embedded, trunk(points))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    values.append(loss.item())
report("losses", values)
report("weight", trunk[0].weight)
finish()
