"""An oracle is idle only when it has its partitions and has read them to their end."""

from topics.oracle.assignment import Assignment


def test_before_the_group_has_spoken_nothing_is_read():
    assert not Assignment().read


def test_an_oracle_without_partitions_has_read_all_of_them():
    assignment = Assignment()
    assignment.add([])
    assert assignment.read


def test_read_when_every_end_is_reached_and_until_something_comes():
    assignment = Assignment()
    assignment.add([0, 1])
    assignment.ended(0)
    assert not assignment.read
    assignment.ended(1)
    assert assignment.read
    assignment.came(0)
    assert not assignment.read
    assignment.ended(0)
    assert assignment.read


def test_between_losing_all_and_getting_some_nothing_is_read():
    assignment = Assignment()
    assignment.add([0, 1])
    assignment.ended(0)
    assignment.ended(1)
    assignment.drop([0, 1])
    assert not assignment.read
    assignment.add([1])
    assert not assignment.read
    assignment.ended(1)
    assert assignment.read


def test_one_of_two_goes():
    assignment = Assignment()
    assignment.add([0, 1])
    assignment.ended(0)
    assignment.drop([1])
    assert assignment.read
    assert assignment.has(0) and not assignment.has(1)
