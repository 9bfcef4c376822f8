"""Calls of procedures, and how their arguments are encoded."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ._codecs import BYTES, I64, U64
from ._native import Codec, Space


@dataclass(frozen=True)
class unsigned:
    """A whole number that a procedure takes as an unsigned one."""

    value: int


@dataclass(frozen=True)
class some:
    """A value where a procedure takes none as well, which is ``None``."""

    value: Any


@dataclass(frozen=True)
class Call:
    """A procedure that is run where a key lives, as a part of a one-round transaction."""

    name: str
    space: Space[Any, Any]
    key: Any
    arguments: Sequence[Any] = ()
    answer: Codec[Any] = field(default=BYTES)
    version: int = 1

    def parts(self) -> tuple[str, int, Space[Any, Any], bytes, bytes]:
        """What the native part takes."""
        key = self.space.key_bytes(self.key)
        arguments = b"".join(encode(argument) for argument in self.arguments)
        return (self.name, self.version, self.space, key, arguments)


def encode(argument: Any) -> bytes:
    """An argument as procedures of the library take it, which is how postcard stores it.

    A space stands for its number, a whole number for an ``i64``, a tuple for its parts, and a list
    for its length and its elements.
    """
    match argument:
        case bool():
            return bytes([argument])
        case int():
            return I64.row(argument)
        case unsigned():
            return U64.row(argument.value)
        case None:
            return b"\0"
        case some():
            return b"\1" + encode(argument.value)
        case float():
            return struct.pack("<d", argument)
        case str():
            return _with_length(argument.encode())
        case bytes():
            return _with_length(argument)
        case Space():
            return U64.row(argument.number)
        case tuple():
            return b"".join(encode(part) for part in argument)
        case list():
            return U64.row(len(argument)) + b"".join(encode(part) for part in argument)
        case _:
            raise TypeError(f"a procedure takes no {type(argument).__name__} as an argument")


def _with_length(stored: bytes) -> bytes:
    return U64.row(len(stored)) + stored
