from benchmarks.rig.gaps import Gap, worst

S = 1_000_000_000


def test_the_longest_silence_and_delay_of_all_partitions() -> None:
    steady = [(at * S, at * S - S // 2) for at in range(10)]
    halted = [(1 * S, 1 * S), (2 * S, 2 * S), (7 * S, 3 * S), (8 * S, 8 * S)]
    assert worst([steady, halted], 0) == Gap(2, 5.0, 4.0)
    assert worst([steady], 0) == Gap(1, 1.0, 0.5)


def test_what_was_over_before_does_not_count() -> None:
    seen = [(0, 0), (5 * S, 1 * S), (6 * S, 6 * S), (8 * S, 7 * S)]
    assert worst([seen], 5 * S) == Gap(1, 2.0, 1.0)
    assert worst([seen], 4 * S) == Gap(1, 5.0, 4.0), "it began before, and reached behind"
    assert worst([], 0) == Gap(0, None, None)
