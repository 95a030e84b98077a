"""The optimizers as functions of lists: parameters, gradients and state, which are updated."""

from __future__ import annotations

import sys
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import pytensorlib as pt

from .optimizer import GradientOptimizer

__all__ = ["spread"]


class Form(NamedTuple):
    """How a function is called: lists of state by their key, options in their order, numbers."""

    optimizer: type[GradientOptimizer]
    lists: str
    options: str
    numbers: str
    fixed: dict[str, Any] = {}


# Numbers of a function that are one option of the optimizer.
JOINED = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}
FUSED = "fused grad_scale found_inf"
DOC = """Update parameters in place as one step of `{0}` does, with state given in lists.

To be called without recording a graph, as the optimizer's own step is.
"""


def forms() -> dict[str, Form]:
    """Return the function of each optimizer; options are False where they are not given."""
    from . import (
        ASGD,
        SGD,
        Adadelta,
        Adagrad,
        Adam,
        Adamax,
        AdamW,
        NAdam,
        RAdam,
        RMSprop,
        Rprop,
    )  # fmt: skip

    adam = "exp_avgs=exp_avg exp_avg_sqs=exp_avg_sq"
    steps = "state_steps=step"
    largest = f"{adam} max_exp_avg_sqs=max_exp_avg_sq {steps}"
    adam_options = f"foreach capturable differentiable {FUSED} has_complex"
    adam_numbers = "amsgrad beta1 beta2 lr weight_decay eps maximize"
    last = "differentiable capturable has_complex"
    return {
        "adadelta": Form(
            Adadelta,
            f"square_avgs=square_avg acc_deltas=acc_delta {steps}",
            "capturable foreach differentiable has_complex",
            "lr rho eps weight_decay maximize",
        ),
        "adagrad": Form(
            Adagrad,
            f"state_sums=sum {steps}",
            f"{FUSED} has_sparse_grad foreach differentiable has_complex",
            "lr weight_decay lr_decay eps maximize",
        ),
        "adam": Form(Adam, largest, f"{adam_options} decoupled_weight_decay", adam_numbers),
        "adamw": Form(AdamW, largest, adam_options, adam_numbers, {"decoupled_weight_decay": True}),
        "adamax": Form(
            Adamax,
            f"exp_avgs=exp_avg exp_infs=exp_inf {steps}",
            f"foreach maximize {last}",
            "eps beta1 beta2 lr weight_decay",
        ),
        "asgd": Form(
            ASGD,
            f"axs=ax mus=mu etas=eta {steps}",
            f"foreach maximize {last}",
            "lambd lr t0 alpha weight_decay",
        ),
        "nadam": Form(
            NAdam,
            f"{adam} mu_products=mu_product {steps}",
            "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
            "beta1 beta2 lr weight_decay momentum_decay eps",
        ),
        "radam": Form(
            RAdam,
            f"{adam} {steps}",
            f"decoupled_weight_decay foreach {last} maximize",
            "beta1 beta2 lr weight_decay eps",
        ),
        "rmsprop": Form(
            RMSprop,
            f"square_avgs=square_avg grad_avgs=grad_avg momentum_buffer_list=momentum_buffer "
            f"{steps}",
            f"foreach maximize {last}",
            "lr alpha eps weight_decay momentum centered",
        ),
        "rprop": Form(
            Rprop,
            f"prevs=prev step_sizes=step_size {steps}",
            "foreach capturable maximize differentiable has_complex",
            "step_size_min step_size_max etaminus etaplus",
        ),
        "sgd": Form(
            SGD,
            "momentum_buffer_list=momentum_buffer",
            f"has_sparse_grad foreach {FUSED}",
            "weight_decay momentum lr dampening nesterov maximize",
        ),
    }


def function(name: str, form: Form) -> Any:
    """Return the function of an optimizer."""
    lists = dict(pair.split("=") for pair in form.lists.split())
    absent = {"foreach", *FUSED.split()}
    first = "params d_p_list" if name == "sgd" else "params grads"
    positional = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in first.split()]
    positional += [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in lists]
    positional += [
        Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=None if n in absent else False)
        for n in form.options.split()
    ]
    numbers = [Parameter(n, Parameter.KEYWORD_ONLY) for n in form.numbers.split()]
    signature = Signature([*positional, *numbers])
    optimizer: Any = form.optimizer.__new__(form.optimizer)

    def update(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        params, grads = (given[n] for n in first.split())
        group = {"capturable": False, "differentiable": False, **given, **form.fixed}
        for option, parts in JOINED.items():
            if parts[0] in given:
                group[option] = tuple(given[part] for part in parts)
        stop, scale = given.get("found_inf"), given.get("grad_scale")
        if stop is not None and pt.as_tensor(stop).item():
            return
        for i, (p, g) in enumerate(zip(params, grads, strict=True)):
            state = {key: given[n][i] for n, key in lists.items() if len(given[n])}
            g = g if scale is None else g / scale
            optimizer._update_one(p, -g if group["maximize"] else g, state, group)
            for n, key in lists.items():
                if len(given[n]) and given[n][i] is not state[key]:
                    given[n][i] = state[key]

    update.__name__ = update.__qualname__ = name
    update.__module__ = f"{__package__}.{name}"
    update.__doc__ = DOC.format(form.optimizer.__name__)
    update.__signature__ = signature  # type: ignore[attr-defined]
    return update


def spread() -> None:
    """Put each function into the module of its optimizer."""
    for name, form in forms().items():
        setattr(sys.modules[f"{__package__}.{name}"], name, function(name, form))
