"""Compile ahead: kernels compiled, or loaded from the cache, before the first record."""

import importlib
import logging
import time

from core.spec import Spec
from streamapp.settings import Settings
from streamapp.worker.task.task_config import TaskConfig

logger = logging.getLogger(__name__)

MAIN_KERNEL = "run.run"  # of core/run.py: it takes most of the time of compiling
TAKES = "a minute or two"
"""How long compiling everything takes, for messages to users who wait: 73 to 146 s on a quiet machine."""
TAKES_SOME = "half a minute"
"""How long compiling the kernels of a few Hoeffding trees takes: 17 to 31 s."""


def kernels_are_cold() -> bool:
    """Return whether no process has compiled these kernels into the cache yet: then warming takes a while."""
    from core.kernels import jit

    if jit.DISABLED:
        return False
    directory = jit.cache_directory()
    return directory is None or next(directory.rglob(f"{MAIN_KERNEL}-*.nbi"), None) is None


def warm_kernels(*specs: Spec) -> float:
    """Compile every kernel, or with specs only those that their models need; return the seconds it took.

    With specs, kernels of other learners and plug-ins are compiled, or loaded, when a plan names them for the
    first time (core/plan_words.py logs it).
    """
    began = time.perf_counter()
    from core import registry
    from core.kernels import jit
    from core.plan_words import compiled_modules

    importlib.import_module("core.model_table")
    importlib.import_module("core.learners.hoeffding.growth.revision")
    importlib.import_module("topics.producing.batch_kernel")
    importlib.import_module("topics.codecs.json.compiled.requests")
    importlib.import_module("topics.codecs.json.compiled.rows")
    importlib.import_module("topics.codecs.compiled.answers")
    importlib.import_module("topics.columns.texts")
    importlib.import_module("topics.columns.record_batches")
    importlib.import_module("topics.columns.checksum")
    importlib.import_module("topics.columns.distinct")
    importlib.import_module("topics.codecs.packed.compiled.packed")
    importlib.import_module("streamapp.worker.task.models.families")
    importlib.import_module("streamapp.worker.task.rounds.run_survey")
    importlib.import_module("streamapp.worker.task.pending.name_table")
    if specs:
        jit.warm(frozenset().union(*map(compiled_modules, specs)))
    else:
        registry.modules("streams")
        jit.warm()
    return time.perf_counter() - began


def tell_ready(settings: Settings) -> None:
    """Warm the kernels of the models that are created by their first record, and log when it is done."""
    spec = TaskConfig.from_settings(settings).default_spec()
    if kernels_are_cold():
        logger.info(
            "compiling kernels, which takes %s, once for each release; pages answer afterwards", TAKES
        )
    logger.info(
        "kernels of %s are ready after %.1f s; kernels of other plug-ins are compiled, or loaded, "
        "when the first model needs them",
        spec.learner.spelled,
        warm_kernels(spec),
    )
