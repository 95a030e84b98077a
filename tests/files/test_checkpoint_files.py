"""Files and streams that checkpoints go to and come from."""

from __future__ import annotations

import io
import os
import pickle
import signal
import tarfile
import threading
import zipfile
from fractions import Fraction

import child
import pytest

import pytensorlib as torch
from pytensorlib.serialization import CorruptCheckpointError, TruncatedCheckpointError

LEGACY = {"_use_new_zipfile_serialization": False}
FORMATS = pytest.mark.parametrize("how", [{}, LEGACY], ids=["zip", "legacy"])
TMPFILE = pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="drafts have names here")


def saved(obj, **how):
    buffer = io.BytesIO()
    torch.save(obj, buffer, **how)
    return buffer.getvalue()


# ------------------------------------------------------------------------- saving


@FORMATS
def test_save_of_memory_that_changes_meanwhile_loads(how):
    x = torch.zeros(100_000)

    class Training(io.BytesIO):
        def write(self, data):
            n = super().write(data)
            if n > 1000:
                x.add_(1)
            return n

    stream = Training()
    torch.save(x, stream, **how)
    stream.seek(0)
    assert torch.load(stream).shape == x.shape


def test_save_beside_a_training_thread_loads(tmp_path):
    x, done = torch.zeros(1_000_000), threading.Event()

    def train():
        while not done.is_set():
            x.add_(1)

    thread = threading.Thread(target=train)
    thread.start()
    try:
        for _ in range(5):
            torch.save(x, tmp_path / "x.pt")
            assert torch.load(tmp_path / "x.pt").shape == x.shape
    finally:
        done.set()
        thread.join()


def killed_while_saving(path, before=""):
    """Let a process be killed when half of a file is written."""
    script = f"""
import os, signal
import pytensorlib as torch
from pytensorlib._serialization import archive as _archive
{before}
_archive._C = type("C", (), dict(_copy_summed=lambda *a: os.kill(os.getpid(), signal.SIGKILL)))
torch.save(torch.ones(1000), {str(path)!r})
"""
    done = child.python("-c", script)
    assert done.returncode == -signal.SIGKILL


@TMPFILE
def test_killed_save_leaves_the_old_file_and_nothing_else(tmp_path):
    torch.save(torch.zeros(3), tmp_path / "x.pt")
    killed_while_saving(tmp_path / "x.pt")
    assert os.listdir(tmp_path) == ["x.pt"]
    assert torch.load(tmp_path / "x.pt").tolist() == [0, 0, 0]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_draft_with_a_name_is_removed_by_the_next_save(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path, other = tmp_path / "x.pt", tmp_path / "y.pt"
    for place in (path, other):
        killed_while_saving(place, "if hasattr(os, 'O_TMPFILE'): del os.O_TMPFILE")
    drafts = os.listdir(tmp_path)
    assert len(drafts) == 2
    torch.save(torch.ones(1), path)
    left = set(os.listdir(tmp_path)) - {"x.pt"}
    assert len(left) == 1
    assert left < set(drafts)
    torch.save(torch.ones(1), other)
    assert sorted(os.listdir(tmp_path)) == ["x.pt", "y.pt"]


@pytest.mark.skipif(os.name == "nt", reason="modes and links as POSIX has them")
@pytest.mark.parametrize("tmpfile", [True, False])
def test_save_replaces_a_file_and_keeps_its_mode(tmp_path, monkeypatch, tmpfile):
    if not tmpfile:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(1), path)
    path.chmod(0o640)
    (tmp_path / "link.pt").symlink_to(path)
    torch.save(torch.ones(1), tmp_path / "link.pt")
    assert (tmp_path / "link.pt").is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert torch.load(path).item() == 1
    assert sorted(os.listdir(tmp_path)) == ["link.pt", "x.pt"]


@pytest.mark.skipif(os.name != "nt", reason="elsewhere files that are mapped can be replaced")
def test_save_over_a_file_that_is_mapped_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("pytensorlib._serialization.atomic.PATIENCE", 0.1)
    path = tmp_path / "x.pt"
    torch.save(torch.arange(100_000.0), path)
    mapped = torch.load(path, mmap=True)
    with pytest.raises(RuntimeError, match="let that go first"):
        torch.save(torch.zeros(1), path)
    assert mapped[7] == 7 and os.listdir(tmp_path) == ["x.pt"]
    del mapped
    torch.save(torch.zeros(1), path)


@pytest.mark.skipif(os.name == "nt", reason="what is mapped cannot be replaced")
def test_save_over_a_file_of_long_ago_keeps_it_until_it_is_whole(tmp_path):
    """Its cached pages are let go before: who fails, and who has it mapped, still finds it."""
    path, numbers = tmp_path / "x.pt", torch.arange(100_000.0)
    torch.save(numbers, path)
    os.utime(path, (0, 0))
    mapped = torch.load(path, mmap=True)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save({"w": torch.ones(100_000), "f": lambda: 1}, path)
    assert torch.equal(torch.load(path), numbers)
    torch.save(mapped + 1, path)
    assert torch.equal(torch.load(path), numbers + 1)
    assert torch.equal(mapped, numbers)
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.skipif(os.name == "nt", reason="paths of more than 260 characters")
def test_save_to_the_longest_name(tmp_path):
    path = tmp_path / ("x" * 252 + ".pt")
    for value in (1, 2):
        torch.save(torch.tensor(value), path)
        assert torch.load(path).item() == value


def test_saves_to_one_name_at_once_leave_one_whole_file(tmp_path):
    path, errors = tmp_path / "x.pt", []

    def work(value):
        try:
            for _ in range(20):
                torch.save(torch.full((20_000,), float(value)), path)
                assert torch.load(path).unique().numel() == 1
        except BaseException as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.skipif(os.name != "posix", reason="limits")
def test_save_to_a_full_disk_keeps_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(3), path)
    script = f"""
import resource
import pytensorlib as torch
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    torch.save(torch.ones(1_000_000), {str(path)!r})
except RuntimeError as e:
    print(e)
"""
    done = child.python("-c", script)
    assert "cannot write" in done.stdout, done.stderr
    assert torch.load(path).tolist() == [0, 0, 0]
    assert os.listdir(tmp_path) == ["x.pt"]


@FORMATS
def test_stream_that_takes_a_few_bytes_at_a_time_gets_all(how):
    class Slow(io.RawIOBase):
        data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data[:1000])
            return min(len(data), 1000)

    slow = Slow()
    torch.save(torch.arange(2000.0), slow, **how)
    assert torch.load(io.BytesIO(slow.data)).tolist() == list(range(2000))


@FORMATS
@pytest.mark.parametrize("kind", [object, io.RawIOBase, io.BufferedIOBase])
def test_stream_that_keeps_what_it_gets_keeps_copies(how, kind):
    class Keeper(kind):
        def __init__(self):
            super().__init__()
            self.parts = []

        def write(self, data):
            self.parts.append(data)
            return len(data)

    keeper, x = Keeper(), torch.ones(3_000_000)
    torch.save(x, keeper, **how)
    x.zero_()
    assert torch.load(io.BytesIO(b"".join(keeper.parts))).sum().item() == 3_000_000


def test_storages_are_saved_beside_their_tensors():
    x = torch.arange(3.0)
    for things in ([x, x.storage()], [x.storage(), x], [x.untyped_storage()] * 2):
        for how in ({}, LEGACY):
            a, b = torch.load(io.BytesIO(saved(things, **how)))
            assert a.data_ptr() == b.data_ptr()
            kept = [v.tolist() for v in (a, b)]
            assert kept == [v.tolist() for v in things]
    with zipfile.ZipFile(io.BytesIO(saved([x, x.storage()]))) as z:
        # As PyTorch writes it, but for the numbers of the memo.
        storage = b"(h\x02h\x03h\x04h\x05K\x03tq\x08Qe."
        assert z.read("archive/data.pkl").endswith(storage)
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        saved([x, x.untyped_storage()])


# ------------------------------------------------------------------------- loading


@FORMATS
def test_load_from_a_stream_that_is_not_at_its_start(how):
    stream = io.BytesIO(b"abc" + saved(torch.arange(3.0), **how))
    stream.seek(3)
    assert torch.load(stream).tolist() == [0, 1, 2]


@FORMATS
def test_load_from_an_open_file_that_is_not_at_its_start(how, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"abc" + saved(torch.arange(3.0), **how))
    for buffering in (-1, 0):
        with open(path, "rb", buffering) as stream:
            stream.seek(3)
            assert torch.load(stream).tolist() == [0, 1, 2]


@FORMATS
def test_load_from_a_member_of_an_archive(how, tmp_path):
    """A stream that is buffered, but has no descriptor."""
    data = saved(torch.arange(3.0), **how)
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        member = tarfile.TarInfo("x.pt")
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    with tarfile.open(tmp_path / "x.tar") as tar:
        assert torch.load(tar.extractfile("x.pt")).tolist() == [0, 1, 2]


def test_archive_without_records_is_no_checkpoint():
    with pytest.raises(CorruptCheckpointError, match="not found"):
        torch.load(io.BytesIO(b"PK\x03\x04" + bytes(26) + b"PK\x05\x06" + bytes(18)))


def test_legacy_files_one_after_another_in_one_stream():
    stream = io.BytesIO()
    for value in (1.0, 2.0):
        torch.save(torch.tensor(value), stream, **LEGACY)
    stream.seek(0)
    assert [torch.load(stream).item() for _ in range(2)] == [1, 2]
    with pytest.raises(EOFError):
        torch.load(stream)


class Short(io.BytesIO):
    """Gives at most a few bytes at a time."""

    def read(self, n=-1):
        return super().read(7 if n < 0 else min(n, 7))

    def readinto(self, room):
        return super().readinto(memoryview(room)[:7])


@FORMATS
def test_load_from_a_stream_that_gives_few_bytes_at_a_time(how):
    want = {"w": torch.arange(100.0), "n": [1, 2]}
    got = torch.load(Short(saved(want, **how)))
    assert got["w"].tolist() == want["w"].tolist()
    assert got["n"] == [1, 2]


def test_load_without_a_place_to_seek_says_so():
    class Pipe(io.RawIOBase):
        def readable(self):
            return True

    with pytest.raises(io.UnsupportedOperation):
        torch.load(Pipe())
    with pytest.raises(AttributeError, match="BytesIO"):
        torch.load(object())


def test_load_of_what_is_no_file(tmp_path):
    with pytest.raises((IsADirectoryError, PermissionError)):
        torch.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "no.pt")
    (tmp_path / "empty.pt").touch()
    for mmap in (False, True):
        with pytest.raises(TruncatedCheckpointError):
            torch.load(tmp_path / "empty.pt", mmap=mmap)
    with pytest.raises(RuntimeError, match="directory"):
        torch.save(torch.ones(1), tmp_path)


def test_legacy_view_begins_at_its_offset():
    from fuzz import bombs

    pid = (
        b"(" + bombs.text("storage") + b"ctorch\nFloatStorage\n" + bombs.text("0")
        + bombs.text("cpu") + b"K\x04(" + bombs.text("v") + b"K\x02K\x02ttQ"
    )  # fmt: skip
    body = bombs.tensor(pid, size=b"K\x02\x85")
    data = (4).to_bytes(8, "little") + saved_floats(1, 2, 3, 4)
    legacy = bombs.legacy(body, b"](" + bombs.text("0") + b"e", data)
    for trusted in (False, True):
        assert torch.load(io.BytesIO(legacy), weights_only=not trusted).tolist() == [3, 4]
    beyond = bombs.legacy(bombs.tensor(pid), b"](" + bombs.text("0") + b"e", data)
    with pytest.raises(CorruptCheckpointError, match="reach"):
        torch.load(io.BytesIO(beyond))


def saved_floats(*values):
    return torch.tensor(values, dtype=torch.float32).numpy().tobytes()


def test_mapped_bytes_are_read_as_any_type_wherever_they_lie(tmp_path):
    from fuzz import bombs

    pid = bombs.pid(n=b"K\x10").replace(b"FloatStorage", b"ByteStorage")
    both = b"](" + bombs.tensor(pid) + bombs.tensor(bombs.pid()) + b"e"
    path = tmp_path / "x.pt"
    for n in range(4):
        storages = {"a" * (n + 1): b"", "0": saved_floats(1, 2, 3, 4)}
        path.write_bytes(bombs.archive(b"\x80\x02" + both + b".", storages))
        for mmap in (False, True):
            whole, wide = torch.load(path, mmap=mmap)
            assert whole.tolist() == [0, 0, 128, 63]
            assert wide.tolist() == [1, 2, 3, 4]
            assert wide.data_ptr() % 4 == 0


def test_compressed_file_is_not_mapped(tmp_path):
    from fuzz import bombs

    (tmp_path / "x.pt").write_bytes(bombs.pickle(bombs.tensor(), deflate=True))
    assert torch.load(tmp_path / "x.pt").tolist() == [0] * 4
    with pytest.raises(RuntimeError, match="compressed"):
        torch.load(tmp_path / "x.pt", mmap=True)


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def __eq__(self, other):
        return vars(self) == vars(other)

    __hash__ = None


def test_object_of_an_allowed_class_comes_back_without_its_initializer():
    data = saved([Pair(1, torch.ones(2).tolist())])
    with torch.serialization.safe_globals([Pair]):
        assert torch.load(io.BytesIO(data)) == [Pair(1, [1, 1])]


@FORMATS
def test_unsafe_globals_are_listed(how, tmp_path):
    get = torch.serialization.get_unsafe_globals_in_checkpoint
    torch.save([torch.ones(1), Pair(1, 2), os.getenv], tmp_path / "x.pt", **how)
    names = [f"{__name__}.Pair", "os.getenv"]
    assert get(tmp_path / "x.pt") == names
    with torch.serialization.safe_globals([Pair]):
        assert get(tmp_path / "x.pt") == names[1:]
    with pytest.raises(ValueError, match="Expected input to be a checkpoint"):
        get(io.BytesIO(pickle.dumps(1)))


def test_attributes_of_tensors_come_back_but_hide_nothing():
    x = torch.ones(2)
    x.note = {"a": 1}
    p = torch.nn.Parameter(torch.ones(2))
    p.note = "b"
    a, b = torch.load(io.BytesIO(saved([x, p])))
    assert (a.note, b.note) == ({"a": 1}, "b")
    assert type(b) is torch.nn.Parameter
    torch.serialization.set_crc32_options(False)
    try:
        bad = saved(x).replace(b"note", b"data")
    finally:
        torch.serialization.set_crc32_options(True)
    with pytest.raises(CorruptCheckpointError, match="hide"):
        torch.load(io.BytesIO(bad))


def test_plain_pickle_of_pytorch_finds_its_names_here(tmp_path):
    """What ``pickle.dumps(torch.ones(1))`` writes, read by a script that imports torch."""
    inner = (
        b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x00X\r\x00\x00\x00"
        b"little_endianq\x01\x88s.\x80\x02(X\x07\x00\x00\x00storageq\x00ctorch\nFloatStorage\nq\x01"
        b"X\x01\x00\x00\x005q\x02X\x03\x00\x00\x00cpuq\x03K\x01Ntq\x04Q.\x80\x02]q\x00X\x01\x00\x00"
        b"\x005q\x01a.\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80?"
    )
    storage = b"ctorch.storage\n_load_from_bytes\nC" + bytes([len(inner)]) + inner + b"\x85R"
    plain = b"\x80\x04ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00K\x01\x85K\x01\x85"
    plain += b"\x89ccollections\nOrderedDict\n)RtR."
    (tmp_path / "x.pkl").write_bytes(plain)
    script = tmp_path / "x.py"
    script.write_text(
        "import pickle, sys, torch\nprint(pickle.load(open(sys.argv[1], 'rb')).tolist())\n"
    )
    done = child.python("-m", "pytensorlib", script, tmp_path / "x.pkl")
    assert done.stdout.strip() == "[1.0]", done.stderr


def test_tensors_of_another_device_go_where_they_are_told():
    from fuzz import bombs

    data = bombs.pickle(bombs.tensor(bombs.pid(place=bombs.text("cuda:1"))))
    places = ["cpu", torch.device("cpu"), {"cuda:1": "cpu"}, lambda storage, place: storage]
    for place in places:
        assert torch.load(io.BytesIO(data), map_location=place).device.type == "cpu"
    for place in (None, "cuda", {"cuda:0": "cpu"}, lambda storage, place: None):
        with pytest.raises(RuntimeError, match="on a CUDA device but"):
            torch.load(io.BytesIO(data), map_location=place)


def test_names_of_devices_that_are_not_here_load():
    names = ["cpu", "cuda", "cuda:1", "meta", "mps:0"]
    data = saved([torch.device(n) for n in names])
    for trusted in (False, True):
        got = torch.load(io.BytesIO(data), weights_only=not trusted)
        assert [str(d) for d in got] == names


@pytest.mark.parametrize("value", ["1", "y", "YES", "true"])
def test_the_environment_may_ask_for_whole_objects(tmp_path, monkeypatch, value):
    path = tmp_path / "half.pt"
    torch.save(Fraction(1, 2), path)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", value)
    with pytest.warns(UserWarning, match="^Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        assert torch.load(path) == Fraction(1, 2)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(path, weights_only=True)


def test_the_environment_may_refuse_whole_objects(tmp_path, monkeypatch):
    path = tmp_path / "half.pt"
    torch.save(Fraction(1, 2), path)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(path, weights_only=False)
    with pytest.raises(RuntimeError, match="pickle_module"):
        torch.load(path, pickle_module=pickle)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of .* should be set, but both were set"):
        torch.load(path)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0")
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "no")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(path)
