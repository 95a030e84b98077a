"""Settings of PyTorch's choice among libraries for products: they are kept.

Products choose their tiles by themselves here; ``PYTENSORLIB_TUNE`` says how much is timed.
"""

from __future__ import annotations

from typing import Any

from .._absent.modules import refusal

__all__ = [
    "enable",
    "get_filename",
    "get_max_tuning_duration",
    "get_max_tuning_iterations",
    "get_results",
    "get_rotating_buffer_size",
    "get_validators",
    "is_enabled",
    "mgpu_tune_gemm_in_file",
    "read_file",
    "record_untuned_enable",
    "record_untuned_is_enabled",
    "set_filename",
    "set_max_tuning_duration",
    "set_max_tuning_iterations",
    "set_numerical_check_tolerances",
    "set_rotating_buffer_size",
    "tune_gemm_in_file",
    "tuning_enable",
    "tuning_is_enabled",
]

_NO_FILES = "tiles are timed where a product first runs, not by lists in files."
mgpu_tune_gemm_in_file = refusal("mgpu_tune_gemm_in_file", __name__, _NO_FILES)
tune_gemm_in_file = refusal("tune_gemm_in_file", __name__, _NO_FILES)

_settings: dict[str, Any] = {
    "enabled": False,
    "tuning": True,
    "untuned": False,
    "duration": 30,
    "iterations": 100,
    "filename": "tunableop_results.csv",
    "rotating": -1,
    "tolerances": None,
}


def enable(val: bool = True) -> None:
    """Keep whether products are chosen among libraries; there is one here."""
    _settings["enabled"] = bool(val)


def is_enabled() -> bool:
    """Return what `enable` set; at first False."""
    return bool(_settings["enabled"])


def tuning_enable(val: bool = True) -> None:
    """Keep whether libraries are timed; there is one here."""
    _settings["tuning"] = bool(val)


def tuning_is_enabled() -> bool:
    """Return what `tuning_enable` set; at first True."""
    return bool(_settings["tuning"])


def record_untuned_enable(val: bool = True) -> None:
    """Keep whether products that were not timed are to be listed; they are not."""
    _settings["untuned"] = bool(val)


def record_untuned_is_enabled() -> bool:
    """Return what `record_untuned_enable` set; at first False."""
    return bool(_settings["untuned"])


def set_max_tuning_duration(duration: int) -> None:
    """Keep the milliseconds for timing."""
    _settings["duration"] = int(duration)


def get_max_tuning_duration() -> int:
    """Return what `set_max_tuning_duration` set; at first 30."""
    return int(_settings["duration"])


def set_max_tuning_iterations(iterations: int) -> None:
    """Keep the number of runs for timing."""
    _settings["iterations"] = int(iterations)


def get_max_tuning_iterations() -> int:
    """Return what `set_max_tuning_iterations` set; at first 100."""
    return int(_settings["iterations"])


def set_filename(filename: str, insert_device_ordinal: bool = False) -> None:
    """Keep the name of the file for results; none is written."""
    _settings["filename"] = str(filename)


def get_filename() -> str:
    """Return what `set_filename` set."""
    return str(_settings["filename"])


def set_rotating_buffer_size(buffer_size: int) -> None:
    """Keep the megabytes that timing goes through."""
    _settings["rotating"] = int(buffer_size)


def get_rotating_buffer_size() -> int:
    """Return what `set_rotating_buffer_size` set; at first -1."""
    return int(_settings["rotating"])


def set_numerical_check_tolerances(enable: bool, atol: float = 1e-5, rtol: float = 1e-5) -> None:
    """Keep how much results of libraries may differ; here a tile changes no bit."""
    _settings["tolerances"] = (bool(enable), float(atol), float(rtol))


def get_results() -> tuple[Any, ...]:
    """Return what was timed of libraries: nothing."""
    return ()


def get_validators() -> tuple[Any, ...]:
    """Return what results of libraries hang on: nothing."""
    return ()


def read_file(filename: str | None = None) -> bool:
    """Return False: there are no files of results."""
    return False
