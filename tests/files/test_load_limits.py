"""What a file may cost, and what it may not do: bombs, mutations, and the limits themselves."""

from __future__ import annotations

import io
import os
import signal
import threading
from pathlib import Path

import child
import pytest

pytest.importorskip("resource")
if not hasattr(os, "fork") or not os.path.exists("/proc/self/statm"):
    pytest.skip("needs fork and /proc", allow_module_level=True)
from fuzz import bombs, files

import pytensorlib as torch
from pytensorlib.serialization import CorruptCheckpointError

pytestmark = pytest.mark.forks
TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", bombs.BOMBS)
def test_bomb_loads_or_is_refused_within_its_means(name: str) -> None:
    text, good = files.bombed(name)
    assert good, text


def test_mutated_files_load_or_raise_what_load_promises() -> None:
    done = child.python(
        "-m", "fuzz.files", "mutate", "--count", "2000", "--seed", "5000000", cwd=TESTS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 findings" in done.stdout


def test_a_file_that_costs_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard itself: a child that takes memory, time, or dies is told from one that does not."""
    monkeypatch.setattr(files, "SECONDS", 0.1)

    def hungry(say: object) -> None:
        files.limit(0)
        bytearray(files.CONSTANT * 2)

    def dying(say: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hanging(say: object) -> None:
        files.limit(0)
        while True:
            pass

    assert "MemoryError" in files.forked(hungry)[0]
    assert files.forked(dying)[1] < 0
    assert files.forked(hanging)[1] < 0
    assert files.forked(lambda say: say("fine")) == ("fine", 0)


def loaded(body: bytes) -> object:
    return torch.load(io.BytesIO(bombs.pickle(body)))


def test_many_numbers_as_keys_load() -> None:
    for step in (1, -3, 1024, 1 << 30, 1 << 55):
        want = {i * step: i for i in range(3000)} | {(i, "k"): i for i in range(500)}
        buffer = io.BytesIO()
        torch.save([want, set(want)], buffer)
        buffer.seek(0)
        assert torch.load(buffer) == [want, set(want)]


@pytest.mark.parametrize(
    ("key", "good"),
    [
        (b"N", True),
        (b"K\x01", True),
        (b"G" + bytes(8), True),
        (bombs.number(1 << 90), True),
        (bombs.call(b"_codecs\nencode", bombs.text("a")), True),
        (b"K\x01N\x86", True),
        (bombs.DEVICE + bombs.text("cpu") + b"\x85R", True),
        (bombs.SIZE + b"K\x02\x85\x85R", True),
        (bombs.tensor(), True),
        (b"ctorch\nfloat32\n", True),
        (b"K\x01\x85\x85", False),
        (b"(" + b"N" * 17 + b"t", False),
        (b"]", False),
        (bombs.ORDERED + b")R", False),
    ],
)
def test_keys_are_scalars_or_flat_tuples(key: bytes, good: bool) -> None:
    if good:
        assert list(loaded(b"}" + key + b"K\x05s").values()) == [5]
        return
    with pytest.raises(CorruptCheckpointError, match="key"):
        loaded(b"}" + key + b"K\x05s")


def test_error_names_the_place_and_stays_short() -> None:
    with pytest.raises(
        CorruptCheckpointError, match=r"argument 1 .* must be int, got str at byte"
    ) as e:
        loaded(bombs.tensor(offset=bombs.text("a" * 100_000)))
    assert len(str(e.value)) < 300


def test_memory_a_file_may_take_grows_with_its_size() -> None:
    lists = b"](" + b"]" * 2_000_000 + b"e"
    with pytest.raises(CorruptCheckpointError, match="memory"):
        loaded(lists)
    # A million small dicts, as a list of records holds them.
    many = (
        b"](" + (b"}q\x01(" + bombs.text("id") + b"M\x00\x01" + bombs.text("n") + b"Nu") * 100_000
    )
    assert len(loaded(many + b"e")) == 100_000


PARAMETER = b"ctorch._utils\n_rebuild_parameter_with_state\n(" + bombs.tensor() + b"\x89"
DEEP = {
    "tuple": (b")", b"\x85", b"", 300_000),
    "list": (b"", b"]", b"a", 300_000),
    "dict": (b"", b"}K\x00", b"s", 100_000),
    "ordered": (b"", bombs.ORDERED + b")RK\x00", b"s", 100_000),
    "list of dicts": (b"", b"]}K\x00", b"sa", 100_000),
    "parameter": (b"", PARAMETER + bombs.ORDERED + b")R}X\1\0\0\0a", b"stR", 5_000),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_loads_and_is_dropped_on_a_small_stack(name: str) -> None:
    first, down, up, levels = DEEP[name]
    core = b"" if name in ("tuple", "list") else b"N"
    body = first + down * levels + core + up * (levels - (name == "list"))
    found: list[object] = []

    def run() -> None:
        found.append(type(loaded(body)).__name__)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [
        {"ordered": "OrderedDict", "parameter": "Parameter"}.get(name, name.split()[0])
    ]
