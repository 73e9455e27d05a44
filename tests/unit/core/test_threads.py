"""What models share is one object for all threads, also when they ask for it at once."""

import sys
import threading

import pytest

from core.plan import Plan
from core.schema.schema import Schema
from core.spec import Spec

THREADS = 8


@pytest.fixture
def hurried():
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(make):
    """Return what each of the threads made, all of them having begun together."""
    begin, made = threading.Barrier(THREADS), [None] * THREADS

    def run(number):
        begin.wait()
        made[number] = make()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


@pytest.mark.usefixtures("hurried")
def test_equal_schemas_are_one_whoever_makes_them():
    def grow(attempt):
        schema = Schema.infer([f"x{attempt}", "colour"], ["numeric", "nominal"])
        for step in range(5):
            schema = schema.with_class(f"class {step}").with_values([(1, f"value {step}")])
        return schema

    for attempt in range(60):
        made = at_once(lambda attempt=attempt: grow(attempt))
        assert all(schema is made[0] for schema in made)
        assert len({schema.uid for schema in made}) == 1


@pytest.mark.usefixtures("hurried")
def test_equal_specs_and_schemas_share_a_plan_whoever_asks():
    for seed in range(60):
        spec, schema = Spec.parse({"seed": seed}), Schema.infer(["x"], ["numeric"])
        made = at_once(lambda spec=spec, schema=schema: Plan.of(spec, schema))
        assert all(plan is made[0] for plan in made)
