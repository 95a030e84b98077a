"""Common calls say nothing: a warning from inside the library is one that its user cannot mend."""

import itertools

import module_states
import pytest
from op_calls import differentiable_calls
from op_db import OPS

import pytensorlib as torch
from pytensorlib import nn, optim

pytestmark = pytest.mark.filterwarnings("error")
LR = optim.lr_scheduler
OPTIMIZERS = [
    name
    for name, kind in vars(optim).items()
    if isinstance(kind, type) and issubclass(kind, optim.Optimizer) and name != "Optimizer"
]
SCHEDULES = {
    "LambdaLR": lambda o: LR.LambdaLR(o, lambda t: 1 / (t + 1)),
    "MultiplicativeLR": lambda o: LR.MultiplicativeLR(o, lambda t: 0.9),
    "StepLR": lambda o: LR.StepLR(o, 2),
    "MultiStepLR": lambda o: LR.MultiStepLR(o, [1, 2]),
    "ConstantLR": lambda o: LR.ConstantLR(o),
    "LinearLR": lambda o: LR.LinearLR(o),
    "ExponentialLR": lambda o: LR.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda o: LR.PolynomialLR(o),
    "CosineAnnealingLR": lambda o: LR.CosineAnnealingLR(o, 3),
    "CosineAnnealingWarmRestarts": lambda o: LR.CosineAnnealingWarmRestarts(o, 3),
    "CyclicLR": lambda o: LR.CyclicLR(o, 0.1, 0.2),
    "OneCycleLR": lambda o: LR.OneCycleLR(o, 0.1, total_steps=9),
    "ReduceLROnPlateau": lambda o: LR.ReduceLROnPlateau(o, patience=0),
    "SequentialLR": lambda o: LR.SequentialLR(o, [LR.ConstantLR(o), LR.StepLR(o, 2)], [2]),
    "ChainedScheduler": lambda o: LR.ChainedScheduler([LR.ConstantLR(o), LR.StepLR(o, 2)]),
    "SWALR": lambda o: optim.swa_utils.SWALR(o, 0.05),
}
# Old names, of which PyTorch warns too.
OLD = {"lu_solve", "qr", "cholesky"}


@pytest.fixture(autouse=True)
def _always():
    """Let what is said once in a program be said each time."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def _trained(name, **options):
    p = nn.Parameter(torch.tensor([[1.0, -2.0], [0.5, 3.0]]))
    return p, getattr(optim, name)([p], **options)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_optimizers_are_silent(name):
    every = [{}]
    if name == "LBFGS":
        every = [{"line_search_fn": how, "max_iter": 4} for how in (None, "strong_wolfe")]
    elif name not in ("SparseAdam", "Adafactor", "Muon"):
        every = [{"foreach": how} for how in (None, False, True)] + [{"maximize": True}]
    for options, tensor_rate in itertools.product(every, (False, True)):
        if tensor_rate:
            if name in ("SparseAdam", "Adafactor", "Muon") or options.get("foreach"):
                continue
            options = {**options, "lr": torch.tensor(0.01)}
        p, optimizer = _trained(name, **options)

        def closure(p=p, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            if name == "SparseAdam":
                p.grad = p.grad.to_sparse()
            return loss

        before = p.detach().clone()
        for _ in range(3):
            optimizer.step(closure)
        assert not torch.equal(before, p)
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.step(closure)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_silent(name):
    p, optimizer = _trained("SGD", lr=0.1, momentum=0.9)
    schedule = SCHEDULES[name](optimizer)
    for _ in range(4):
        loss = (p * p).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        # A loss as it is, with its graph, is what scripts hand over.
        schedule.step(loss) if name == "ReduceLROnPlateau" else schedule.step()
    schedule.get_last_lr()
    schedule.load_state_dict(schedule.state_dict())


def test_every_schedule_is_in_the_table():
    kinds = {name for name, kind in vars(LR).items() if isinstance(kind, type)}
    assert kinds - {"LRScheduler", "_LRScheduler", "Optimizer", "Any"} <= set(SCHEDULES)


@pytest.mark.parametrize(
    "text",
    [
        text
        for text, given in module_states.MODULES.items()
        # PyTorch warns of lazy modules, old names, and an encoder whose layers keep padding.
        if given
        and not text.startswith(("Lazy", "NLLLoss2d", "utils.", "TransformerEncoder(", "Tr"))
    ],
)
def test_modules_are_silent_forward_and_backward(text):
    module = module_states.built(torch, text)
    found = module_states.called(torch, module.train(), text, keep=True)
    total = sum(y.float().sum() for y in found if y.is_floating_point())
    if isinstance(total, torch.Tensor) and total.requires_grad:
        total.backward()


@pytest.mark.parametrize(
    "op", [op for op in OPS if op.differentiable and op.name not in OLD], ids=str
)
def test_operators_are_silent_where_a_gradient_is_asked_for(op):
    for function, inputs in list(differentiable_calls(op))[:3]:
        results = [y for y in function(*inputs) if y.requires_grad]
        if results:
            torch.autograd.grad([y.sum() for y in results], inputs, allow_unused=True)
