"""Connections: how many there may be, what happens when the system has no room for more, and requests sent ahead."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from contextlib import asynccontextmanager

import pytest

from stromboli.live.process.loops import fastest_loop
from stromboli.server.http import accepting, connections
from stromboli.server.http.accepting import FILES, MOST_CONNECTIONS, room_for_connections
from tests.server.browser import CONFIGS
from tests.server.raw_connections import connected, served

GREETING = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
WANTED = MOST_CONNECTIONS + FILES
NONE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "allowed", "room", "then"),
    [
        (WANTED, WANTED, True, MOST_CONNECTIONS, WANTED),
        (NONE, NONE, True, MOST_CONNECTIONS, NONE),
        (1024, NONE, True, MOST_CONNECTIONS, WANTED),
        (1024, 1 << 20, True, MOST_CONNECTIONS, WANTED),
        (1024, 2000, True, 2000 - FILES, 2000),
        (1024, 1024, True, 1024 - FILES, 1024),
        (1024, 4096, False, 1024 - FILES, 1024),
        (100, 100, True, 50, 100),
        (1, 1, True, 1, 1),
    ],
)
def test_connections_are_as_many_as_open_files_leave_room_for(monkeypatch, soft, hard, allowed, room, then):
    limits = [(soft, hard)]

    def change(_, wanted):
        if not allowed:
            raise ValueError("not allowed to raise maximum limit")
        limits.append(wanted)

    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[0])
    monkeypatch.setattr(resource, "setrlimit", change)
    assert room_for_connections() == room
    assert limits[-1] == (then, hard)


@asynccontextmanager
async def _silent(found):
    """A connection that does not begin its TLS handshake."""
    with socket.create_connection(("127.0.0.1", int(found.url.rsplit(":", 1)[1])), timeout=5) as client:
        yield client


@pytest.mark.parametrize("client", [connected, _silent])
def test_there_are_only_so_many_connections_and_the_log_says_so_once(tmp_path, monkeypatch, caplog, client):
    monkeypatch.setattr(accepting, "MOST_CONNECTIONS", 2)

    async def story(found):
        async with client(found), client(found):
            await asyncio.sleep(0.1)
            for _ in range(3):
                with pytest.raises(ConnectionError):
                    await connected(found).__aenter__()
        await asyncio.sleep(0.1)
        async with connected(found) as (reader, writer):
            writer.write(GREETING)
            return await reader.readline()

    assert served(tmp_path, story) == b"HTTP/1.1 200 OK\r\n"
    assert caplog.messages == [
        "a connection was closed at once: 2 are open, no more may be (1 times since the last such line)"
    ]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, fastest_loop()])
def test_without_a_descriptor_left_it_tries_again_with_one_line_in_the_log(tmp_path, monkeypatch, caplog, loop):
    monkeypatch.setattr(accepting, "SHORTEST_PAUSE", 0.01)
    monkeypatch.setattr(accepting, "LONGEST_PAUSE", 0.02)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def story(found):
        client = socket.socket()
        client.setblocking(False)
        free = os.dup(client.fileno())
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
        try:
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", int(found.url.rsplit(":", 1)[1])))
            await asyncio.sleep(0.3)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        client.close()
        async with connected(found) as (reader, writer):
            writer.write(GREETING)
            return await reader.readline()

    with asyncio.Runner(loop_factory=loop) as runner:
        assert served(tmp_path, story, runner.run) == b"HTTP/1.1 200 OK\r\n"
    (line,) = caplog.messages
    assert line.startswith("no connection can be accepted: [Errno 24] Too many open files")


def test_a_request_sent_ahead_has_its_own_time_for_its_body(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "_REST_WITHIN", 0.2)

    async def story(found):
        async with connected(found) as (reader, writer):
            bearer = b"Authorization: Bearer %s\r\n" % found.access.token.encode()
            watch = b"GET %s?watch=true&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n%s\r\n" % (CONFIGS.encode(), bearer)
            post = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n%s\r\n{" % (CONFIGS.encode(), bearer)
            writer.write(watch + post)
            await reader.readuntil(b"\r\n0\r\n\r\n")
            await asyncio.sleep(0.6)
            writer.write(b"}")
            return await reader.readline()

    assert b" 422 " in served(tmp_path, story)


def test_no_refusal_of_a_head_is_written_into_an_earlier_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "LARGEST_HEAD", 4096)

    async def story(found):
        async with connected(found) as (reader, writer):
            bearer = b"Authorization: Bearer %s\r\n" % found.access.token.encode()
            watch = b"GET %s?watch=true&timeoutSeconds=9 HTTP/1.1\r\nHost: x\r\n%s\r\n" % (CONFIGS.encode(), bearer)
            writer.write(watch)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(GREETING + b"GET /version HTTP/1.1\r\nHost: x\r\nX: " + b"v" * 5000 + b"\r\n\r\n")
            return await reader.read()

    assert b"HTTP/1.1" not in served(tmp_path, story)
