"""How keys and values are stored."""

from __future__ import annotations

import json
from typing import Any, TypeVar, overload

from ._native import Codec, DataError

_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")

BYTES: Codec[bytes] = Codec.named("bytes")
"""Bytes, as they are."""
STR: Codec[str] = Codec.named("str")
"""Text, in UTF-8."""
BOOL: Codec[bool] = Codec.named("bool")
"""Truth values."""
U8: Codec[int] = Codec.named("u8")
"""Numbers from 0 to 255; ``U16`` to ``U128`` and ``I8`` to ``I128`` hold larger and signed ones."""
U16: Codec[int] = Codec.named("u16")
U32: Codec[int] = Codec.named("u32")
U64: Codec[int] = Codec.named("u64")
U128: Codec[int] = Codec.named("u128")
I8: Codec[int] = Codec.named("i8")
I16: Codec[int] = Codec.named("i16")
I32: Codec[int] = Codec.named("i32")
I64: Codec[int] = Codec.named("i64")
I128: Codec[int] = Codec.named("i128")


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _decode_json(stored: bytes) -> Any:
    try:
        return json.loads(stored)
    except ValueError as error:
        raise DataError(f"stored bytes are not JSON: {error}") from error


JSON: Codec[Any] = Codec("json", _encode_json, _decode_json)
"""JSON, in UTF-8. Of a dictionary whose order differs the bytes differ: it is for values."""


def _encode_msgpack(value: Any) -> bytes:
    import msgpack

    packed: bytes = msgpack.packb(value)
    return packed


def _decode_msgpack(stored: bytes) -> Any:
    import msgpack

    try:
        return msgpack.unpackb(stored, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DataError(f"stored bytes are not MessagePack: {error}") from error


MSGPACK: Codec[Any] = Codec("msgpack", _encode_msgpack, _decode_msgpack)
"""MessagePack; the package ``msgpack`` is to be installed (``pip install muesli[msgpack]``)."""


@overload
def tuple_of(a: Codec[_A], /) -> Codec[tuple[_A]]: ...
@overload
def tuple_of(a: Codec[_A], b: Codec[_B], /) -> Codec[tuple[_A, _B]]: ...
@overload
def tuple_of(a: Codec[_A], b: Codec[_B], c: Codec[_C], /) -> Codec[tuple[_A, _B, _C]]: ...
@overload
def tuple_of(*parts: Codec[Any]) -> Codec[tuple[Any, ...]]: ...
def tuple_of(*parts: Codec[Any]) -> Codec[Any]:
    """The codec of tuples of such parts.

    As a key a tuple is stored so that tuples are in the order in which Python compares them.
    """
    return Codec.tuple_of(*parts)
