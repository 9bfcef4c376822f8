"""How keys and values are stored."""

from __future__ import annotations

import random
from typing import Any

import muesli
import pytest


def test_keys_are_stored_as_the_library_stores_them() -> None:
    assert muesli.U64.key(258) == bytes([0, 0, 0, 0, 0, 0, 1, 2])
    assert muesli.I16.key(-1) == bytes([0x7F, 0xFF])
    assert muesli.I8.key(0) == bytes([0x80])
    assert muesli.BOOL.key(True) == b"\1"
    assert muesli.STR.key("a\0b") == b"a\0b", "text alone is stored as it is"
    pair = muesli.tuple_of(muesli.STR, muesli.U32)
    assert pair.key(("a\0b", 7)) == b"a\0\xffb\0\0" + bytes([0, 0, 0, 7])
    assert muesli.tuple_of(muesli.BYTES).key((b"\0",)) == b"\0\xff\0\0"


def test_rows_are_stored_as_the_library_stores_them() -> None:
    assert muesli.I64.row(-1) == b"\1", "zigzag, as postcard has it"
    assert muesli.I64.row(100) == bytes([200, 1])
    assert muesli.U64.row(300) == bytes([0xAC, 2])
    assert muesli.U8.row(200) == bytes([200])
    assert muesli.tuple_of(muesli.STR, muesli.BOOL).row(("ab", True)) == b"\2ab\1"
    assert muesli.U128.of_row(muesli.U128.row(2**128 - 1)) == 2**128 - 1
    assert muesli.I128.of_row(muesli.I128.row(-(2**127))) == -(2**127)


def test_tuples_as_keys_are_in_the_order_of_python(db: muesli.Database) -> None:
    codec = muesli.tuple_of(muesli.STR, muesli.I64, muesli.BYTES)
    space = db.space("s", key=codec)
    chance = random.Random(17)

    def key() -> tuple[str, int, bytes]:
        text = "".join(chance.choice("\0ab\u00e9") for _ in range(chance.randrange(4)))
        stored = bytes(chance.choice([0, 1, 255]) for _ in range(chance.randrange(4)))
        return (text, chance.choice([-(2**63), -1, 0, 1, 2**63 - 1]), stored)

    keys = {key() for _ in range(400)}

    def fill(tx: muesli.Transaction) -> None:
        for key in keys:
            tx.put(space, key, b"")

    db.run(fill)
    with db.snapshot() as tx:
        assert [key for key, _ in tx.scan(space)] == sorted(keys)


@pytest.mark.parametrize(
    ("codec", "value"),
    [
        (muesli.BYTES, b"\0\xff"),
        (muesli.STR, "\u00e4\0"),
        (muesli.JSON, {"a": [1, 2.5, None, "\u00e4"]}),
        (muesli.MSGPACK, {"a": [1, b"\0", None]}),
        (muesli.MSGPACK, {1: "a", 2: {3: "b"}}),
        (muesli.BOOL, False),
        (muesli.I128, -(2**100)),
        (muesli.tuple_of(muesli.STR, muesli.I8), ("a", -3)),
        (muesli.Codec("hexadecimal", lambda value: bytes.fromhex(value), bytes.hex), "00ff"),
    ],
)
def test_values_come_back(db: muesli.Database, codec: muesli.Codec[Any], value: Any) -> None:
    space = db.space("s", key=codec, value=codec)
    db.put(space, value, value)
    assert db.get(space, value) == value
    with db.snapshot() as tx:
        assert list(tx.scan(space)) == [(value, value)]


def test_text_and_bytes_have_prefixes(db: muesli.Database) -> None:
    space = db.space("s", key=muesli.STR, value=muesli.BOOL)
    for key in ["user:ann", "user:bob", "users", "order:1"]:
        db.put(space, key, True)
    with db.snapshot() as tx:
        found = [key for key, _ in tx.scan(space, prefix="user:")]
    assert found == ["user:ann", "user:bob"]
    numbers = db.space("s", key=muesli.U64)
    with db.snapshot() as tx, pytest.raises(muesli.MisuseError, match="have no prefixes"):
        tx.scan(numbers, prefix=1)


@pytest.mark.parametrize(
    ("codec", "value", "error"),
    [
        (muesli.BYTES, "a", TypeError),
        (muesli.STR, b"a", TypeError),
        (muesli.STR, "\ud800", UnicodeError),
        (muesli.U8, 256, OverflowError),
        (muesli.U8, -1, OverflowError),
        (muesli.I128, 2**127, OverflowError),
        (muesli.U8, "1", TypeError),
        (muesli.U8, 1.5, TypeError),
        (muesli.BOOL, 1, TypeError),
        (muesli.JSON, {1, 2}, TypeError),
        (muesli.tuple_of(muesli.STR, muesli.U8), ("a",), ValueError),
        (muesli.tuple_of(muesli.STR, muesli.U8), ("a", "b"), TypeError),
        (muesli.tuple_of(muesli.STR, muesli.U8), ["a", 1], TypeError),
        (muesli.Codec("none", lambda value: None, bytes), 1, TypeError),  # type: ignore
    ],
)
def test_what_is_no_such_value_is_refused(
    db: muesli.Database, codec: muesli.Codec[Any], value: Any, error: type[Exception]
) -> None:
    space = db.space("s", key=codec, value=codec)
    with pytest.raises(error):
        db.put(space, value, value)
    with pytest.raises(error):
        db.get(space, value)


def test_what_was_stored_otherwise_is_an_error_of_data(db: muesli.Database) -> None:
    db.put(db.space("s"), b"\xff", b"\xff\xff")
    codecs: list[muesli.Codec[Any]] = [muesli.STR, muesli.BOOL, muesli.U64]
    codecs += [muesli.JSON, muesli.tuple_of(muesli.STR), muesli.MSGPACK]
    for codec in codecs:
        with pytest.raises(muesli.DataError) as raised:
            db.get(db.space("s", value=codec), b"\xff")
        assert not raised.value.retryable
        if codec is muesli.MSGPACK:
            continue  # The key alone is a number.
        with db.snapshot() as tx, pytest.raises(muesli.DataError):
            list(tx.scan(db.space("s", key=codec)))


def test_codecs_are_made_of_codecs_and_functions() -> None:
    with pytest.raises(TypeError, match="two functions"):
        muesli.Codec("a", 1, 2)  # type: ignore
    with pytest.raises(TypeError, match="cannot be a part"):
        muesli.tuple_of(muesli.JSON)
    with pytest.raises(TypeError, match="are codecs"):
        muesli.tuple_of(str)  # type: ignore
    with pytest.raises(ValueError, match="at least one"):
        muesli.tuple_of()
    with pytest.raises(ValueError, match="no codec is called"):
        muesli.Codec.named("u7")
