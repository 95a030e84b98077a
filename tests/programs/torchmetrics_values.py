"""Metrics of classification, regression, retrieval, images, text and audio."""

import torch
import torchmetrics as tm
import torchmetrics.audio
import torchmetrics.clustering
import torchmetrics.image
import torchmetrics.retrieval
import torchmetrics.text
from report import finish, report
from torchmetrics import functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
g = torch.Generator().manual_seed(0)
score = torch.rand(60, generator=g).to(device)
truth = (torch.rand(60, generator=g).to(device) < score).long()
logits = torch.randn(60, 4, generator=g).to(device)
label = torch.randint(0, 4, (60,), generator=g).to(device)
many = torch.rand(60, 3, generator=g).to(device)
marks = (torch.rand(60, 3, generator=g).to(device) < many).long()
real = torch.randn(60, generator=g).to(device)
near = real + 0.3 * torch.randn(60, generator=g).to(device)
image = torch.rand(2, 3, 32, 32, generator=g).to(device)
other = (image + 0.1 * torch.rand(2, 3, 32, 32, generator=g).to(device)).clamp(0, 1)
c = tm.classification
metrics = {
    c.BinaryAccuracy(): (score, truth),
    c.BinaryAUROC(): (score, truth),
    c.BinaryAveragePrecision(): (score, truth),
    c.BinaryCalibrationError(): (score, truth),
    c.BinaryF1Score(): (score, truth),
    c.BinaryMatthewsCorrCoef(): (score, truth),
    c.BinaryStatScores(): (score, truth),
    c.MulticlassAccuracy(4): (logits, label),
    c.MulticlassAUROC(4): (logits.softmax(-1), label),
    c.MulticlassConfusionMatrix(4): (logits, label),
    c.MulticlassCohenKappa(4): (logits, label),
    c.MulticlassExactMatch(4): (logits.argmax(-1)[:, None], label[:, None]),
    c.MulticlassHingeLoss(4): (logits, label),
    c.MulticlassJaccardIndex(4): (logits, label),
    c.MultilabelF1Score(3): (many, marks),
    c.MultilabelRankingLoss(3): (many, marks),
    c.MultilabelCoverageError(3): (many, marks),
    tm.MeanSquaredError(): (near, real),
    tm.MeanAbsolutePercentageError(): (near, real),
    tm.R2Score(): (near, real),
    tm.PearsonCorrCoef(): (near, real),
    tm.SpearmanCorrCoef(): (near, real),
    tm.KendallRankCorrCoef(): (near, real),
    tm.ExplainedVariance(): (near, real),
    tm.ConcordanceCorrCoef(): (near, real),
    tm.CosineSimilarity(): (image.flatten(1), other.flatten(1)),
    tm.KLDivergence(): (logits.softmax(-1), logits.flip(0).softmax(-1)),
    tm.image.PeakSignalNoiseRatio(data_range=1.0): (other, image),
    tm.image.StructuralSimilarityIndexMeasure(data_range=1.0): (other, image),
    tm.image.TotalVariation(): (image,),
    tm.image.SpectralAngleMapper(): (other, image),
    tm.audio.SignalNoiseRatio(): (near, real),
    tm.audio.ScaleInvariantSignalDistortionRatio(): (near, real),
    tm.text.WordErrorRate(): (["a small cat sat"], ["the small cat sat down"]),
    tm.text.Perplexity(): (logits[None], label[None]),
    tm.clustering.MutualInfoScore(): (label, label.flip(0)),
    tm.clustering.RandScore(): (label, label.flip(0)),
    tm.clustering.CalinskiHarabaszScore(): (logits, label),
}
for metric, arguments in metrics.items():
    name = type(metric).__name__
    metric.to(device)
    half = [a[: len(a) // 2] if name.startswith(("Binary", "Multi")) else a for a in arguments]
    rest = [a[len(a) // 2 :] if name.startswith(("Binary", "Multi")) else a for a in arguments]
    metric.update(*half)
    if name.startswith(("Binary", "Multi")):
        metric.update(*rest)
    value = metric.compute()
    report(name, value if isinstance(value, torch.Tensor) else list(value))
retrieval = tm.retrieval.RetrievalNormalizedDCG().to(device)
retrieval.update(score, truth, indexes=torch.arange(60, device=device) // 10)
report("RetrievalNormalizedDCG", retrieval.compute())
both = tm.MetricCollection([tm.MeanAbsoluteError(), tm.MeanSquaredError()]).to(device)
report("collection", list(both(near, real).values()))
report("pairwise", F.pairwise_cosine_similarity(logits[:4]))
finish()
