"""A partition with a batch that makes an answer too long is found, and holds up no other."""

from __future__ import annotations

from topics.fetching.oversized import AGAIN_S, OversizedAnswers

NODE = 1


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_partition_is_found_reported_once_and_requested_seldom() -> None:
    """The batch of `b` is larger than an answer may be."""
    clock = Clock()
    oversized = OversizedAnswers[str](clock)
    places, reported = ["a", "b", "c", "d"], list[str]()
    read = dict.fromkeys(places, 0)
    asked_of_b = 0
    for turn in range(200):
        asked = oversized.chosen(NODE, places)
        assert asked, "there is always one to request"
        asked_of_b += "b" in asked
        if "b" in asked:
            found = oversized.failed(asked)
            reported += [found] if found else []
        else:
            oversized.forget(asked)
            for place in asked:
                read[place] += 1
        clock.now = turn * 0.1
    assert reported == ["b"]
    assert asked_of_b == 2, "with all, then alone; again after some time only"
    assert min(read[place] for place in "acd") >= 190
    assert 0 < oversized.seconds_to_next() <= AGAIN_S
    clock.now += AGAIN_S
    assert {"b"} in ({*oversized.chosen(NODE, places)} for _ in range(2))
    assert oversized.failed(["b"]) is None, "it is known"
    clock.now += AGAIN_S
    oversized.forget(["b"])  # an answer of it has been read
    assert oversized.chosen(NODE, places) == places
    assert oversized.seconds_to_next() == float("inf")
    assert oversized.failed(["b"]) == "b"


def test_while_there_is_nothing_else_to_request_there_is_a_time_to_wait_for() -> None:
    clock = Clock()
    oversized = OversizedAnswers[str](clock)
    assert oversized.chosen(NODE, ["b"]) == ["b"]
    assert oversized.failed(["b"]) == "b"
    assert oversized.chosen(NODE, ["b"]) == []
    clock.now = oversized.seconds_to_next()
    assert oversized.chosen(NODE, ["b"]) == ["b"]
