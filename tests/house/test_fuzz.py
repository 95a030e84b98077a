"""A sample of random calls keeps the laws; the whole of it is `make fuzz`."""

from __future__ import annotations

from pathlib import Path

import child
import pytest

pytest.importorskip("scipy")
from fuzz import accepted, graphs, laws, mutate
from fuzz.calls import Array, Call
from fuzz.corpus import Corpus
from fuzz.libraries import Library

import pytensorlib as torch

TESTS = Path(__file__).resolve().parents[1]


def test_laws_hold_for_a_sample_of_random_calls() -> None:
    """No crash, hang or panic, no stray write, and one result whatever the form or layout."""
    done = child.python("-m", "fuzz", "laws", "--start", "20000", "--count", "1500", cwd=TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_seed_gives_the_same_call_every_time() -> None:
    corpus = Corpus()
    for seed in range(50):
        one, two = (mutate.sampled(corpus, corpus.names, seed) for _ in range(2))
        assert str(one) == str(two)


class Faulty(Library):
    """A library whose `sin` breaks one law."""

    def __init__(self, fault: str) -> None:
        super().__init__(torch)
        self.fault, self.calls = fault, 0

    def function(self, call: Call):  # noqa: ANN201
        return getattr(self, f"_{self.fault}")

    def _writes(self, x, **_):
        x.data.add_(1)
        return x.sin()

    def _remembers(self, x, **_):
        self.calls += 1
        return x.sin() + self.calls

    def _widens(self, x, **_):
        return x.sin().double() if x.is_meta else x.sin()

    def _dies(self, x, **_):
        raise RuntimeError("sin: internal panic; please report")


@pytest.mark.parametrize(
    ("fault", "category"),
    [("writes", "WRITE"), ("remembers", "MEMORY"), ("dies", "PANIC"), ("widens", "META")],
)
def test_broken_law_is_found(fault: str, category: str) -> None:
    import numpy as np

    call = Call("sin", "torch.sin", (Array(np.ones(3, np.float32), "float32"),), {})
    found = {f.category for f in laws.broken(call, Faulty(fault))}
    assert category in found
    assert not list(laws.broken(call, Library(torch)))


@pytest.mark.filterwarnings("ignore")
def test_program_runs_alone_and_is_the_same_every_time() -> None:
    for seed in range(30):
        one, two = (graphs.program(seed, torch) for _ in range(2))
        assert one == two
        assert one


def test_accepted_differences_say_why() -> None:
    import re

    for each in accepted.ACCEPTED:
        for pattern in (each.category, each.op, each.text):
            re.compile(pattern)
        assert each.reason
    for category in ("CRASH", "HANG", "PANIC", "HARNESS"):
        assert accepted.reason(category, "add", "") is None
    assert accepted.reason("VALUE", "add", "[0] at 3: 1.0 for 2.0") is None
