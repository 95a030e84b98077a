"""Whole modules are kept as PyTorch keeps them, so that a file of one is read there and here."""

import copy
import gzip
import io
import json
import pickle
import pickletools
import zipfile

import module_states
import pytest

import pytensorlib as torch

RECORDED = json.loads(gzip.decompress(module_states.RECORDED.read_bytes()))
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("text", module_states.MODULES)
def test_the_state_of_a_module_has_the_names_and_values_of_pytorch(text):
    found = module_states.state(module_states.built(torch, text))
    wanted = RECORDED[text]
    assert found == wanted


CALLED = [text for text, given in module_states.MODULES.items() if given]


@pytest.mark.parametrize("text", [text for text in CALLED if "Lazy" not in text])
def test_a_call_adds_nothing_to_the_state(text):
    module = module_states.built(torch, text).eval()
    before = module_states.state(module)
    module_states.called(torch, module, text)
    assert module_states.state(module) == before


@pytest.mark.parametrize("text", CALLED)
def test_a_copy_and_a_saved_module_compute_the_same(text):
    module = module_states.built(torch, text).eval()
    wanted = module_states.called(torch, module, text)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    others = [pickle.loads(pickle.dumps(module)), again]
    if "utils." not in text:  # which keep a weight that was computed: PyTorch refuses its copy too
        others.append(copy.deepcopy(module))
    for other in others:
        torch.testing.assert_close(
            module_states.called(torch, other, text), wanted, rtol=0, atol=0, equal_nan=True
        )


def test_every_class_of_torch_nn_is_looked_at():
    built = {type(module_states.built(torch, text)).__name__ for text in module_states.MODULES}
    lost = {name for name, kind in vars(torch.nn).items() if isinstance(kind, type)} - built
    assert not {
        name
        for name in lost
        if issubclass(getattr(torch.nn, name), torch.nn.Module) and not name.startswith("_")
    }


# The keys of `state_dict` in PyTorch 2.13, without those that every schedule has.
SCHEDULES = {
    "OneCycleLR": "_anneal_func_type _schedule_phases cycle_momentum total_steps use_beta1",
    "ReduceLROnPlateau": (
        "best cooldown cooldown_counter default_min_lr eps factor min_lrs mode mode_worse "
        "num_bad_epochs patience threshold threshold_mode"
    ),
    "CyclicLR": (
        "_scale_fn_custom base_momentums cycle_momentum gamma max_lrs max_momentums mode "
        "scale_mode step_ratio total_size use_beta1"
    ),
}
OPTIONS = {"OneCycleLR": (0.1, 9), "ReduceLROnPlateau": (), "CyclicLR": (0.1, 0.2)}
COMMON = "_get_lr_called_within_step _is_initial _last_lr _step_count base_lrs last_epoch".split()


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_state_of_a_schedule_has_the_names_of_pytorch(name):
    def made():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1, momentum=0.9)
        return getattr(torch.optim.lr_scheduler, name)(optimizer, *OPTIONS[name])

    schedule = made()
    assert set(schedule.state_dict()) - set(COMMON) == set(SCHEDULES[name].split())
    file = io.BytesIO()
    torch.save(schedule, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    for _ in range(4):
        for each in (schedule, again):
            each.optimizer.step()
            each.step(*((1.0,) if name == "ReduceLROnPlateau" else ()))
        assert again.get_last_lr() == schedule.get_last_lr()
    # Globals of the files' protocol have no dots in their names.
    file.seek(0)
    data = zipfile.ZipFile(file).read("archive/data.pkl")
    texts = [arg for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"]
    assert texts and all("." not in text.split()[1] for text in texts)
