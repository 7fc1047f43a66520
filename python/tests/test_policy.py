"""Replacement policies in Python."""

from __future__ import annotations

import random
from collections import OrderedDict

import flashwise
import pytest


class Lru:
    """Evicts the page that has not been accessed for the longest time."""

    def __init__(self) -> None:
        self.pages: OrderedDict[int, None] = OrderedDict()

    def admit(self, page: int, is_write: bool) -> None:
        self.pages[page] = None

    def touch(self, page: int, is_write: bool) -> None:
        self.pages.move_to_end(page)

    def victim(self) -> int:
        return self.pages.popitem(last=False)[0]


def accesses() -> list[tuple[int, bool]]:
    draw = random.Random(7)
    return [(int(draw.paretovariate(0.8)) % 400, draw.random() < 0.3) for _ in range(5000)]


def test_lru_in_python_decides_as_the_built_in_one_for_each_size() -> None:
    frames = [1, 10, 50, 1000]
    ours, theirs = (flashwise.pool(accesses(), policy, frames=frames) for policy in (Lru(), "lru"))
    for one, other in zip(ours.results, theirs.results):
        assert (one.frames, one.misses, one.evictions, one.pages_written) == (
            other.frames, other.misses, other.evictions, other.pages_written
        )
    assert ours.results[0].policy == "Lru" and ours.results[1].misses > ours.results[2].misses


def test_policies_of_both_kinds_are_compared_also_on_a_drive() -> None:
    pools = flashwise.pool(accesses(), [Lru(), "lru", "sieve"], frames=50, drive="machado-4g")
    costs = {result.policy: result.drive_cost.elapsed_ns for result in pools.results if result.drive_cost}
    assert set(costs) == {"Lru", "lru", "sieve"} and costs["Lru"] == costs["lru"]


def test_what_a_policy_raises_ends_the_simulation() -> None:
    class Failing(Lru):
        def touch(self, page: int, is_write: bool) -> None:
            raise LookupError(page)

    with pytest.raises(LookupError):
        flashwise.pool(accesses(), Failing(), frames=50)


@pytest.mark.parametrize("answer", [10**9, -1, None, "page"])
def test_a_victim_that_has_no_frame_is_refused(answer: object) -> None:
    class Wrong(Lru):
        name = "wrong"

        def victim(self) -> int:
            return answer  # type: ignore[return-value]

    with pytest.raises(flashwise.UsageError, match=r"wrong\.victim\(\) returned .*, which is no page in a frame"):
        flashwise.pool(accesses(), Wrong(), frames=50)


def test_ace_needs_to_know_more_than_one_victim() -> None:
    with pytest.raises(flashwise.UsageError, match="one victim at a time"):
        flashwise.pool(accesses(), Lru(), frames=50, ace=True)
