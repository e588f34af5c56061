from __future__ import annotations

import asyncio
import random
import threading

import pytest
from tests.service.conftest import Capitals

from sequst.corpus.sentence import Sentence
from sequst.service.batching import Batcher, Busy
from sequst.service.metrics import Metrics


def words(*lengths: int, first: str = "a") -> list[Sentence]:
    return [Sentence((first,) * length, None, number) for number, length in enumerate(lengths, 1)]


def batcher(capitals: Capitals, lanes: int = 1, words: int = 10, wait: float = 0.0, most: int = 100) -> Batcher:
    return Batcher(lambda: capitals.served(lanes), words, wait, most, Metrics())


class Gate:
    """Holds batches until it is opened; counts those that have come."""

    def __init__(self) -> None:
        self.opened, self.came = threading.Event(), threading.Semaphore(0)

    def __call__(self) -> None:
        self.came.release()
        assert self.opened.wait(10)

    async def until(self, count: int) -> None:
        for _ in range(count):
            assert await asyncio.to_thread(self.came.acquire, timeout=10)


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_every_request_gets_its_own_predictions_in_order(lanes: int) -> None:
    rng = random.Random(lanes)
    requests = [[Sentence((f"N{i}", f"w{j}"), None, j) for j in range(rng.randrange(9))] for i in range(60)]

    async def main() -> None:
        capitals = Capitals()
        own = batcher(capitals, lanes, words=7, wait=0.001)
        found = await asyncio.gather(*(own.predict(request) for request in requests))
        assert [[each.sentence for each in some] for some in found] == requests
        assert sum(map(len, capitals.batches)) == sum(map(len, requests))  # nothing was computed twice

    asyncio.run(main())


def test_what_waits_while_a_batch_is_computed_is_the_next_batch() -> None:
    async def main() -> None:
        gate = Gate()
        capitals = Capitals(gate)
        own = batcher(capitals, words=100)
        first = asyncio.create_task(own.predict(words(1)))
        await gate.until(1)
        others = [asyncio.create_task(own.predict(words(2))) for _ in range(5)]
        await asyncio.sleep(0)
        assert own.waiting == 5
        gate.opened.set()
        await asyncio.gather(first, *others)
        assert [len(batch) for batch in capitals.batches] == [1, 5]

    asyncio.run(main())


def test_a_large_request_lets_a_small_one_pass() -> None:
    async def main() -> None:
        gate = Gate()
        capitals = Capitals(gate)
        own = batcher(capitals, words=4)
        large = asyncio.create_task(own.predict(words(*[2] * 10, first="large")))
        await gate.until(1)
        small = asyncio.create_task(own.predict(words(1, first="small")))
        await asyncio.sleep(0)
        gate.opened.set()
        assert len(await small) == 1
        assert not large.done()
        assert len(await large) == 10
        assert [batch[0][0] for batch in capitals.batches][:3] == ["large", "large", "small"]  # then the rest of the large one
        assert all(sum(map(len, batch[:-1])) < 4 for batch in capitals.batches)  # and a sentence more

    asyncio.run(main())


def test_free_lanes_share_what_waits() -> None:
    async def main() -> None:
        gate = Gate()
        capitals = Capitals(gate)
        own = batcher(capitals, lanes=2, words=100)
        first = asyncio.create_task(own.predict(words(1)))  # has both lanes, for nobody else is there
        await gate.until(1)
        others = [asyncio.create_task(own.predict(words(3))) for _ in range(4)]
        await asyncio.sleep(0)
        gate.opened.set()
        await asyncio.gather(first, *others)
        assert sorted(len(batch) for batch in capitals.batches) == [1, 2, 2]

    asyncio.run(main())


def test_a_full_queue_refuses() -> None:
    async def main() -> None:
        gate = Gate()
        own = batcher(Capitals(gate), most=2)
        tasks = [asyncio.create_task(own.predict(words(1)))]
        await gate.until(1)
        tasks += [asyncio.create_task(own.predict(words(1))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await own.predict(words(1))
        gate.opened.set()
        assert [len(each) for each in await asyncio.gather(*tasks)] == [1, 1, 1]
        assert len(await own.predict(words(1))) == 1  # and takes requests again

    asyncio.run(main())


def test_who_goes_away_is_not_computed() -> None:
    async def main() -> None:
        gate = Gate()
        capitals = Capitals(gate)
        own = batcher(capitals)
        first = asyncio.create_task(own.predict(words(1)))
        await gate.until(1)
        second = asyncio.create_task(own.predict(words(1, first="gone")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        assert own.waiting == 0
        gate.opened.set()
        await first
        assert [len(each) for each in await asyncio.gather(own.predict(words(1)))] == [1]
        assert ("gone",) not in [sentence for batch in capitals.batches for sentence in batch]

    asyncio.run(main())


def test_a_request_that_fails_fails_alone() -> None:
    async def main() -> None:
        gate = Gate()
        own = batcher(Capitals(gate), words=100)
        first = asyncio.create_task(own.predict(words(1)))
        await gate.until(1)
        tasks = [asyncio.create_task(own.predict(words(1, first=word))) for word in ("fine", "poison", "good")]
        await asyncio.sleep(0)
        gate.opened.set()
        await first
        fine, poisoned, good = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(poisoned, ValueError)
        assert len(fine) == len(good) == 1  # type: ignore[arg-type]

    asyncio.run(main())


def test_uncertainty_is_computed_for_one_request_at_a_time_and_whole() -> None:
    async def main() -> None:
        gate = Gate()
        capitals = Capitals(gate)
        own = batcher(capitals, words=3)
        first = asyncio.create_task(own.predict(words(1)))
        await gate.until(1)
        uncertain = [asyncio.create_task(own.predict(words(2, 2, 2), uncertainty=True)) for _ in range(2)]
        plain = [asyncio.create_task(own.predict(words(1))) for _ in range(2)]
        await asyncio.sleep(0)
        gate.opened.set()
        await asyncio.gather(first, *uncertain, *plain)
        assert [len(batch) for batch in capitals.batches] == [1, 3, 3, 2]  # who came first is first

    asyncio.run(main())


@pytest.mark.parametrize("lanes", [2, 3])
def test_a_lane_is_left_to_those_without_uncertainty(lanes: int) -> None:
    async def main() -> None:
        gate = Gate()
        capitals = Capitals(gate)
        own = batcher(capitals, lanes)
        uncertain = [asyncio.create_task(own.predict(words(2, 2), uncertainty=True)) for _ in range(5)]
        await gate.until(lanes - 1)
        assert own.waiting == 5 - (lanes - 1)
        plain = asyncio.create_task(own.predict(words(1)))
        await gate.until(1)  # it is computed while they are
        assert own.waiting == 5 - (lanes - 1)
        gate.opened.set()
        assert [len(each) for each in await asyncio.gather(*uncertain, plain)] == [2] * 5 + [1]

    asyncio.run(main())


def test_requests_of_two_models_are_not_mixed() -> None:
    async def main() -> None:
        gate = Gate()
        old, new = Capitals(gate), Capitals()
        models = iter([old.served(), new.served()])
        own = Batcher(lambda: next(models), 4, 0.0, 100, Metrics())
        large = asyncio.create_task(own.predict(words(2, 2, 2, 2)))
        await gate.until(1)
        waiting = asyncio.create_task(own.predict(words(1)))
        gate.opened.set()
        await own.reload()
        later = asyncio.create_task(own.predict(words(1)))
        assert [len(each) for each in await asyncio.gather(large, waiting, later)] == [4, 1, 1]
        assert sum(map(len, old.batches)) == 5
        assert sum(map(len, new.batches)) == 1

    asyncio.run(main())


def test_company_is_waited_for_where_there_was_some() -> None:
    async def main() -> None:
        capitals = Capitals()
        own = batcher(capitals, words=100, wait=0.2)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await own.predict(words(1))
        assert loop.time() - begun < 0.1  # a lone request waits for nobody
        own._expected = 3
        await asyncio.gather(*(own.predict(words(1)) for _ in range(3)))
        assert [len(batch) for batch in capitals.batches] == [1, 3]
        await own.predict(words(1))  # those of last time do not come back: it waits once
        begun = loop.time()
        await own.predict(words(1))
        assert loop.time() - begun < 0.1

    asyncio.run(main())
