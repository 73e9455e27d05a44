import os
import random
import subprocess
import sys

import numpy as np
import pytest
from aiokafka.record.util import calc_crc32c
from llvmlite import binding as llvm
from llvmlite import ir

from core.kernels import jit
from core.kernels.jit import kernel
from topics.columns.checksum import (
    PART,
    TABLES,
    arm_step,
    crc32c,
    instruction,
    step,
    step_by_tables,
    x86_step,
)


def checksum(data: bytes, start: int = 0) -> int:
    return int(crc32c(np.frombuffer(data, dtype=np.uint8), start, len(data), TABLES))


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_it_is_that_of_rfc_3720(data: bytes, crc: int) -> None:
    assert checksum(data) == crc


def test_it_is_aiokafkas_whatever_the_length_and_the_start() -> None:
    rng = random.Random(1)
    edges = [k * 3 * PART + d for k in (1, 2, 5) for d in (-9, -8, -1, 0, 1, 7, 8, 9)]
    for size in (
        *range(40),
        *edges,
        *(rng.randrange(20 * PART) for _ in range(50 if jit.DISABLED else 1000)),
    ):
        data, start = rng.randbytes(size), rng.randrange(min(size + 1, 20))
        assert checksum(data, start) == calc_crc32c(data[start:]), size


@kernel("uint64(uint32[::1], uint64, uint64)")
def stepped(tables, crc, eight):
    return step(tables, crc, eight)


@kernel("uint64(uint32[::1], uint64, uint64)")
def stepped_by_tables(tables, crc, eight):
    return step_by_tables(tables, crc, eight)


def test_the_instruction_does_what_the_tables_do() -> None:
    rng = random.Random(2)
    for _ in range(1000):
        given = np.uint64(rng.getrandbits(32)), np.uint64(rng.getrandbits(64))
        assert stepped(TABLES, *given) == stepped_by_tables(TABLES, *given)


def test_the_instruction_is_taken_where_the_processor_has_it_and_nowhere_else() -> None:
    assert instruction("x86_64", "znver4", "+sse4.2,+crc32,-avx") is x86_step
    assert instruction("x86_64", "x86-64-v3", "") is x86_step
    assert instruction("x86_64", "x86-64-v3", "-crc32") is None
    assert instruction("x86_64", "generic", "") is None
    assert instruction("x86_64", "nocona", "+sse3,-crc32") is None
    assert instruction("aarch64", "neoverse-n1", "+neon,+crc") is arm_step
    assert instruction("aarch64", "generic", "") is None
    assert instruction("riscv64", "generic", "+crc32") is None


PROGRAM = """
import numpy as np
from topics.columns.checksum import INSTRUCTION, TABLES, crc32c
print(INSTRUCTION is not None, crc32c(np.arange(5000).astype(np.uint8), 3, 4999, TABLES))
"""


@pytest.mark.skipif(jit.DISABLED, reason="nothing is compiled")
@pytest.mark.parametrize("cpu", ["generic", "x86-64-v3"])
def test_compiled_for_another_processor_it_is_the_same(cpu: str) -> None:
    """As in the image, which names a processor: LLVM would not get by with an instruction that it has not."""
    is_x86 = jit.llvm.get_process_triple().startswith("x86_64")
    if cpu != "generic" and not (is_x86 and jit.llvm.get_host_cpu_features().get("avx2")):
        pytest.skip("another processor")
    environment = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    expected = calc_crc32c(np.arange(5000).astype(np.uint8).tobytes()[3:4999])
    assert done.stdout.split() == [str(cpu != "generic"), str(expected)]


def test_the_instruction_of_arm_is_one_that_llvm_knows() -> None:
    """It cannot be run here; what it does to a checksum the standard says."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = ir.Module()
    wide = ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(wide, [wide, wide]), "step")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(arm_step(module, builder, *function.args))
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(features="+crc")
    assert "crc32cx" in machine.emit_assembly(llvm.parse_assembly(str(module)))
