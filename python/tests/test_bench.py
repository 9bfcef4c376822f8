"""Results of benchmarks, as rows and data frames."""

from __future__ import annotations

import json
from pathlib import Path

import muesli.bench
import pytest


def test_a_benchmark_is_run_and_read(program: str) -> None:
    arguments = ["bank", "--seconds", "0.2", "--protocol", "score,gmu"]
    rows = muesli.bench.run(*arguments, program=program)
    assert [row["protocol"] for row in rows] == ["score", "gmu"]
    assert all(row["committed"] > 0 and row["latency_us.p99"] > 0 for row in rows)
    frame = muesli.bench.frame(rows)
    assert list(frame["protocol"]) == ["score", "gmu"]


def test_results_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"a": 1, "b": {"c": 2, "d": {"e": [3]}}}))
    assert muesli.bench.read(path) == [{"a": 1, "b.c": 2, "b.d.e": [3]}]
    for text in ("3", "[1]"):
        with pytest.raises(ValueError, match="no result"):
            muesli.bench.rows(text)
