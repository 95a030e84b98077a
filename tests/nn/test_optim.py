"""Optimizers against their closed-form updates in NumPy float64, and the schedules."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn, optim

STEPS = 6
RNG = np.random.default_rng(0)
START = RNG.standard_normal(5)
GRADS = RNG.standard_normal((STEPS, 5))


def sgd(p, gs, lr=0.1, momentum=0.0, dampening=0.0, wd=0.0, nesterov=False):
    b = None
    for g in gs:
        g = g + wd * p
        if momentum:
            b = g if b is None else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        p = p - lr * g
    return p


def adam(p, gs, lr=0.01, b1=0.9, b2=0.999, eps=1e-8, wd=0.0, decoupled=False, amsgrad=False):
    m = v = top = np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        if decoupled:
            p = p - lr * wd * p
        else:
            g = g + wd * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        top = np.maximum(top, v) if amsgrad else v
        p = p - lr * (m / (1 - b1**t)) / (np.sqrt(top / (1 - b2**t)) + eps)
    return p


def adagrad(p, gs, lr=0.1, decay=0.05, eps=1e-10):
    s = np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        s = s + g * g
        p = p - lr / (1 + (t - 1) * decay) * g / (np.sqrt(s) + eps)
    return p


def rmsprop(p, gs, lr=0.01, alpha=0.9, eps=1e-8, momentum=0.8):
    v = mean = b = np.zeros_like(p)
    for g in gs:
        v, mean = alpha * v + (1 - alpha) * g * g, alpha * mean + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(v - mean**2) + eps)
        p = p - lr * b
    return p


def adadelta(p, gs, lr=1.0, rho=0.9, eps=1e-6):
    v = u = np.zeros_like(p)
    for g in gs:
        v = rho * v + (1 - rho) * g * g
        d = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d * d
        p = p - lr * d
    return p


def adamax(p, gs, lr=0.01, b1=0.9, b2=0.999, eps=1e-8):
    m = u = np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        m, u = b1 * m + (1 - b1) * g, np.maximum(b2 * u, np.abs(g) + eps)
        p = p - lr / (1 - b1**t) * m / u
    return p


CASES = {
    "sgd": (lambda p: optim.SGD(p, lr=0.1), sgd(START, GRADS)),
    "sgd momentum": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.2),
        sgd(START, GRADS, momentum=0.9, dampening=0.3, wd=0.2),
    ),
    "sgd nesterov": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        sgd(START, GRADS, momentum=0.9, nesterov=True),
    ),
    "sgd maximize": (
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, maximize=True),
        sgd(START, -GRADS, momentum=0.9),
    ),
    "sgd tensor lr": (lambda p: optim.SGD(p, lr=torch.tensor(0.125)), sgd(START, GRADS, lr=0.125)),
    "adam": (lambda p: optim.Adam(p, lr=0.01), adam(START, GRADS)),
    "adam decay": (
        lambda p: optim.Adam(p, lr=0.01, betas=(0.8, 0.9), weight_decay=0.3),
        adam(START, GRADS, b1=0.8, b2=0.9, wd=0.3),
    ),
    "adam amsgrad": (
        lambda p: optim.Adam(p, lr=0.01, amsgrad=True, betas=(0.9, 0.5)),
        adam(START, GRADS, b2=0.5, amsgrad=True),
    ),
    "adam maximize": (lambda p: optim.Adam(p, lr=0.01, maximize=True), adam(START, -GRADS)),
    "adamw": (
        lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.3),
        adam(START, GRADS, wd=0.3, decoupled=True),
    ),
    "adagrad": (lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.05), adagrad(START, GRADS)),
    "rmsprop": (
        lambda p: optim.RMSprop(p, lr=0.01, alpha=0.9, momentum=0.8, centered=True),
        rmsprop(START, GRADS),
    ),
    "adadelta": (lambda p: optim.Adadelta(p), adadelta(START, GRADS)),
    "adamax": (lambda p: optim.Adamax(p, lr=0.01), adamax(START, GRADS)),
}


@pytest.mark.parametrize("foreach", [None, False], ids=["fused", "plain"])
@pytest.mark.parametrize("name", CASES)
def test_step_six_gradients_gives_the_closed_form(name, foreach):
    make, want = CASES[name]
    # Two parameters of one element more and less than a row: the fused op sees a list.
    whole = torch.tensor(START, dtype=torch.float64)
    params = [whole[:2].clone().requires_grad_(), whole[2:].clone().requires_grad_()]
    opt = make(params)
    if foreach is False:
        for group in opt.param_groups:
            group["fused"] = False
    for g in GRADS:
        params[0].grad, params[1].grad = torch.tensor(g[:2]), torch.tensor(g[2:])
        opt.step()
    got = torch.cat([p.detach() for p in params]).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam",
             "ASGD", "Rprop", "Adafactor", "LBFGS"],
)  # fmt: skip
def test_step_quadratic_lowers_the_loss(name):
    p = torch.tensor([[3.0, -2.0], [1.0, 4.0]], requires_grad=True)
    opt = getattr(optim, name)([p], lr=1e-2)

    def closure():
        opt.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    first = float(opt.step(closure).detach())
    for _ in range(20):
        last = float(opt.step(closure).detach())
    assert first == pytest.approx(30.0)
    assert last < first


def test_lbfgs_strong_wolfe_solves_rosenbrock():
    p = torch.tensor([-1.5, 2.0], dtype=torch.float64, requires_grad=True)
    opt = optim.LBFGS([p], max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
        loss.backward()
        return loss

    opt.step(closure)
    np.testing.assert_allclose(p.detach().numpy(), [1, 1], atol=1e-5)


def test_state_dict_loaded_into_another_goes_on_alike():
    def train(p, opt, gs):
        for g in gs:
            p.grad = torch.tensor(g)
            opt.step()

    p = torch.tensor(START, requires_grad=True)
    opt = optim.Adam([p], lr=0.01, weight_decay=0.1)
    train(p, opt, GRADS[:3])
    q = p.detach().clone().requires_grad_()
    other = optim.Adam([q], lr=0.5)
    saved = opt.state_dict()
    assert saved["param_groups"][0]["params"] == [0]
    assert sorted(saved["state"][0]) == ["exp_avg", "exp_avg_sq", "step"]
    other.load_state_dict({"state": {0: {k: v.clone() for k, v in saved["state"][0].items()}},
                           "param_groups": saved["param_groups"]})  # fmt: skip
    train(p, opt, GRADS[3:])
    train(q, other, GRADS[3:])
    assert other.param_groups[0]["lr"] == 0.01
    np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


NUMBERS = {
    optim.NAdam: {"step": torch.float32, "mu_product": torch.float32},
    optim.ASGD: {"step": torch.float32, "eta": torch.float32, "mu": torch.float32},
}


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_numbers_of_the_optimizer_keep_their_type_when_loaded(kind, dtype):
    p = torch.ones(3, dtype=dtype, requires_grad=True)
    opt = kind([p], lr=0.01)
    p.grad = torch.full_like(p, 0.3)
    opt.step()
    other = kind([p.detach().clone().requires_grad_()], lr=0.01)
    other.load_state_dict(opt.state_dict())
    (loaded,) = other.state.values()
    found = {k: v.dtype for k, v in loaded.items() if v.ndim == 0}
    assert found == NUMBERS[kind]
    assert {v.dtype for v in loaded.values() if v.ndim} == {dtype}


def test_param_groups_own_options_override_defaults():
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    opt = optim.SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=0.5)
    a.grad, b.grad = torch.ones(1), torch.ones(1)
    opt.step()
    assert (a.item(), b.item()) == (0.5, 0.0)
    assert repr(opt).startswith("SGD (\nParameter Group 0\n    dampening: 0\n")


def test_zero_grad_keeps_or_drops_the_gradient():
    p = torch.ones(2, requires_grad=True)
    opt = optim.SGD([p], lr=0.1)
    p.grad = torch.ones(2)
    opt.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0]
    opt.zero_grad()
    assert p.grad is None


def test_step_hooks_run_around_the_step_and_can_be_removed():
    p = torch.ones(1, requires_grad=True)
    opt = optim.SGD([p], lr=0.1)
    seen = []
    before = opt.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    opt.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    opt.step()
    before.remove()
    opt.step()
    assert seen == ["before", "after", "after"]


def test_step_hooks_are_told_all_arguments_with_the_optimizer_first_and_may_replace_them():
    p = torch.ones(1, requires_grad=True)
    opt = optim.SGD([p], lr=0.1)
    seen = []

    def first(o, args, kwargs):
        seen.append((args[0] is o, args[1:], dict(kwargs)))
        return (o, closure), {}

    def closure():
        p.grad = torch.ones(1)
        return 3.0

    opt.register_step_pre_hook(first)
    opt.register_step_post_hook(lambda o, args, kwargs: seen.append(args == (o, closure)))
    assert opt.step(closure=None) == 3.0
    assert seen == [(True, (), {"closure": None}), True]
    assert p.item() == pytest.approx(0.9)


@pytest.mark.parametrize("pickled", [False, True])
def test_counts_that_an_old_file_has_as_plain_numbers_become_tensors(pickled):
    p = torch.tensor([1.0, -2.0], requires_grad=True)
    opt = optim.Adam([p], lr=0.1, eps=0.0)
    p.grad = torch.ones(2)
    opt.step()
    state = opt.state_dict()
    state["state"][0]["step"] = 4
    if pickled:
        opt.state[p]["step"] = 4
        opt = pickle.loads(pickle.dumps(opt))
        p = opt.param_groups[0]["params"][0]
        p.grad = torch.ones(2)
    else:
        opt.load_state_dict(state)
    before = p.detach().clone()
    opt.step()
    assert opt.state[p]["step"].tolist() == 5
    # Kingma and Ba's formula with means of two gradients of 1, corrected for five steps.
    mean, square = (0.9 * 0.1 + 0.1) / (1 - 0.9**5), (0.999e-3 + 1e-3) / (1 - 0.999**5)
    want = [0.1 * mean / square**0.5] * 2
    assert (before - p.detach()).tolist() == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize(
    "name", ["Adadelta", "Adagrad", "Adamax", "AdamW", "ASGD", "NAdam", "RAdam", "Rprop"]
)
def test_every_optimizer_goes_on_from_plain_counts_as_from_tensors(name):
    def trained():
        p = torch.tensor([1.0, -2.0], requires_grad=True)
        opt = getattr(optim, name)([p], lr=0.1)
        for k in range(2):
            p.grad = p.detach() + k
            opt.step()
        return p, opt

    (p, opt), (q, old) = trained(), trained()
    state = old.state_dict()
    numbers = [k for k, v in state["state"][0].items() if v.ndim == 0]
    assert "step" in numbers
    state["state"][0].update({k: state["state"][0][k].item() for k in numbers})
    old.load_state_dict(state)
    for x, o in ((p, opt), (q, old)):
        x.grad = x.detach() + 2
        o.step()
    assert p.tolist() == q.tolist()
    assert all(isinstance(old.state[q][k], torch.Tensor) for k in numbers)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: optim.SGD([], lr=0.1), ValueError, "empty parameter list"),
        (lambda: optim.SGD([torch.ones(1)], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD(torch.ones(1), lr=0.1), TypeError, "iterable of Tensors or dicts"),
        (lambda: optim.SGD([1], lr=0.1), TypeError, "can only optimize Tensors"),
        (lambda: optim.SGD([torch.ones(1, requires_grad=True) * 2]), ValueError, "non-leaf"),
        (lambda: optim.Adam([torch.ones(1)], betas=(1.0, 0.9)), ValueError, "index 0"),
        (lambda: optim.SGD([torch.ones(1)], nesterov=True), ValueError, "Nesterov momentum"),
        (lambda: optim.Muon([torch.ones(1)]), ValueError, "2D"),
    ],
)
def test_constructor_bad_input_raises(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_add_param_group_with_a_known_parameter_raises():
    p = torch.ones(1, requires_grad=True)
    opt = optim.SGD([p], lr=0.1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        opt.add_param_group({"params": [p]})


def test_load_state_dict_of_another_size_raises():
    p = torch.ones(1, requires_grad=True)
    opt = optim.SGD([p], lr=0.1)
    with pytest.raises(ValueError, match="doesn't match the size"):
        opt.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})


def test_differentiable_step_carries_gradients_to_the_start():
    start = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    p = start.clone()
    opt = optim.SGD([p], lr=0.1, differentiable=True)
    p.grad = 2 * start  # of p * p
    opt.step()
    p.sum().backward()
    assert start.grad.item() == pytest.approx(1 - 0.1 * 2)


SCHEDULES = {
    "StepLR": ({"step_size": 3}, lambda t: 0.1 ** (t // 3)),
    "MultiStepLR": ({"milestones": [2, 5], "gamma": 0.2}, lambda t: 0.2 ** ((t >= 2) + (t >= 5))),
    "ExponentialLR": ({"gamma": 0.9}, lambda t: 0.9**t),
    "ConstantLR": ({"factor": 0.5, "total_iters": 4}, lambda t: 0.5 if t < 4 else 1),
    "LinearLR": ({"start_factor": 0.5, "total_iters": 4}, lambda t: min(1, 0.5 + t / 8)),
    "PolynomialLR": ({"total_iters": 6, "power": 2.0}, lambda t: (1 - min(t, 6) / 6) ** 2),
    "CosineAnnealingLR": ({"T_max": 4}, lambda t: (1 + math.cos(math.pi * t / 4)) / 2),
    "LambdaLR": ({"lr_lambda": lambda t: 1 / (1 + t)}, lambda t: 1 / (1 + t)),
    "CosineAnnealingWarmRestarts": (
        {"T_0": 5},
        lambda t: (1 + math.cos(math.pi * (t % 5) / 5)) / 2,
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_follows_its_formula(name):
    kwargs, factor = SCHEDULES[name]
    p = nn.Parameter(torch.ones(1))
    opt = optim.SGD([p], lr=0.3)
    schedule = getattr(optim.lr_scheduler, name)(opt, **kwargs)
    for t in range(10):
        assert opt.param_groups[0]["lr"] == pytest.approx(0.3 * factor(t), abs=1e-12), t
        assert schedule.get_last_lr() == [opt.param_groups[0]["lr"]]
        opt.step()
        schedule.step()


def test_one_cycle_peaks_and_ends_low():
    opt = optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
    schedule = optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=11)
    rates, momenta = [], []
    for _ in range(10):
        opt.step()
        schedule.step()
        rates.append(opt.param_groups[0]["lr"])
        momenta.append(opt.param_groups[0]["momentum"])
    assert max(rates) <= 1.0
    assert rates[-1] == pytest.approx(1 / 25 / 1e4)
    assert momenta[-1] == pytest.approx(0.95)


def test_plateau_cuts_after_patience():
    opt = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
    rates = []
    for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0):
        schedule.step(loss)
        rates.append(opt.param_groups[0]["lr"])
    assert rates == pytest.approx([1, 1, 1, 0.1, 0.1, 0.01])


def test_schedule_before_the_optimizer_warns():
    opt = optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(opt, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()


GUIDE = "optim.html#how-to-adjust-learning-rate"


def test_schedule_stepped_first_names_the_guide():
    optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.warns(UserWarning, match=GUIDE):
        schedule.step()


def test_step_replaced_after_the_schedule_was_made_warns():
    optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="`optimizer.step\\(\\)` has been overridden"):
        schedule.step()


def test_step_replaced_before_the_schedule_was_made_does_not_warn():
    optimizer = optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    old = optimizer.step
    optimizer.step = lambda: old()
    schedule = optim.lr_scheduler.StepLR(optimizer, 1)
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [0.05]


def test_plateau_with_a_least_rate_for_each_group_refuses_a_new_group():
    optimizer = optim.SGD([torch.zeros(1)], lr=0.5)
    each = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.1])
    same = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.4)
    optimizer.add_param_group({"params": [torch.zeros(1)]})
    for metric in (1.0, 2.0):
        same.step(metric)
    assert [group["lr"] for group in optimizer.param_groups] == [0.4, 0.4]
    each.step(1.0)
    with pytest.raises(RuntimeError, match="The number of param groups in the `optimizer`"):
        each.step(2.0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda p: optim.swa_utils.SWALR(optim.SGD([p], lr=1.0), swa_lr=[1.0, 2.0]),
            "swa_lr must have the same length as optimizer.param_groups",
        ),
        (
            lambda p: optim.Adam([p], betas=(0.9, torch.tensor(0.99))),
            "betas must be either both floats or both Tensors",
        ),
        (
            lambda p: optim.AdamW([p], betas=(torch.tensor(0.9), torch.tensor(0.99)), foreach=True),
            "is not supported for capturable=False and foreach=True",
        ),
        (
            lambda p: optim.Muon([p], adjust_lr_fn="arbitrary"),
            "Adjust learning rate function arbitrary is not supported",
        ),
        (
            lambda p: optim.SparseAdam([p.to(torch.complex64)]),
            r"Complex params at indices \[\[0, 0\]\]",
        ),
    ],
)
def test_optimizers_refuse_options_in_pytorchs_words(call, text):
    with pytest.raises(ValueError, match=text):
        call(torch.zeros(2, 2))
