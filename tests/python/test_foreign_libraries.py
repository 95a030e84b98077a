"""Libraries compiled for PyTorch's C++: packages that load one go on, and operators say why not."""

import importlib
import sys
import warnings

import pytest

import pytensorlib as torch

# What a compiler leaves of TORCH_LIBRARY: the signatures, among other text.
TEXTS = (
    b"scale(Tensor x, float by=1.0) -> Tensor",
    b"spaced::fill(Tensor(a!) x, int[] by) -> Tensor(a!)",
    b"is_available() -> bool",
    b"cuda_version() -> int?",
    b"_cuda_version() -> int",
    b"names() -> str",
    b"no signature (of anything)",
)
LOAD = (
    "import pytensorlib as torch\ntorch.ops.load_library({path!r})\nscale = torch.ops.ours.scale\n"
)
GO_ON = """
import pytensorlib as torch
try:
    torch.ops.load_library({path!r})
    has_ops = True
except (ImportError, OSError):
    has_ops = False
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return what writes a package beside a library and imports it."""
    from pytensorlib._absent import compiled as _compiled

    monkeypatch.setattr(_compiled, "loaded", {})
    monkeypatch.setattr(torch, "ops", type(torch.ops)())
    monkeypatch.syspath_prepend(str(tmp_path))

    def load(code, name, texts=TEXTS):
        path = tmp_path / f"lib_{name}.so"
        path.write_bytes(b"\x7fELF\x02\x01\x01" + b"\0".join((b"", *texts, b"")))
        (tmp_path / f"{name}.py").write_text(code.format(path=str(path)))
        try:
            return importlib.import_module(name)
        finally:
            sys.modules.pop(name, None)

    return load


def test_package_with_a_library_imports_and_its_operators_say_what_is_missing(package):
    with pytest.warns(UserWarning, match="lib_ours_lib.so needs PyTorch's C.. libraries"):
        module = package(LOAD, "ours_lib")
    for call in (module.scale, torch.ops.ours.scale.default, torch.ops.spaced.fill):
        with pytest.raises(NotImplementedError, match="is compiled for PyTorch's C.. libraries"):
            call(torch.ones(1))
    for space, name in (("other", "fill"), ("ours", "missing"), ("ours", "no")):
        assert not hasattr(getattr(torch.ops, space), name)
    assert any(path.endswith("lib_ours_lib.so") for path in torch.ops.loaded_libraries)
    with warnings.catch_warnings():  # it is told once
        warnings.simplefilter("error")
        package(LOAD, "ours_lib")


def test_questions_to_a_library_that_is_not_here_are_answered_no(package):
    with pytest.warns(UserWarning, match="asked_lib"):
        package(LOAD, "asked_lib")
    space = torch.ops.asked
    assert space.is_available() is False and space.cuda_version() is None
    assert space._cuda_version() == -1
    with pytest.raises(NotImplementedError, match="torch.ops.asked.names"):
        space.names()


def test_package_that_handles_the_error_goes_on_without_the_library(package):
    assert package(GO_ON, "handled_lib").has_ops is False
    assert not hasattr(torch.ops.ours, "scale") and not torch.ops.loaded_libraries


def test_library_without_signatures_may_have_any_operator(package):
    with pytest.warns(UserWarning, match="bare_lib"):
        module = package(LOAD, "bare_lib", (b"nothing",))
    with pytest.raises(NotImplementedError, match="torch.ops.ours.scale is compiled"):
        module.scale(1)
    assert not hasattr(torch.ops.aten, "no_such_operator_of_ours")


@pytest.mark.parametrize("of", ["ops", "classes"])
def test_library_that_is_missing_or_is_none_raises(of, tmp_path):
    text = tmp_path / "text.so"
    text.write_text("text")
    for path in (tmp_path / "absent.so", text):
        load = getattr(torch, of).load_library
        with pytest.raises(OSError, match="Could not load this library: .*custom_op") as error:
            load(path)
        assert str(path) in str(error.value)


def test_classes_of_a_library_do_not_exist():
    with pytest.raises(RuntimeError, match="Tried to instantiate class 'ours.Codec', but it does"):
        torch.classes.ours.Codec
