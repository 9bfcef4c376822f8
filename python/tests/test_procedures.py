"""Procedures, called by their names."""

from __future__ import annotations

import muesli
import pytest
from muesli._calls import encode


def test_a_call_is_a_transaction(procedures_db: muesli.Database) -> None:
    db = procedures_db
    space = db.space("s", key=muesli.STR)
    db.call("add", space, "ann", space, b"ann", 100)
    transfer = [
        muesli.Call("withdraw", space, "ann", (space, b"ann", 30), muesli.I64),
        muesli.Call("deposit", space, "bob", (space, b"bob", 30), muesli.I64),
    ]
    assert db.call_all(transfer) == [70, 30]
    with pytest.raises(muesli.RefusedError, match="refused"):
        db.call("withdraw", space, "ann", space, b"ann", 71)
    assert db.call("add", space, "ann", space, b"ann", 0, answer=muesli.I64) == 70
    db.call("put", space, "c", space, [(b"c", muesli.some(b"\1"))])
    assert db.get(space, "c") == b"\1"
    db.call("put", space, "c", space, [(b"c", None)])
    assert db.get(space, "c") is None


def test_a_call_that_cannot_be_is_refused(
    db: muesli.Database, procedures_db: muesli.Database
) -> None:
    plain = db.space("s", key=muesli.STR)
    with pytest.raises(muesli.MisuseError, match="runs no procedures"):
        db.call("add", plain, "a", plain, b"a", 1)
    db = procedures_db
    space = db.space("s", key=muesli.STR)
    with pytest.raises(muesli.MisuseError):
        db.call("none", space, "a")
    with pytest.raises(muesli.MuesliError):
        db.call("add", space, "a", "too little")
    with pytest.raises(TypeError, match="takes no object"):
        db.call("add", space, "a", object())
    with pytest.raises(muesli.MisuseError, match="use the body's own"):
        db.run(lambda tx: db.call("add", space, "a", space, b"a", 1))


def test_arguments_are_encoded_as_postcard_does() -> None:
    assert encode(-1) == b"\1"
    assert encode(muesli.unsigned(300)) == bytes([0xAC, 2])
    assert encode("ab") == encode(b"ab") == b"\2ab"
    assert encode(True) == b"\1"
    assert encode([(1, "a"), (2, "")]) == b"\2\2\1a\4\0"
    assert encode((None, muesli.some(1))) == b"\0\1\2"
    assert encode(1.0) == bytes([0, 0, 0, 0, 0, 0, 0xF0, 0x3F])
