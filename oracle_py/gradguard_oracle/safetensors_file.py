# SPDX-License-Identifier: Apache-2.0
"""Strict reading and atomic writing of safetensors files, in the dtypes that the contract knows."""

import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .float32 import BITS_TYPE, DTYPE_BYTES, widen


class FormatError(ValueError):
    """The file is not a safetensors file that this oracle accepts."""


@dataclass(frozen=True)
class StoredTensor:
    """dtype: F32, F16 or BF16; shape: tuple of int; bits: flat, row-major patterns (uint32 for F32, else uint16)."""

    dtype: str
    shape: tuple
    bits: np.ndarray

    @staticmethod
    def from_float32(values, shape=None):
        values = np.ascontiguousarray(values, np.float32)
        return StoredTensor("F32", tuple(values.shape if shape is None else shape), values.reshape(-1).view(np.uint32))

    def values(self):
        """[n] float32: the stored values, widened exactly."""
        return widen(self.bits, self.dtype)


def _no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise FormatError(f"duplicate name in header: {sorted(k for k in set(keys) if keys.count(k) > 1)[0]}")
    return dict(pairs)


def _tensor(name, info, data):
    if set(info) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{name}: wrong fields {sorted(info)}")
    dtype, shape, (begin, end) = info["dtype"], info["shape"], info["data_offsets"]
    if dtype not in DTYPE_BYTES:
        raise FormatError(f"{name}: dtype {dtype} is none of {sorted(DTYPE_BYTES)}")
    count = 1
    for dimension in shape:
        if not isinstance(dimension, int) or dimension < 0:
            raise FormatError(f"{name}: bad shape {shape}")
        count *= dimension
    if not 0 <= begin <= end <= len(data):
        raise FormatError(f"{name}: offsets {begin}..{end} outside the {len(data)} data bytes")
    if end - begin != count * DTYPE_BYTES[dtype]:
        raise FormatError(f"{name}: {end - begin} bytes for shape {shape} of {dtype}")
    little_endian = np.dtype(BITS_TYPE[dtype]).newbyteorder("<")
    bits = np.frombuffer(data[begin:end], little_endian).astype(BITS_TYPE[dtype])
    return StoredTensor(dtype, tuple(shape), bits)


def read(path):
    """-> ({name: StoredTensor}, {metadata key: text}). Raises FormatError on anything irregular."""
    content = Path(path).read_bytes()
    if len(content) < 8:
        raise FormatError(f"{path}: {len(content)} bytes are too short for a header length")
    (length,) = struct.unpack("<Q", content[:8])
    if length > len(content) - 8:
        raise FormatError(f"{path}: header of {length} bytes in a file of {len(content)}")
    header = json.loads(content[8 : 8 + length].decode("utf-8"), object_pairs_hook=_no_duplicates)
    metadata = header.pop("__metadata__", {})
    if not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError(f"{path}: metadata values must be strings")
    data = content[8 + length :]
    position = 0
    for begin, end, name in sorted((*info["data_offsets"], name) for name, info in header.items()):
        if begin != position:
            raise FormatError(f"{path}: {name} starts at {begin}, the tensor before it ends at {position}")
        position = end
    if position != len(data):
        raise FormatError(f"{path}: {len(data) - position} bytes belong to no tensor")
    return {name: _tensor(name, info, data) for name, info in header.items()}, metadata


def encode(tensors, metadata):
    """The bytes of a file: names in byte order, header padded to 8 bytes, so that equal content gives equal bytes."""
    header, chunks, position = {"__metadata__": dict(sorted(metadata.items()))}, [], 0
    for name in sorted(tensors, key=lambda text: text.encode()):
        tensor = tensors[name]
        little_endian = np.dtype(BITS_TYPE[tensor.dtype]).newbyteorder("<")
        chunk = np.ascontiguousarray(tensor.bits).astype(little_endian).tobytes()
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [position, position + len(chunk)],
        }
        chunks.append(chunk)
        position += len(chunk)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(chunks)


def write_atomically(path, content):
    """Replaces path by content in one rename; leaves a file that already has these bytes alone."""
    path = Path(path)
    if path.exists() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write(path, tensors, metadata):
    write_atomically(path, encode(tensors, metadata))
