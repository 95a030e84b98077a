"""Engines, events, handlers and metrics of ignite around a classifier."""

import os
import tempfile

import torch
from ignite import handlers, metrics
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    Checkpoint,
    DiskSaver,
    EarlyStopping,
    EMAHandler,
    FastaiLRFinder,
    TerminateOnNan,
)
from ignite.utils import manual_seed
from report import finish, report, report_model
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
manual_seed(0)
x = torch.randn(96, 8)
y = (x[:, :3] + 0.3 * torch.randn(96, 3)).argmax(1)
train = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loss = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(
    model,
    optimizer,
    loss,
    device=device,
    gradient_accumulation_steps=2,
    amp_mode="amp" if os.environ.get("DTYPE") == "float16" else None,
    scaler=os.environ.get("DTYPE") == "float16",
)
measured = {
    "accuracy": metrics.Accuracy(device=device),
    "loss": metrics.Loss(loss, device=device),
    "precision": metrics.Precision(average=False, device=device),
    "recall": metrics.Recall(average="macro", device=device),
    "top 2": metrics.TopKCategoricalAccuracy(k=2, device=device),
    "confusion": metrics.ConfusionMatrix(3, device=device),
    "kappa": metrics.ClassificationReport(output_dict=True, device=device),
}
measured["F1"] = (
    measured["precision"] * measured["recall"] * 2 / (measured["precision"] + measured["recall"])
)
evaluator = create_supervised_evaluator(model, metrics=measured, device=device)
metrics.RunningAverage(output_transform=lambda out: out, alpha=0.9).attach(trainer, "running")
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
warm = handlers.create_lr_scheduler_with_warmup(
    handlers.CosineAnnealingScheduler(optimizer, "lr", 1e-2, 1e-3, cycle_size=12),
    warmup_start_value=0.0,
    warmup_end_value=1e-2,
    warmup_duration=4,
)
trainer.add_event_handler(Events.ITERATION_STARTED, warm)
EMAHandler(model, momentum=0.1).attach(trainer, name="ema_momentum")
rates, losses, found = [], [], []


@trainer.on(Events.ITERATION_COMPLETED)
def note(engine):
    rates.append(optimizer.param_groups[0]["lr"])
    losses.append(engine.state.output)


@trainer.on(Events.EPOCH_COMPLETED(every=2))
def evaluate(engine):
    evaluator.run(test)
    found.append(dict(evaluator.state.metrics))


with tempfile.TemporaryDirectory() as folder:
    keep = Checkpoint(
        {"model": model, "optimizer": optimizer, "trainer": trainer},
        DiskSaver(folder, create_dir=False),
        n_saved=1,
        score_function=lambda engine: engine.state.metrics["accuracy"],
        score_name="accuracy",
    )
    evaluator.add_event_handler(Events.COMPLETED, keep)
    stop = EarlyStopping(2, lambda engine: -engine.state.metrics["loss"], trainer)
    evaluator.add_event_handler(Events.COMPLETED, stop)
    trainer.run(train, max_epochs=6)
    state = torch.load(keep.last_checkpoint, weights_only=True)
    Checkpoint.load_objects({"model": model, "optimizer": optimizer}, state)
    report("kept step", state["trainer"]["iteration"] if "trainer" in state else 0)
report("rates", rates)
report("losses", losses)
report("running", trainer.state.metrics["running"])
for step, values in enumerate(found):
    for name in ("accuracy", "loss", "recall", "top 2"):
        report(f"{name} {step}", values[name])
    for name in ("precision", "F1", "confusion"):
        report(f"{name} {step}", values[name].double())
    report(f"report {step}", [v["f1-score"] for k, v in values["kappa"].items() if k.isdigit()])
report_model("model", model)

finder = FastaiLRFinder()
to_save = {"model": model, "optimizer": optimizer}
with finder.attach(trainer, to_save, num_iter=12, end_lr=1.0) as searching:
    searching.run(train)
report("rates tried", finder.get_results()["lr"])
report("losses there", finder.get_results()["loss"])

pairs = [(torch.rand(8, 1, 16, 16), torch.rand(8, 1, 16, 16)) for _ in range(2)]
engine = Engine(lambda engine, batch: [v.to(device) for v in batch])
for name, metric in {
    "SSIM": metrics.SSIM(data_range=1.0),
    "PSNR": metrics.PSNR(data_range=1.0),
    "RMSE": metrics.RootMeanSquaredError(),
    "distance": metrics.MeanPairwiseDistance(output_transform=lambda o: [v.flatten(1) for v in o]),
    "MMD": metrics.MaximumMeanDiscrepancy(output_transform=lambda o: [v.flatten(1) for v in o]),
    "HSIC": metrics.HSIC(output_transform=lambda o: [v.flatten(1) for v in o]),
    "error": metrics.MeanAbsoluteError(),
    "KL": metrics.KLDivergence(output_transform=lambda o: [v.flatten(1) for v in o]),
}.items():
    metric.attach(engine, name)
engine.run(pairs)
for name, value in engine.state.metrics.items():
    report(name, value)
finish()
