"""An archive as a stream of bytes: its checksum, its decoder, and reading ahead."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import importlib.util
import lzma
import os
import queue
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from etils import epath

from data_parallelism.errors import UserError

CHUNK_BYTES = 1 << 20
CHUNKS_AHEAD = 16
DECODERS: dict[bytes, Callable[[Any], Any]] = {
    b"BZh": bz2.open,
    b"\x1f\x8b": gzip.open,
    b"\xfd7zXZ\x00": lzma.open,
}
# What decoders raise for data that they cannot use; rapidgzip's is a RuntimeError.
_DAMAGED = (OSError, EOFError, RuntimeError, ValueError, lzma.LZMAError, zlib.error)


def check_sha256(path: epath.Path, expected: str) -> None:
    """Raises a one-line error unless a file has a SHA-256.

    Args:
        path: the file.
        expected: 64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    if digest.hexdigest() != expected:
        raise UserError(
            f"{path}: expected the published archive, with SHA-256 {expected}, got one with "
            f"{digest.hexdigest()}; --no_checksum takes any archive"
        )


@contextlib.contextmanager
def open_archive(path: epath.Path, num_threads: int, max_read: int) -> Iterator[ForwardReader]:
    """The bytes of an archive, decoded while it is read.

    Args:
        path: a file, compressed by bzip2, gzip or xz or not at all.
        num_threads: how many decode, where it can be done in parallel: bzip2 in a local file, if
            the package rapidgzip is there.
        max_read: bytes that one read may ask for.
    """
    with path.open("rb") as raw, _decoder(path, raw, num_threads) as file:
        # In bits; other decoders take no more of the file than they need.
        position = getattr(file, "tell_compressed", lambda: 8 * raw.tell())
        with ReadAhead(file, path, position) as ahead:
            yield ForwardReader(ahead, path, max_read)


def _decoder(path: epath.Path, raw: Any, num_threads: int) -> Any:
    head = raw.read(max(map(len, DECODERS)))
    raw.seek(0)
    magic = next((magic for magic in DECODERS if head.startswith(magic)), None)
    if magic is None:
        return contextlib.nullcontext(raw)
    if DECODERS[magic] is bz2.open and importlib.util.find_spec("rapidgzip") and _is_local(path):
        import rapidgzip

        # Not `rapidgzip.open`, which in version 0.14.3 gives wrong bytes for bzip2 and no error.
        return rapidgzip.IndexedBzip2File(os.fspath(path), parallelization=num_threads)
    return DECODERS[magic](raw)


def _is_local(path: epath.Path) -> bool:
    return os.path.exists(os.fspath(path))


class ReadAhead:
    """Chunks of a file, read by a thread while the caller works on those before.

    Args:
        file: where they are read.
        path: named in errors.
        position: how many bits of the archive have been decoded.
    """

    def __init__(self, file: Any, path: epath.Path, position: Callable[[], int]) -> None:
        self.num_decoded = 0
        self._position = position
        self._file = file
        self._path = path
        self._chunks: queue.Queue[bytes | BaseException] = queue.Queue(CHUNKS_AHEAD)
        self._is_wanted = True
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> ReadAhead:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._is_wanted = False
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._chunks.get(timeout=0.1)
        self._thread.join()

    def next_chunk(self) -> bytes:
        """The next bytes of the file, none at its end.

        Raises:
            UserError: if they cannot be decoded.
        """
        chunk = self._chunks.get()
        if isinstance(chunk, BaseException):
            self._chunks.put(chunk)  # For whoever asks again.
            raise UserError(
                f"{self._path}: cannot be read to its end, it is cut off or damaged ({chunk})"
            ) from None
        if not chunk:
            self._chunks.put(chunk)
        return chunk

    def _read(self) -> None:
        try:
            while self._is_wanted:
                chunk = self._file.read(CHUNK_BYTES)
                self.num_decoded = self._position() // 8
                self._chunks.put(chunk)
                if not chunk:
                    return
        except _DAMAGED as error:
            self._chunks.put(error)


class ForwardReader:
    """What `tarfile` asks of a file, from a stream that only goes forward.

    Args:
        ahead: where the bytes come from.
        path: named in errors.
        max_read: bytes that one read may ask for.
    """

    def __init__(self, ahead: ReadAhead, path: epath.Path, max_read: int) -> None:
        self._ahead = ahead
        self._path = path
        self._max_read = max_read
        self._chunk = memoryview(b"")
        self._position = 0
        self.last_read = b""

    @property
    def num_decoded(self) -> int:
        """About how many bytes of the archive have been decoded."""
        return self._ahead.num_decoded

    def tell(self) -> int:
        """Bytes that were read or skipped."""
        return self._position

    def seek(self, position: int) -> None:
        """Skips to a later position, or to the end."""
        while self._position < position and self._fill():
            self._take(position - self._position)

    def read(self, size: int) -> bytes:
        """The next bytes: fewer than `size` at the end.

        Raises:
            UserError: if that would be more than fits into memory at ease.
        """
        if size > self._max_read:
            raise UserError(
                f"{self._path}: expected files of at most {self._max_read:,} bytes, got one of "
                f"{size:,}"
            )
        parts = []
        while size and self._fill():
            parts.append(self._take(size))
            size -= len(parts[-1])
        self.last_read = bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
        return self.last_read

    def _fill(self) -> bool:
        """Whether there are bytes to take."""
        if not self._chunk:
            self._chunk = memoryview(self._ahead.next_chunk())
        return bool(self._chunk)

    def _take(self, size: int) -> memoryview:
        taken, self._chunk = self._chunk[:size], self._chunk[size:]
        self._position += len(taken)
        return taken
