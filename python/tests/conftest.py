"""What the tests have in common: databases, and a server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import muesli
import pytest


@pytest.fixture
def db() -> Iterator[muesli.Database]:
    """A database in memory."""
    with muesli.open() as db:
        yield db


@pytest.fixture(params=[1, 3], ids=["one loop", "three loops"])
def any_db(request: pytest.FixtureRequest) -> Iterator[muesli.Database]:
    """A database in memory, whose data are on one loop, or on three."""
    loops: int = request.param
    with muesli.open(loops=loops, repositories=loops) as db:
        yield db


@pytest.fixture
def procedures_db() -> Iterator[muesli.Database]:
    """A database of two loops under a protocol that runs procedures."""
    with muesli.open(protocol="granola", loops=2, repositories=2) as db:
        yield db


@pytest.fixture(scope="session")
def program() -> str:
    """The program `muesli`, which `cargo xtask python` builds."""
    return os.environ.get("MUESLI", "muesli")


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    address: str
    process: subprocess.Popen[str]


@contextmanager
def started(program: str, *options: str) -> Iterator[Server]:
    """A server with an empty database in memory, until the end of a block."""
    command = [program, "start", "--durability", "memory", "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            yield Server(line.split("listens on ")[1].split(";")[0], process)
        finally:
            process.kill()


@pytest.fixture
def running(program: str) -> Iterator[Server]:
    """Such a server."""
    with started(program) as server:
        yield server


@pytest.fixture
def server(running: Server) -> str:
    """The address of such a server."""
    return running.address
