"""Little is done in one turn of the event loop, however much there is to do."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AbstractAsyncContextManager

from stromboli.kube.client import Client
from stromboli.kube.credentials import Login
from stromboli.kube.transport import Request, Response, Stream
from stromboli.kube.turns import AT_ONCE, Turnstile

MANY = 5 * AT_ONCE


class Turns:
    """Counts the event loop's turns, and what happens in each."""

    def __init__(self) -> None:
        self._turn = 0
        self.happened: dict[str, Counter[int]] = {"sent": Counter(), "dealt with": Counter()}

    async def count(self) -> None:
        while True:
            self._turn += 1
            await asyncio.sleep(0)

    def note(self, what: str) -> None:
        self.happened[what][self._turn] += 1


class AllAtOnce:
    """Answers no request before ``MANY`` have come, and then all of them."""

    def __init__(self, turns: Turns) -> None:
        self._turns, self._asked = turns, 0
        self._answered = asyncio.Event()

    async def send(self, _request: Request, _login: Login) -> Response:
        self._turns.note("sent")
        self._asked += 1
        if self._asked == MANY:
            self._answered.set()
        await self._answered.wait()
        return Response(201, {}, b"{}")

    def stream(self, request: Request, login: Login) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def test_of_many_requests_and_many_answers_few_have_their_turn_at_once() -> None:
    async def story() -> dict[str, Counter[int]]:
        turns = Turns()
        client = Client(AllAtOnce(turns))
        counting = asyncio.create_task(turns.count())

        async def bind(number: int) -> None:
            await client.bind("ns", f"p{number}", "", "n1")
            turns.note("dealt with")

        await asyncio.gather(*map(bind, range(MANY)))
        counting.cancel()
        return turns.happened

    for counted in asyncio.run(story()).values():
        assert counted.total() == MANY
        assert max(counted.values()) == AT_ONCE


def test_they_pass_in_the_order_of_coming() -> None:
    async def story() -> list[int]:
        stile, passed = Turnstile(3), []

        async def go(number: int) -> None:
            await stile.passed()
            passed.append(number)

        await asyncio.gather(*map(go, range(10)))
        return passed

    assert asyncio.run(story()) == list(range(10))


def test_a_cancelled_waiter_takes_no_room_from_the_next() -> None:
    async def story() -> int:
        stile = Turnstile(1)
        await stile.passed()
        given_up = [asyncio.create_task(stile.passed()) for _ in range(5)]
        last = asyncio.create_task(stile.passed())
        await asyncio.sleep(0)
        for task in given_up:
            task.cancel()
        left = 0
        while not last.done() and left < 10:
            left += 1
            await asyncio.sleep(0)
        return left

    assert asyncio.run(story()) <= 3


def test_a_quiet_loop_lets_a_single_caller_pass_at_once() -> None:
    async def story() -> bool:
        stile = Turnstile(1)
        for _ in range(3):
            passing = stile.passed()
            try:
                passing.send(None)
            except StopIteration:
                pass
            else:
                return False
            for _ in range(3):
                await asyncio.sleep(0)
        return True

    assert asyncio.run(story())
