"""Histories of what transactions did, and what the checker says of them."""

from __future__ import annotations

import json
from pathlib import Path

import muesli
import pytest


def test_a_history_is_recorded_and_judged(tmp_path: Path) -> None:
    record = tmp_path / "history.jsonl"
    with muesli.open(record=record, loops=2, repositories=2) as db:
        space = db.space("s", key=muesli.STR, value=muesli.I64)
        for number in range(10):
            db.run(lambda tx, it: tx.put(space, "a", tx.get(space, "a", 0) + it), number)
    verdict = muesli.check(record)
    assert verdict and verdict.holds
    assert (verdict.level, verdict.committed) == ("serializable", 10)
    assert verdict.dot is None and "serializable" in verdict.text
    assert muesli.check(record, "strict-serializable")


def test_a_broken_history_is_found(tmp_path: Path) -> None:
    """Each of two transactions has not seen what the other one wrote: write skew."""
    path = tmp_path / "skew.jsonl"

    def transaction(name: str, session: int, read: str, written: str) -> str:
        operations = [["r", read, 0], ["w", written, 1]]
        return json.dumps(
            {"t": "txn", "id": name, "s": session, "b": 0, "e": 10, "st": "c", "ops": operations}
        )

    lines = [transaction("one", 1, "a", "b"), transaction("two", 2, "b", "a")]
    path.write_text("\n".join(lines))
    verdict = muesli.check(path)
    assert not verdict and verdict.dot is not None and "digraph" in verdict.dot
    assert "one" in verdict.text and "two" in verdict.text
    assert muesli.check(path, "pl2").holds


def test_what_is_no_history_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    with pytest.raises(OSError, match="none.jsonl"):
        muesli.check(path)
    path.write_text("no history\n")
    with pytest.raises(muesli.DataError):
        muesli.check(path)
    path.write_text("")
    with pytest.raises(muesli.DataError, match="shows nothing"):
        muesli.check(path)
    with pytest.raises(ValueError, match="strict-serializable"):
        muesli.check(path, "perfect")


def test_a_history_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    db = muesli.open(record=tmp_path / "none" / "history.jsonl")
    db.put(db.space("s"), b"a", b"b")
    with pytest.raises(OSError, match="history.jsonl"):
        db.close()
