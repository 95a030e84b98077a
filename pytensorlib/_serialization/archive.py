"""The zip archives that checkpoints are: a strict reader and an aligning writer.

The writer lays records out as PyTorch does: stored, one top folder, payloads on 64-byte bounds,
always with a Zip64 end. The reader trusts no number before it has been checked against the file.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from typing import IO, Any

import pytensorlib as pt

from .. import _C
from .machine import CorruptCheckpointError, TruncatedCheckpointError

__all__ = ["ArchiveReader", "ArchiveWriter"]

LOCAL, CENTRAL, DESCRIPTOR = b"PK\x03\x04", b"PK\x01\x02", b"PK\x07\x08"
END, END64, LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
ALIGNMENT = 64
UTF8, DESCRIBED = 0x0800, 0x0008
FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF
CHUNK = 1 << 24
# What is copied at once before it is written: it stays in the cache in between.
DRAFT = 1 << 22
# What is gathered before it is written, so that small records cost no call each.
BATCH = 1 << 18
# Streams that are done with what they got when `write` returns.
COPYING = (io.BufferedWriter, io.BufferedRandom, io.BytesIO, io.FileIO)
# What is inflated at once.
INFLATED = 1 << 20
MAX_RECORDS = 1 << 20
# A record may grow this much when it is inflated, and small ones as they like.
MAX_RATIO, FREE_BYTES = 64, 1 << 24


def read_all(stream: Any, n: int) -> bytes:
    """Return `n` bytes, or what there is, of a stream that may give fewer at a time."""
    data = stream.read(n) or b""
    if len(data) in (0, n):
        return data
    parts, left = [data], n - len(data)
    while left and (data := stream.read(left)):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def write_all(stream: Any, data: memoryview) -> None:
    """Write to a stream that may take fewer bytes at a time, or keep what it gets."""
    for start in range(0, len(data), CHUNK):
        part: Any = data[start : start + CHUNK]
        if type(stream) not in COPYING:
            part = bytes(part)
        if not isinstance(stream, io.RawIOBase):
            stream.write(part)
            continue
        rest = memoryview(part)
        while rest:
            n = stream.write(rest)
            if not n:
                raise OSError("the stream takes no more bytes")
            rest = rest[n:]


class ArchiveWriter:
    """Writes records to a stream that needs no seeking."""

    def __init__(self, stream: IO[bytes], top: str, checksums: bool = True) -> None:
        self.stream, self.top, self.checksums = stream, top, checksums
        self.at = 0
        self.batch: list[Any] = []
        self.gathered = 0
        self.entries: list[tuple[bytes, int, int, int, int]] = []
        import hashlib  # it loads a library, which only who saves needs

        self.digest = hashlib.sha256()

    def _flush(self) -> None:
        """Write what was gathered."""
        batch, self.batch, self.gathered = b"".join(self.batch), [], 0
        write_all(self.stream, memoryview(batch))

    def _write(self, data: Any) -> None:
        """Write bytes that nobody changes, now or with what follows."""
        self.at += len(data)
        if len(data) >= BATCH:
            self._flush()
            write_all(self.stream, memoryview(data))
            return
        self.batch.append(data)
        self.gathered += len(data)
        if self.gathered >= BATCH:
            self._flush()

    def _write_summed(self, data: Any) -> int:
        """Write bytes that may be changing, and return the checksum of what was written."""
        view = memoryview(data).cast("B")
        if len(view) < BATCH:
            own = bytearray(len(view))
            crc = _C._copy_summed(view, own, 0)
            self._write(own)
            return crc
        self._flush()
        draft, crc = memoryview(bytearray(min(DRAFT, len(view)))), 0
        for start in range(0, len(view), DRAFT):
            part = view[start : start + DRAFT]
            crc = _C._copy_summed(part, draft, crc)
            write_all(self.stream, draft[: len(part)])
        self.at += len(view)
        return crc

    def record(self, name: str, data: Any) -> None:
        """Write one record of bytes."""
        path = f"{self.top}/{name}".encode()
        size, offset = len(data), self.at
        flags = UTF8 | (DESCRIBED if size else 0)
        before = offset + 30 + len(path) + 4
        padding = -before % ALIGNMENT
        self._write(
            struct.pack("<4s5H3I2H", LOCAL, 0, flags, 0, 0, 0, 0, 0, 0, len(path), padding + 4)
            + path
            + struct.pack("<2sH", b"FB", padding)
            + b"Z" * padding
        )
        crc = 0
        if size and self.checksums:
            crc = self._write_summed(data)
        elif size:
            self._write(data)
        if size:
            form = "<4sIQQ" if size >= FULL32 else "<4sIII"
            self._write(struct.pack(form, DESCRIPTOR, crc, size, size))
        self.digest.update(path + struct.pack("<IQ", crc, size))
        self.entries.append((path, flags, crc, size, offset))

    def serialization_id(self) -> str:
        """Return 40 digits that depend on the names, sizes and checksums so far."""
        return f"{int.from_bytes(self.digest.digest(), 'little') % 10**40:040d}"

    def close(self) -> None:
        """Write the directory; the stream stays open."""
        start = self.at
        for path, flags, crc, size, offset in self.entries:
            big = [n for n in (size, size, offset) if n >= FULL32]
            extra = b""
            if big:
                extra = struct.pack(f"<HH{len(big)}Q", 1, 8 * len(big), *big)
            small = min(size, FULL32)
            head = struct.pack(
                "<4s6H3I5H2I",
                CENTRAL, 0, 0, flags, 0, 0, 0, crc, small, small, len(path), len(extra),
                0, 0, 0, 0, min(offset, FULL32),
            )  # fmt: skip
            self._write(head + path + extra)
        length, count, end = self.at - start, len(self.entries), self.at
        self._write(
            struct.pack("<4sQ2H2I4Q", END64, 44, 0x031E, 45, 0, 0, count, count, length, start)
        )
        self._write(struct.pack("<4sIQI", LOCATOR64, 0, end, 1))
        few = min(count, FULL16)
        near = min(length, FULL32), min(start, FULL32)
        self._write(struct.pack("<4s4H2IH", END, 0, 0, few, few, *near, 0))
        self._flush()


class Record:
    """The position, size and checksum of a record."""

    __slots__ = ("crc", "head", "limit", "method", "name", "offset", "packed", "size")

    def __init__(
        self, name: str, head: bytes, offset: int, packed: int, size: int, crc: int, method: int
    ) -> None:
        self.name, self.head, self.offset = name, head, offset
        self.packed, self.size, self.crc, self.method = packed, size, crc, method
        self.limit = 0  # where the next one begins

    def __repr__(self) -> str:
        return repr(self.name) if len(self.name) < 80 else f"{self.name[:80]!r}..."


class ArchiveReader:
    """Reads records of a seekable stream from `base` on, after checking the whole directory."""

    def __init__(self, stream: IO[bytes], base: int = 0) -> None:
        self.stream, self.base = stream, base
        self.descriptor = _descriptor(stream)
        stream.seek(0, 2)
        self.length = stream.tell() - base
        self.inflated = 0
        self.records: dict[str, Record] = {}
        self.top = ""
        self._read_directory()

    def _bytes(self, offset: int, n: int, descriptor: int | None = None) -> bytes:
        if offset < 0 or n < 0 or offset + n > self.length:
            raise TruncatedCheckpointError(
                f"the archive refers to bytes {offset} to {offset + n}, but has {self.length}"
            )
        if descriptor is not None:
            data = os.pread(descriptor, n, self.base + offset)
        else:
            self.stream.seek(self.base + offset)
            data = read_all(self.stream, n)
        if len(data) != n:
            raise TruncatedCheckpointError(f"the file ends within {n} bytes at {offset}")
        return data

    def _end(self) -> tuple[int, int, int]:
        """Return number of records, length and start of the directory."""
        tail_start = max(0, self.length - 22 - FULL16)
        tail = self._bytes(tail_start, self.length - tail_start)
        i = tail.rfind(END)
        if i < 0 or len(tail) - i < 22:
            raise CorruptCheckpointError(
                "PytorchStreamReader failed reading zip archive: failed finding central directory"
            )
        count, length, start = struct.unpack("<10xHII", tail[i : i + 20])
        at = tail_start + i
        if at >= 20:
            locator = self._bytes(at - 20, 20)
            if locator[:4] == LOCATOR64:
                offset = struct.unpack("<8xQ4x", locator)[0]
                end64 = self._bytes(offset, 56)
                if end64[:4] != END64:
                    raise CorruptCheckpointError(f"no Zip64 end at byte {offset}")
                big = struct.unpack("<32xQQQ", end64)
                for value, full, value64 in zip(
                    (count, length, start), (FULL16, FULL32, FULL32), big, strict=True
                ):
                    if value not in (full, value64):
                        raise CorruptCheckpointError("the two ends of the archive contradict")
                count, length, start = big
        if count > MAX_RECORDS or start + length > at or length < 46 * count:
            raise CorruptCheckpointError(
                f"the archive's directory ({count} records, {length} bytes at {start}) cannot be"
            )
        return count, length, start

    def _read_directory(self) -> None:
        count, length, start = self._end()
        data, at = self._bytes(start, length), 0
        for _ in range(count):
            if data[at : at + 4] != CENTRAL or len(data) - at < 46:
                raise CorruptCheckpointError(f"no directory entry at byte {start + at}")
            flags, method, crc, packed, size, n, m, k, offset = struct.unpack_from(
                "<8x2H4x3I3H8xI", data, at
            )
            raw = data[at + 46 : at + 46 + n]
            extra = data[at + 46 + n : at + 46 + n + m]
            at += 46 + n + m + k
            if len(raw) != n or len(extra) != m or at > len(data):
                raise CorruptCheckpointError("the archive's directory is cut")
            size, packed, offset = _wide(extra, size, packed, offset)
            try:
                name = raw.decode("utf-8" if flags & UTF8 else "cp437")
            except UnicodeDecodeError as e:
                raise CorruptCheckpointError(f"a record's name is not UTF-8: {raw[:80]!r}") from e
            record = Record(name, raw, offset, packed, size, crc, method)
            if flags & 1 or method not in (0, 8):
                raise CorruptCheckpointError(
                    f"record {record}: encrypted or compressed by method {method}, must be plain"
                )
            if method == 0 and packed != size:
                raise CorruptCheckpointError(f"record {record}: stored size {packed} is not {size}")
            self._add(record)
        limit = start
        for record in sorted(self.records.values(), key=lambda r: r.offset, reverse=True):
            record.limit, limit = limit, record.offset
            if record.offset + 30 + len(record.head) + record.packed > record.limit:
                raise CorruptCheckpointError(
                    f"record {record} reaches beyond the archive or overlaps the next"
                )

    def _add(self, record: Record) -> None:
        top, slash, rest = record.name.partition("/")
        if not slash or (self.records and top != self.top):
            where = f" {self.top[:80]}/" if self.records else ""
            raise CorruptCheckpointError(
                f"file in archive is not in a subdirectory{where}: {record}"
            )
        self.top = top
        if rest in self.records:
            raise CorruptCheckpointError(f"record {record} is in the archive twice")
        self.records[rest] = record

    def start_of(self, record: Record) -> int:
        """Return where the bytes of a record begin, after a look at its own header."""
        n = len(record.head)
        local = self._bytes(record.offset, 30 + n, self.descriptor)
        method, n2, extra = struct.unpack_from("<8xH16xHH", local)
        if local[:4] != LOCAL or method != record.method or n2 != n or local[30:] != record.head:
            raise CorruptCheckpointError(f"record {record}: its two headers contradict")
        start = record.offset + 30 + n + extra
        if start + record.packed > record.limit:
            raise CorruptCheckpointError(
                f"record {record} reaches beyond the archive or overlaps the next"
            )
        return start

    def find(self, name: str) -> Record:
        """Return where record `name` lies."""
        if name not in self.records:
            raise CorruptCheckpointError(
                f"PytorchStreamReader failed locating file {name[:200]}: file not found. The file "
                "may be damaged, or may not be a checkpoint."
            )
        return self.records[name]

    def tensor(self, record: Record) -> Any:
        """Return a record's bytes as a tensor."""
        if self.descriptor is None or record.method != 0 or not record.size:
            self._check_ratio(record)
            data = pt.empty(record.size, dtype=pt.uint8, device="cpu")
            self.read_into(record, memoryview(_C._host_bytes(data)))
            return data
        start = self.base + self.start_of(record)
        try:
            data, crc = _C._read_bytes(self.descriptor, start, record.size)
        except EOFError:
            raise TruncatedCheckpointError(f"the file ends within record {record}") from None
        self._compare(record, crc)
        return data

    def read_into(self, record: Record, target: memoryview) -> None:
        """Fill `target`, of the record's size, and check the checksum."""
        if len(target) != record.size:
            raise ValueError(f"{record}: {len(target)} bytes for {record.size}")
        crc = at = 0
        start = self.start_of(record)
        if record.method == 0:
            self.stream.seek(self.base + start)
            read_into = getattr(self.stream, "readinto", None)
            while at < record.size:
                room = target[at : at + CHUNK]
                if read_into is not None:
                    n = read_into(room) or 0
                else:
                    part = self.stream.read(len(room)) or b""
                    n = len(part)
                    room[:n] = part
                if n == 0:
                    raise TruncatedCheckpointError(f"the file ends within record {record}")
                crc, at = _C._crc32(room[:n], crc), at + n
        else:
            crc = self._inflate(record, start, target)
        self._compare(record, crc)

    def _compare(self, record: Record, crc: int) -> None:
        # A checksum of zero means that the writer computed none.
        if record.crc not in (0, crc):
            raise CorruptCheckpointError(
                f"record {record}: its checksum is {crc:#010x}, must be {record.crc:#010x}: the "
                "file is damaged"
            )

    def _inflate(self, record: Record, start: int, target: memoryview) -> int:
        """Fill `target` with what a compressed record holds and return its checksum."""
        unpacker = zlib.decompressobj(-15)
        left, pending = record.packed, b""
        crc = at = 0
        while at < record.size:
            if not pending and left:
                n = min(INFLATED, left)
                pending, start, left = self._bytes(start, n), start + n, left - n
            try:
                part = unpacker.decompress(pending, min(INFLATED, record.size - at))
            except zlib.error as e:
                raise CorruptCheckpointError(f"record {record}: {e}") from e
            if not part and not unpacker.unconsumed_tail and not left:
                raise TruncatedCheckpointError(f"record {record} is too short")
            pending = unpacker.unconsumed_tail
            target[at : at + len(part)] = part
            crc, at = _C._crc32(part, crc), at + len(part)
        try:
            if unpacker.decompress(pending, 1):
                raise CorruptCheckpointError(f"record {record} is longer than it says")
        except zlib.error as e:
            raise CorruptCheckpointError(f"record {record}: {e}") from e
        return crc

    def _check_ratio(self, record: Record) -> None:
        """Refuse what is compressed too well, before it is given memory."""
        if record.method == 0:
            return
        self.inflated += record.size
        if self.inflated > FREE_BYTES and self.inflated > MAX_RATIO * self.length:
            raise CorruptCheckpointError(
                f"record {record}: {record.packed} compressed bytes claim to be "
                f"{record.size}; a file may not grow more than {MAX_RATIO} times"
            )

    def read(self, name: str, limit: int) -> bytearray:
        """Return a small record of at most `limit` bytes."""
        record = self.find(name)
        if record.size > limit:
            raise CorruptCheckpointError(
                f"record {name!r} has {record.size} bytes, must have at most {limit}"
            )
        self._check_ratio(record)
        data = bytearray(record.size)
        self.read_into(record, memoryview(data))
        return data


def _descriptor(stream: Any) -> int | None:
    """Return the descriptor of a plain file, whose bytes can be read without the stream."""
    raw = stream.raw if type(stream) is io.BufferedReader else stream
    if type(raw) is io.FileIO and hasattr(os, "pread"):  # else reading moves the stream
        return raw.fileno()
    return None


def _wide(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Replace the numbers that did not fit in 32 bits by those of the Zip64 field."""
    numbers = [size, packed, offset]
    if FULL32 not in numbers:
        return size, packed, offset
    at = 0
    while at + 4 <= len(extra):
        kind, n = struct.unpack("<HH", extra[at : at + 4])
        field = extra[at + 4 : at + 4 + n]
        at += 4 + n
        if kind != 1:
            continue
        for i, value in enumerate(numbers):
            if value == FULL32:
                if len(field) < 8:
                    raise CorruptCheckpointError("a Zip64 field is cut")
                numbers[i] = struct.unpack("<Q", field[:8])[0]
                field = field[8:]
        return numbers[0], numbers[1], numbers[2]
    raise CorruptCheckpointError("a Zip64 field is missing")
