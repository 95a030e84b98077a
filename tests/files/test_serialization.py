"""Checkpoint files: what PyTorch wrote, round trips, and files that mean harm."""

from __future__ import annotations

import collections
import io
import os
import pickle
import sys
import types
import zipfile
from fractions import Fraction
from pathlib import Path

import pytest

import pytensorlib as torch
from pytensorlib import nn

FILES = Path(__file__).parents[1] / "conformance" / "files"
REBUILD = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
)


def archive(data, storages=None, compress=zipfile.ZIP_STORED, **extra):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compress) as z:
        records = {"data.pkl": data, "byteorder": b"little", "version": b"3\n", **extra}
        for key, content in (storages or {"0": bytes(16)}).items():
            records[f"data/{key}"] = content
        for name, content in records.items():
            if content is not None:
                z.writestr(f"x/{name}", content)
    buffer.seek(0)
    return buffer


def tensor_pickle(offset=b"K\x00", size=b"K\x04\x85", stride=b"K\x01\x85"):
    return b"\x80\x02" + REBUILD + offset + size + stride + b"\x89}tR."


def saved(obj, **kwargs):
    buffer = io.BytesIO()
    torch.save(obj, buffer, **kwargs)
    return buffer.getvalue()


def loaded(data, **kwargs):
    return torch.load(io.BytesIO(data), **kwargs)


@pytest.mark.skipif(not FILES.is_dir(), reason="the recorded files are not there")
@pytest.mark.parametrize(
    "path", sorted(FILES.glob("*.pt")) if FILES.is_dir() else [], ids=lambda p: p.stem
)
def test_load_file_of_pytorch_and_save_it_again(path, tmp_path):
    if path.stem == "whole_module":
        with pytest.raises(pickle.UnpicklingError, match="weights_only"):
            torch.load(path)
        return
    first = torch.load(path)
    torch.save(first, tmp_path / "x.pt")
    again = torch.load(tmp_path / "x.pt")
    assert type(again) is type(first)
    if isinstance(first, torch.Tensor):
        assert again.dtype == first.dtype
        assert again.stride() == first.stride()
        assert again.tolist() == first.tolist()


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_round_trip_keeps_values_sharing_and_kinds(legacy):
    base = torch.arange(6.0).reshape(2, 3)
    obj = {
        "view": base.t(),
        "base": base,
        "parameter": nn.Parameter(torch.ones(2)),
        "empty": torch.zeros(0, 3),
        "ints": torch.tensor([1, -2], dtype=torch.int16),
        "half": torch.ones(3).to(torch.bfloat16),
        "plain": [1, 2.5, "s", b"\x00\xff", None, True, (1 << 70, -1), {3}, 1j],
        "size": base.shape,
        "dtype": torch.float64,
        "device": torch.device("cpu"),
        "order": collections.OrderedDict(a=1),
    }
    got = loaded(saved(obj, _use_new_zipfile_serialization=not legacy))
    assert list(got) == list(obj)
    assert got["view"].stride() == (1, 3)
    assert got["view"].tolist() == base.t().tolist()
    got["base"].fill_(7)
    assert got["view"].tolist() == [[7, 7]] * 3
    assert type(got["parameter"]) is nn.Parameter
    assert got["parameter"].requires_grad
    assert got["empty"].shape == (0, 3)
    assert got["ints"].dtype == torch.int16
    assert got["half"].dtype == torch.bfloat16
    assert got["plain"] == obj["plain"]
    assert got["size"] == base.shape
    assert type(got["size"]) is torch.Size
    assert got["dtype"] is torch.float64
    assert got["device"] == torch.device("cpu")
    assert type(got["order"]) is collections.OrderedDict


def test_save_lays_records_out_as_pytorch_does(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"w": torch.ones(3), "e": torch.zeros(0)}, path)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        assert z.namelist() == [
            f"model/{name}"
            for name in ("data.pkl", ".format_version", ".storage_alignment", "byteorder",
                         "data/0", "data/1", "version", ".data/serialization_id")
        ]  # fmt: skip
        for info in z.infolist():
            at = info.header_offset
            skip = int.from_bytes(data[at + 26 : at + 28], "little")
            skip += int.from_bytes(data[at + 28 : at + 30], "little")
            assert (at + 30 + skip) % 64 == 0
            assert info.compress_type == zipfile.ZIP_STORED
        assert b"ctorch._utils\n_rebuild_tensor_v2\n" in z.read("model/data.pkl")
    assert data.rfind(b"PK\x06\x06") > 0  # Zip64


def test_save_of_a_view_keeps_the_base_and_of_an_expanded_tensor_one_element():
    assert len(saved(torch.zeros(100_000)[:1])) > 400_000
    data = saved(torch.zeros(1).expand(10**9))
    assert len(data) < 2000
    assert loaded(data).stride() == (0,)


def test_state_dict_keeps_its_metadata():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    got = loaded(saved(model.state_dict()))
    assert list(got) == list(model.state_dict())
    assert got._metadata == model.state_dict()._metadata


def test_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.ones(3), path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save({"f": lambda: 1}, path)
    assert torch.load(path).tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == ["x.pt"]


def test_save_where_no_file_can_be_raises():
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.save(1, "/nonexistent/x.pt")
    if os.path.exists("/dev/full"):
        with pytest.raises(RuntimeError, match="cannot write"):
            torch.save(torch.zeros(10**5), "/dev/full")


def test_mmap_gives_the_same_values(tmp_path):
    torch.save({"w": torch.arange(1000.0)}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt", mmap=True)["w"].sum().item() == 499500
    with pytest.raises(ValueError, match="file path"):
        torch.load(io.BytesIO(b"PK"), mmap=True)


def test_map_location_function_and_missing_cuda():
    data = saved(torch.ones(2))
    assert loaded(data, map_location=lambda storage, place: storage).tolist() == [1, 1]
    assert loaded(data, map_location={"cpu": "cpu"}).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="CUDA"):
        loaded(data, map_location="cuda:0")


class Harm:
    def __reduce__(self):
        return os.getenv, ("HOME",)


def test_global_that_is_not_allowed_is_named():
    bad = archive(pickle.dumps(Harm(), 2))
    with pytest.raises(pickle.UnpicklingError, match=r"os\.getenv.*weights_only"):
        torch.load(bad)


class Mine:
    def __init__(self):
        self.x = 3


def test_safe_globals_allow_a_class_for_a_while():
    data = saved(Mine())
    with pytest.raises(pickle.UnpicklingError, match="Mine"):
        loaded(data)
    with torch.serialization.safe_globals([Mine]):
        assert loaded(data).x == 3
    assert loaded(data, weights_only=False).x == 3
    with pytest.raises(pickle.UnpicklingError):
        loaded(data)


HARM = {
    "storage missing": (tensor_pickle().replace(b"\x00\x00\x000X", b"\x00\x00\x007X"), "not found"),
    "offset past end": (tensor_pickle(offset=b"K\x64"), "reach"),
    "negative offset": (tensor_pickle(offset=b"J\xfe\xff\xff\xff"), "invalid"),
    "negative size": (tensor_pickle(size=b"J\xfc\xff\xff\xff\x85"), "invalid"),
    "huge size": (tensor_pickle(size=b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85"), "invalid|reach"),
    "lengths differ": (tensor_pickle(size=b"K\x02K\x02\x86"), "unequal"),
    "setitem on list": (b"\x80\x02]K\x00K\x01s.", "SETITEM"),
    "empty stack": (b"\x80\x02R.", "empty stack"),
    "no stop": (b"\x80\x02}", "ends at byte"),
    "text too long": (b"\x80\x02X\xff\xff\xff\xffabc.", "ends at byte"),
    "opcode": (b"\x80\x02\x93.", "opcode 0x93"),
    "bytearray of a size": (b"\x80\x02c__builtin__\nbytearray\nJ\x00\x00\x00\x7f\x85R.", "bytes"),
    "storage class called": (b"\x80\x02ctorch\nFloatStorage\nK\x04\x85R.", "not allowed"),
    "state on a tensor": (tensor_pickle()[:-1] + b"(K\x01tb.", "build state"),
    "idna": (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x04\x00\x00\x00idna\x86R.", "latin1"),
    "recall": (b"\x80\x02h\x05.", "recalls 5"),
}


@pytest.mark.parametrize("name", HARM)
def test_harmful_pickle_raises(name):
    data, text = HARM[name]
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match=text):
        torch.load(archive(data))


def test_legal_oddities_load():
    assert torch.load(archive(tensor_pickle())).tolist() == [0, 0, 0, 0]
    wide = tensor_pickle(size=b"\x8a\x06" + (2**40).to_bytes(6, "little") + b"\x85",
                         stride=b"K\x00\x85")  # fmt: skip
    assert torch.load(archive(wide)).shape == (2**40,)
    itself = torch.load(archive(b"\x80\x02]q\x00h\x00a."))
    assert itself[0] is itself
    assert torch.load(archive(tensor_pickle(), byteorder=None)).tolist() == [0, 0, 0, 0]
    packed = archive(tensor_pickle(), compress=zipfile.ZIP_DEFLATED)
    assert torch.load(packed).tolist() == [0, 0, 0, 0]


def test_big_endian_file_is_swapped():
    data = archive(tensor_pickle(), {"0": b"\x3f\x80\x00\x00" * 4}, byteorder=b"big")
    assert torch.load(data).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ({"version": b"999\n"}, "maximum supported version"),
        ({"version": b"x"}, "not a number"),
        ({"version": None}, "not found"),
        ({"byteorder": b"middle"}, "endianness"),
        ({"../other": b""}, None),
    ],
)
def test_odd_records(extra, text):
    data = archive(tensor_pickle(), **extra)
    if text is None:
        assert torch.load(data).shape == (4,)
        return
    with pytest.raises(RuntimeError, match=text):
        torch.load(data)


def test_inflating_bomb_is_refused_before_it_is_inflated():
    n = 1 << 27
    count = n.to_bytes(5, "little") + b"\x00"
    data = tensor_pickle().replace(b"K\x04tQ", b"\x8a\x06" + count + b"tQ")
    data = data.replace(b"FloatStorage", b"ByteStorage")
    bomb = archive(data, {"0": bytes(n)}, compress=zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="may not grow"):
        torch.load(bomb)


def test_flipped_bit_is_noticed():
    data = bytearray(saved(torch.ones(1000)))
    at = data.find(b"\x00\x00\x80\x3f" * 100)
    data[at + 40] ^= 1
    with pytest.raises(RuntimeError, match="checksum"):
        loaded(bytes(data))


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_cut_file_raises_at_every_length(legacy):
    data = saved({"w": torch.ones(3)}, _use_new_zipfile_serialization=not legacy)
    for n in range(0, len(data) - 1, 7):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            loaded(data[:n])


def test_damaged_byte_loads_the_same_or_raises():
    data = saved({"w": torch.ones(3), "n": [1, 2]})
    for at in range(0, len(data), 3):
        bad = bytearray(data)
        bad[at] ^= 0x41
        try:
            got = loaded(bytes(bad))
        except (RuntimeError, pickle.UnpicklingError):
            continue
        assert got["w"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("data", [b"", b"random bytes, not a checkpoint", b"JJJJ" * 300])
def test_not_a_checkpoint_raises(data):
    with pytest.raises(RuntimeError):
        loaded(data)


def test_order_of_bytes_of_files_that_do_not_tell_is_a_setting():
    from pytensorlib.serialization import LoadEndianness, set_default_load_endianness

    x = torch.tensor([1.0, 2.0])
    file = io.BytesIO()
    torch.save(x, file, _disable_byteorder_record=True)
    try:
        set_default_load_endianness(LoadEndianness.BIG)
        swapped = torch.load(io.BytesIO(file.getvalue()))
    finally:
        set_default_load_endianness(None)
    assert swapped.tolist() == x.numpy().byteswap().tolist()
    assert torch.load(io.BytesIO(file.getvalue())).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="Invalid argument type"):
        set_default_load_endianness(1)


def test_shared_map_writes_to_the_file(tmp_path):
    from pytensorlib._serialization.options import MAP_PRIVATE, MAP_SHARED  # Windows has no names

    path = tmp_path / "x.pt"
    torch.save(torch.zeros(4), path)
    torch.load(path, mmap=True)[0] = 5
    assert torch.load(path).tolist() == [0.0] * 4
    with torch.serialization.set_default_mmap_options(MAP_SHARED):
        torch.load(path, mmap=True)[0] = 5
    assert torch.serialization.get_default_mmap_options() == MAP_PRIVATE
    torch.serialization.set_crc32_options(True)
    mapped = torch.load(path, mmap=True)
    assert mapped.tolist() == [5.0, 0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="MAP_PRIVATE or"):
        torch.serialization.set_default_mmap_options(77)


def test_skipped_data_is_not_written_and_not_read():
    x = {"a": torch.ones(1000), "b": torch.ones(3).int()}
    whole, empty = io.BytesIO(), io.BytesIO()
    torch.save(x, whole)
    with torch.serialization.skip_data():
        torch.save(x, empty)
        shape = torch.load(io.BytesIO(whole.getvalue()))
    found = torch.load(io.BytesIO(empty.getvalue()))
    assert found["a"].tolist() == shape["a"].tolist() == [0.0] * 1000
    assert found["b"].dtype == torch.int32
    assert len(empty.getvalue()) == len(whole.getvalue())


def test_registered_package_names_and_finds_places(monkeypatch):
    from pytensorlib import serialization
    from pytensorlib._serialization import options as _options

    monkeypatch.setattr(_options, "_packages", [])
    where = {"attic": False}

    def tag(storage):
        return "attic" if where["attic"] else None

    def place(storage, location):
        return storage if location == "attic" else None

    serialization.register_package(5, tag, place)
    file = io.BytesIO()
    where["attic"] = True
    assert serialization.location_tag(torch.ones(1).untyped_storage()) == "attic"
    torch.save(torch.ones(2), file)
    assert torch.load(io.BytesIO(file.getvalue())).tolist() == [1.0, 1.0]
    monkeypatch.setattr(_options, "_packages", [])
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        torch.load(io.BytesIO(file.getvalue()))
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        serialization.default_restore_location(torch.ones(1).untyped_storage(), "attic")


def test_versions_of_modules_are_compared_by_parts():
    from types import SimpleNamespace as Module

    from pytensorlib.serialization import check_module_version_greater_or_equal as check

    assert check(Module(__name__="m", __version__="0.3.10"), (0, 3, 9))
    assert not check(Module(__name__="m", __version__="0.3.1"), (0, 3, 9))
    odd = Module(__name__="m", __version__="new")
    with pytest.raises(RuntimeError, match="malformed 'new'"):
        check(odd, (0, 3))
    with pytest.warns(UserWarning, match="continuing"):
        assert check(odd, (0, 3), error_if_malformed=False)


# ------------------------------------------------------------- pickles of other modules


class Renaming(pickle.Unpickler):
    def find_class(self, module, name):
        return Fraction if module == "gone" else super().find_class(module, name)


def test_unpickler_of_a_module_finds_the_classes():
    gone = types.ModuleType("gone")
    gone.Old = type("Old", (), {"__module__": "gone", "__qualname__": "Old"})
    for zipped in (True, False):
        sys.modules["gone"] = gone
        file = io.BytesIO()
        torch.save([gone.Old, torch.ones(2)], file, _use_new_zipfile_serialization=zipped)
        del sys.modules["gone"]
        module = types.SimpleNamespace(Unpickler=Renaming)
        file.seek(0)
        loaded = torch.load(file, pickle_module=module, weights_only=False)
        assert loaded[0] is Fraction and torch.equal(loaded[1], torch.ones(2))


class Shortening(pickle.Pickler):
    def reducer_override(self, obj):
        return (Fraction, (1, 2)) if isinstance(obj, types.ModuleType) else NotImplemented


class Stretching(pickle._Pickler):
    dispatch = dict(pickle._Pickler.dispatch)

    def save_module(self, obj):
        self.save_reduce(Fraction, (1, 2), obj=obj)

    dispatch[types.ModuleType] = save_module


@pytest.mark.parametrize("pickler", [Shortening, Stretching])
def test_pickler_of_a_module_writes_what_ours_cannot(pickler):
    file = io.BytesIO()
    saved = {"m": pickle, "w": torch.ones(2), "net": torch.nn.Linear(1, 1), "t": torch.float16}
    torch.save(saved, file, pickle_module=types.SimpleNamespace(Pickler=pickler))
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded["m"] == Fraction(1, 2) and torch.equal(loaded["w"], torch.ones(2))
    assert torch.equal(loaded["net"].weight, saved["net"].weight) and loaded["t"] is torch.float16


PYTHON_2 = (
    b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x01(U\x10protocol_"
    b"versionq\x02M\xe9\x03U\ntype_sizesq\x03}q\x04(U\x03intq\x05K\x04U\x05shortq\x06K\x02U\x04long"
    b"q\x07K\x04uU\rlittle_endianq\x08\x88u.\x80\x02]q\x01(U\x04\xc5\xbc\xc4\x85q\x02ctorch._utils"
    b"\n_rebuild_tensor_v2\nq\x03((U\x07storageq\x04ctorch\nFloatStorage\nq\x05U\x0845640624q\x06U"
    b"\x03cpuq\x07\x8a\x01\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRq\x08K\x02e.\x80\x02]q\x01U\x084564"
    b"0624q\x02a.\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize(
    ("encoding", "text"),
    [(None, "żą"), ("utf-8", "żą"), ("latin1", "Å¼Ä\x85"), ("bytes", b"\xc5\xbc\xc4\x85")],
)
def test_strings_of_python_2_have_an_encoding(weights_only, encoding, text):
    options = {} if encoding is None else {"encoding": encoding}
    loaded = torch.load(io.BytesIO(PYTHON_2), weights_only=weights_only, **options)
    assert loaded[0] == text and torch.equal(loaded[1], torch.zeros(1)) and loaded[2] == 2


def test_saved_file_is_flushed(tmp_path):
    with open(tmp_path / "x.pt", "wb") as file:
        torch.save(torch.ones(2), file)
        assert torch.equal(torch.load(tmp_path / "x.pt"), torch.ones(2))


def test_file_that_cannot_seek_is_told_so():
    class Pipe:
        def read(self, n=-1):
            return b""

    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seek"):
        torch.load(Pipe())


def test_records_are_written_and_read_one_by_one(tmp_path):
    data = {"a": b"12039810948234589", "c/d": "text", "e": torch.ones(2).untyped_storage()}
    for target in (io.BytesIO(), tmp_path / "x.pt"):
        with torch.serialization._open_zipfile_writer(target) as writer:
            for name, value in data.items():
                writer.write_record(name, value, len(value))
            writer.write_record_metadata("later", 100)
        with torch.serialization._open_zipfile_reader(target) as reader:
            assert reader.get_record("a") == data["a"] and reader.get_record("c/d") == b"text"
            assert reader.get_storage_from_record("e", 2, torch.float32).tolist() == [1, 1]
            assert reader.get_record_size("later") == 100 and not reader.has_record("x")
            assert reader.get_record_offset("a") % 64 == 0
            with pytest.raises(RuntimeError, match="failed locating file x"):
                reader.get_record("x")
