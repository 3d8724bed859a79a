import os

import pytest

from jumok.engines.fast_work import prefer_avx512

AVX512 = "avx2 avx512f avx512cd avx512vl avx512bw avx512dq"


@pytest.mark.parametrize(
    ("flags", "given", "wanted"),
    [
        (f"{AVX512} avx512_vnni", None, "AVX512"),
        (f"{AVX512} avx512_vnni", "AVX2", "AVX2"),
        (AVX512, None, None),
        ("avx2 avx_vnni", None, None),
        ("avx2 avx512f avx512_vnni", None, None),
    ],
)
def test_avx512_is_asked_for_where_it_costs_no_clock_speed(monkeypatch, flags, given, wanted):
    monkeypatch.setattr("pathlib.Path.read_text", lambda *_, **__: f"model name : Fast\nflags\t: {flags}\n")
    if given is None:
        monkeypatch.delenv("CT2_FORCE_CPU_ISA", raising=False)
    else:
        monkeypatch.setenv("CT2_FORCE_CPU_ISA", given)
    prefer_avx512()
    assert os.environ.pop("CT2_FORCE_CPU_ISA", None) == wanted


def test_systems_that_tell_nothing_are_left_alone(monkeypatch):
    def read(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr("pathlib.Path.read_text", read)
    monkeypatch.delenv("CT2_FORCE_CPU_ISA", raising=False)
    prefer_avx512()
    assert "CT2_FORCE_CPU_ISA" not in os.environ
