"""The benchmark's book-keeping: which processor, which file, which tables, which errors."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
AVX2 = "fma popcnt f16c avx avx2 bmi1 bmi2 abm"
AVX512 = f"{AVX2} avx512f avx512dq avx512bw avx512vl"
COSTS = {"import", "peak memory of a CNN step", "wheel size", "installed size"}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a module of bench/."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module


def x86(vendor: str, numbers: tuple[int, int, int], flags: str) -> str:
    """Return the first lines of Linux's /proc/cpuinfo, twice."""
    family, model, stepping = numbers
    one = (
        f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n"
        f"model name\t: Some: Name\nstepping\t: {stepping}\nflags\t\t: fpu {flags}\n"
        "power management:\n"
    )
    return f"{one}\n{one}\n"


@pytest.mark.parametrize(
    ("text", "family"),
    [
        (x86("AuthenticAMD", (0x19, 0x01, 1), AVX2), "amd-zen3-avx2"),
        (x86("AuthenticAMD", (0x19, 0x21, 0), AVX2), "amd-zen3-avx2"),
        (x86("AuthenticAMD", (0x19, 0x11, 1), AVX512), "amd-zen4-avx512"),
        (x86("AuthenticAMD", (0x1A, 0x02, 1), f"{AVX512} hypervisor"), "amd-zen5-avx512"),
        (x86("GenuineIntel", (6, 0x55, 7), AVX512), "intel-cascadelake-avx512"),
        (x86("GenuineIntel", (6, 0x55, 4), AVX512), "intel-skylake-avx512"),
        (x86("GenuineIntel", (6, 0x8F, 8), AVX512), "intel-sapphirerapids-avx512"),
        (
            x86("GenuineIntel", (6, 0x8F, 8), f"{AVX512} amx_bf16 amx_tile"),
            "intel-sapphirerapids-amx",
        ),
        (x86("GenuineIntel", (6, 0x1A, 5), "sse4_2 popcnt"), "intel-06-1a-portable"),
        ("processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "neoverse-n1-neon"),
        ("processor : 0\nCPU implementer\t: 0x61\nCPU part\t: 0x022\n", "arm-61-022-neon"),
    ],
)
def test_family_follows_from_the_numbers_and_flags(bench: Any, text: str, family: str) -> None:
    assert bench("machine").described(text)["family"] == family


def test_result_files_hold_rows_that_there_are(bench: Any) -> None:
    """A row that was renamed would lose its figures."""
    results = bench("results")
    names = {case.id for case in bench("cases").CASES} | {f"costs: {name}" for name in COSTS}
    paths = sorted(results.FOLDER.glob("*.json"))
    assert paths
    for path in paths:
        result = json.loads(path.read_text())
        assert path.stem == result["family"]
        assert path.read_text() == results.dumps(result)
        for run in result["runs"].values():
            assert {"date", "commit", "versions", "rounds"} <= run.keys()
            assert run.get("rows", {}).keys() <= names
            for label, row in run.get("rows", {}).items():
                figures = [f for lib in results.LIBRARIES for f in row.get(lib, [])]
                assert figures and min(figures) > 0 and row["unit"] in {"ns", "MB"}, label


def test_tables_are_those_of_the_result_files(bench: Any) -> None:
    """`python bench/results.py` writes them."""
    pages = bench("results").pages()
    readme = pages[ROOT / "bench/README.md"][0]
    assert all(f"<!-- {name}:" in readme for name in ("summary", "worst", "behind"))
    linked = re.findall(r"\]\(pages/(.+?)\)", readme)
    assert {ROOT / "bench/pages" / name for name in linked} == {*ROOT.glob("bench/pages/*.md")}
    for path, (old, new) in pages.items():
        assert old == new, f"{path.relative_to(ROOT)} is stale: run python bench/results.py"


def run(ours: float) -> dict[str, Any]:
    """Return a run of two rows."""
    row = {"unit": "ns", "pytensorlib": [ours, 4.0], "torch": [8.0, 2.0], "errors": [1.25e-7, 0.0]}
    size = {"unit": "MB", "pytensorlib": [1.0], "torch": [2.0]}
    rows = {"matmul: 64x64": row, "costs: installed size": size}
    peaks = {"bytes": 1e9, "flops": 1e12}
    return {"date": "d", "commit": "c", "versions": {}, "rounds": 2, "peaks": peaks, "rows": rows}


def test_save_keeps_other_families_and_other_threads(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    results = bench("results")
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    zen, lake = ({"family": f, "name": f, "cores": 2, "caches": {}} for f in ("zen", "lake"))
    results.save(zen, 2, run(1.0))
    before = results.save(lake, 2, run(3.0)).read_text()
    results.save(zen, 1, run(2.0))
    results.save(zen, 2, run(6.0))
    assert (tmp_path / "results/lake.json").read_text() == before
    kept = json.loads((tmp_path / "results/zen.json").read_text())
    assert {n: r["rows"]["matmul: 64x64"]["pytensorlib"][0] for n, r in kept["runs"].items()} == {
        "2": 6.0,
        "1": 2.0,
    }
    # Another machine of the family: what was measured on the first one is not beside it.
    results.save(zen | {"cores": 64}, 64, run(5.0))
    assert json.loads((tmp_path / "results/zen.json").read_text())["runs"].keys() == {"64"}


def test_table_shows_best_and_median(bench: Any) -> None:
    """Least figures 3 and 2, medians 3.5 and 5; the roofline of 2 * 64^3 operations is 0.5 us."""
    results = bench("results")
    label = "matmul: 64x64"
    cells = results.cells(label, run(3.0)["rows"][label], run(3.0))
    least = max(2 * 64**3 / 1e12, 12 * 64 * 64 / 1e9) * 1e9
    assert cells[1:6] == ["3 ns", "2 ns", "", "1.50", "0.70"]
    assert cells[6:] == [f"{least / 3:.0%}", "1.2e-7", "0"]
    assert results.ratios(run(3.0)) == {label: 1.5}  # sizes do not count
    assert results.means(run(3.0)) == pytest.approx({"matmul": 1.5, "all": 1.5})


def test_libraries_take_turns_at_a_row(bench: Any) -> None:
    """Asked twice, a process answers twice; what it cannot time it names."""
    turns = bench("turns")
    with turns.Library("pytensorlib", "", 1) as library:
        times = [library.time("pointwise: flip 1M") for _ in range(2)]
        # Four megabytes in, four out: at 4 TB/s, or in a tenth of a second.
        assert all(2e3 < nanoseconds < 1e8 for nanoseconds in times)
        with pytest.raises(RuntimeError, match="pytensorlib, no row: KeyError"):
            library.time("no row")
        assert library.time("dispatch: a + b") < min(times)


def test_rows_that_are_close_are_measured_again(bench: Any) -> None:
    is_close = bench("compare").is_close
    label = "matmul: 64x64"
    assert is_close(label, {"pytensorlib": [9.0], "torch": [10.0]})
    assert not is_close(label, {"pytensorlib": [7.0], "torch": [10.0]})
    assert is_close(label, {"pytensorlib": [7.0, 9.0, 9.0], "torch": [10.0, 8.0, 8.0]})
    assert not is_close(label, {"pytensorlib": [9.0]})


def test_errors_are_those_of_float32_results(bench: Any) -> None:
    """With our library on both sides the two errors are one, and of the size of float32's."""
    torch: ModuleType = importlib.import_module("pytensorlib")
    for part in ("nn", "nn.functional"):
        importlib.import_module(f"pytensorlib.{part}")
    cases = {case.id: case for case in bench("cases").CASES}

    def errors(label: str) -> Any:
        return bench("errors").errors(cases[label], torch, torch)

    for label in (
        "matmul: 64x64",
        "matmul: linear 64x100 to 100",
        "matmul: linalg.svd 128",
        "softmax: softmax 64x10",
        "dispatch: nn.Linear(4, 4)(x)",
        "convolution: 3x3 1 to 32, 64x28x28, forward and backward",
    ):
        ours, other = errors(label)
        assert ours == other and 1e-9 < ours < 5e-6, label
    assert errors("dispatch: a + b") == [0.0, 0.0]
    assert errors("sorting: topk 5 of 4096x1000") == [0.0, 0.0]
    for label in (
        "indexing: one_hot 4096 of 1000",
        "indexing: z[j] = x 1024x1024",
        "pointwise: rand 1M",
        "pointwise: exp float64 1M",
        "optimizers: SGD tiny MLP",
    ):
        assert errors(label) is None, label


def test_cost_model_finds_the_costs_that_made_the_times(bench: Any) -> None:
    distributed = bench("distributed")
    # By hand: 6 ranks on 2 cores send for 2 halvings and 2 more, in turns of 3 to a core.
    costs, knee = (2e-6, 5e-6, 1e-10, 3e-10), 1 << 20
    model = distributed.Model(costs, knee)
    moved = 3 * (2 * 3 / 4 + 1)
    hand = 4 * 2e-6 + 4 * 3 * 5e-6 + moved * (1e-10 * knee + 3e-10 * knee)
    assert model.seconds(6, 2 * knee, cores=2) == pytest.approx(hand, rel=1e-12)
    assert model.seconds(2, 0, cores=2) == pytest.approx(2e-6, rel=1e-12)
    assert model.seconds(1024, 0, cores=1024) == pytest.approx(20e-6, rel=1e-12)
    sizes = (4096, 1 << 16, 1 << 20, 4 << 20, 25 << 20)
    times = {p: {str(n): model.seconds(p, n, cores=2) for n in sizes} for p in (2, 3, 4)}
    found = distributed.fitted(times, 2)
    assert found.knee == knee
    assert found.costs == pytest.approx(costs, rel=1e-6)


def test_figures_of_a_gpu_stand_beside_its_peaks(bench: Any) -> None:
    gpu, kept = bench("gpu"), bench("gpu_cases").cases()
    keys = [f"{case.family} | {case.name}" for case in kept]
    assert len(set(keys)) == len(keys)
    product = next(c for c in kept if (c.family, c.name) == ("matmul float32", "1024"))
    copy = next(c for c in kept if c.family == "copy")
    found = {
        "peaks": (1e12, 1e13),
        "ours": {"matmul float32 | 1024": 2 * 1024**3 / 5e12, f"copy | {copy.name}": "no memory"},
        "torch": {"matmul float32 | 1024": 2 * 1024**3 / 1e13},
    }
    # 5 of 10 TFLOP/s are half of the peak, and twice as long as PyTorch's 10.
    assert gpu.row(product, found)[3:] == ["5", "", "50%", "215 us", "2.00"]
    assert gpu.row(copy, found)[2] == "not run: no memory"
