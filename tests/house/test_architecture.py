"""The edges between modules, and what no source file may hold, checked on the text itself."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "rust/core/src"
# The crates of the engine, each of which may use those before it: Cargo holds that.
CRATES = ["base", "cpu", "gpu", "core"]
PACKAGE = ROOT / "pytensorlib"

# A module may import from its own layer and from the ones above it in this list. `gpu` is a
# runtime for plain buffers that a storage may hold; neither it nor `cpu` knows of tensors.
LAYERS = [
    {
        "dtype",
        "error",
        "float8",
        "isa",
        "machine",
        "os",
        "pickle",
        "ptr",
        "shape",
        "shared",
        "words",
    },
    {"layout", "meta", "alloc", "device", "rng", "host"},
    {"cpu", "gpu"},
    {"storage"},
    {"tensor"},
    {"schema", "op", "dispatch", "transfer", "autograd"},
    {"ops"},
    {"batch", "forward", "graph"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# A tensor carries the slot of its graph node: it stores and drops it, and asks for the mode
# under which it is made. Nothing else of `autograd` is its business.
ALLOWED = {("tensor", f"autograd::{name}") for name in ("Dual", "History", "mode")}


def rust_files(folder: str) -> list[Path]:
    return sorted((ROOT / "rust" / folder).rglob("*.rs"))


def engine_files() -> list[Path]:
    return [path for crate in CRATES for path in rust_files(crate)]


def code_of(text: str) -> str:
    """Return Rust text with comments and the insides of literals blanked, lines kept."""
    pattern = r"""//[^\n]*|/\*.*?\*/|b?r(#+)".*?"\1|b?"(?:\\.|[^"\\])*"|'(?:\\.[^']*|[^\\'\n])'"""

    def blank(m: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", m.group())

    return re.sub(pattern, blank, text, flags=re.DOTALL)


def end_of_block(code: str, start: int) -> int:
    """Return the index after the brace that closes the first one opened from `start`."""
    depth = 0
    for m in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if m.group() == "{" else -1
        if depth == 0:
            return m.end()
    return len(code)


def without_tests(code: str) -> str:
    """Drop `#[cfg(test)] mod ... { }`: tests may use the whole crate."""
    while m := re.search(r"#\[cfg\(test\)\]\s*(pub )?mod \w+ \{", code):
        code = code[: m.start()] + code[end_of_block(code, m.start()) :]
    return code


def names_at(code: str, start: int) -> Iterator[str]:
    """Yield the paths that begin at `start`: `a::b` or each member of `{a, b::{c, d}}`."""
    if code[start] != "{":
        path = re.match(r"\w+(::\w+)*", code[start:])
        if path:
            yield path.group()
        return
    body = code[start + 1 : end_of_block(code, start) - 1]
    while re.search(r"\{[^{}]*\}", body):
        body = re.sub(r"\{[^{}]*\}", "", body)
    yield from (part.strip().rstrip(":") for part in body.split(",") if part.strip())


def module_path(path: Path) -> list[str]:
    crate, _, *parts = path.relative_to(ROOT / "rust").with_suffix("").parts
    inside = parts[:-1] if parts[-1] in {"mod", "lib"} else parts
    return [crate, *inside] if crate in {"cpu", "gpu"} else inside


def imports(path: Path) -> set[str]:
    """Return every path from the crate's root that the file names."""
    code = without_tests(code_of(path.read_text()))
    found = set()
    for m in re.finditer(r"(?<![\w:])(\$?crate|(?:super::)*super)::(?=[\w{])", code):
        if m.group(1).startswith("super") and m.group(1).count("super") < len(module_path(path)):
            continue  # stays inside the same top-level module
        found |= set(names_at(code, m.end()))
    return found


def exported_by_root() -> dict[str, str]:
    """Map each name that lib.rs re-exports, and each exported macro, to its module."""
    where = {}
    for m in re.finditer(
        r"pub use (?:crate::)?(\w+)::([^;]+);", code_of((CORE / "lib.rs").read_text())
    ):
        where |= dict.fromkeys(re.findall(r"\w+", m.group(2)), m.group(1))
    for path in engine_files():
        module = (module_path(path) or ["lib"])[0]
        macros = re.findall(r"macro_rules!\s+(\w+)|pub\(crate\) use (\w+);", path.read_text())
        where |= {a or b: module for a, b in macros}
    return where


def test_core_imports_point_to_lower_layers() -> None:
    where, wrong = exported_by_root(), []
    for path in engine_files():
        module = (module_path(path) or ["lib"])[0]
        if module == "lib":
            continue
        if module not in RANK:
            wrong.append(f"{path.relative_to(ROOT)}: `{module}` has no place in LAYERS")
            continue
        for name in sorted(imports(path)):
            first = name.split("::")[0]
            target = first if first in RANK else where.get(first)
            if target is None or RANK.get(target, -1) <= RANK[module]:
                continue
            if not any(m == module and name.startswith(prefix) for m, prefix in ALLOWED):
                wrong.append(f"{path.relative_to(ROOT)}: {module} imports {name}")
    assert not wrong, "\n".join(wrong)


def paths_of(path: Path) -> Iterator[list[str]]:
    """Yield the module path of everything in the crate that the file names by one."""
    code, module = without_tests(code_of(path.read_text())), module_path(path)
    for m in re.finditer(r"(?<![\w:])(\$?crate|(?:super::)*super)::(?=[\w{])", code):
        up = m.group(1).count("super")
        root = module[:1] if module[:1] in (["cpu"], ["gpu"]) else []
        base = module[: len(module) - up] if up else root
        yield from ([*base, *name.split("::")] for name in names_at(code, m.end()))


def test_families_of_ops_import_only_those_before_them() -> None:
    declared = re.search(r"families! \{([\w\s]+)\}", (CORE / "ops/mod.rs").read_text())
    assert declared
    families = declared.group(1).split()
    assert set(families) == {p.name.removesuffix(".rs") for p in (CORE / "ops").iterdir()} - {
        "mod",
        "docs",
        "README.md",
    }
    rank = {name: i for i, name in enumerate(families)}
    wrong = {
        f"{'::'.join(module_path(path))} imports {'::'.join(name)}"
        for path in rust_files("core/src")
        if module_path(path)[:1] == ["ops"] and len(module_path(path)) > 1
        for name in paths_of(path)
        if name[0] == "ops" and rank.get(name[1], -1) > rank[module_path(path)[1]]
    }
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize(
    "folder", ["autograd", "cpu/gemm", "cpu", "graph", "ops", "ops/nn/pool", "ops/pointwise", "gpu"]
)
def test_modules_do_not_import_each_other_in_circles(folder: str) -> None:
    root = folder.split("/")
    uses: dict[str, set[str]] = {}
    for path in engine_files():
        here = module_path(path)[len(root) :] if module_path(path)[: len(root)] == root else []
        if here and "tests" not in here:
            names = [name for name in paths_of(path) if name[: len(root)] == root]
            found = {part for name in names for part in name[len(root) : len(root) + 1]}
            uses.setdefault(here[0], set()).update(found - {here[0]})
    uses = {name: to & set(uses) for name, to in uses.items()}
    while free := [name for name, to in uses.items() if not to]:
        uses = {name: to - set(free) for name, to in uses.items() if name not in free}
    assert not uses


def test_files_of_the_binding_do_not_import_each_other_in_circles() -> None:
    uses: dict[str, set[str]] = {}
    for path in rust_files("py/src"):
        here = module_path(path)[:1]
        if here:
            names = {name.split("::")[0] for name in imports(path)}
            uses.setdefault(here[0], set()).update(names - set(here))
    uses = {name: to & set(uses) for name, to in uses.items()}
    while free := [name for name, to in uses.items() if not to]:
        uses = {name: to - set(free) for name, to in uses.items() if name not in free}
    assert not uses


# Names of public operators that a file or folder of a driver may have: words that say what a loop
# does with memory or numbers, for whichever operator.
GENERIC = {
    "exp": "a function of numbers",
    "inverse": "functions of numbers: those of circles and hyperbolas",
    "log": "a function of numbers",
    "tile": "operands that run across a result are turned in tiles",
    "topk": "the largest of a row, for six operators that select",
    "transpose": "turning a matrix that lies across",
}
# What a public function of a driver of the GPU may be called.
GENERIC_CALLS = {"fill": "one value everywhere, as memory is filled"}
# Shaders that no operator owns.
DRIVERS = {
    "words",
    "transpose",
    "pointwise",
    "peak",
    "reduce",
    "arg_reduce",
    "centred",
    "present",
    "pairs",
    "scan",
    "sort_keys",
    "sort_short",
    "sort_digit",
    "select_place",
}


def test_drivers_name_no_operator() -> None:
    table = (CORE / "ops/README.md").read_text()
    public = set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE))
    assert {"softmax", "conv2d", "matmul", "sum"} <= public
    found, calls = set(), set()
    for path in [*rust_files("gpu"), *rust_files("cpu")]:
        found |= public & set(module_path(path))
        if module_path(path)[0] == "gpu":
            calls |= public & set(re.findall(r"\bpub fn (\w+)", code_of(path.read_text())))
    assert found == set(GENERIC)
    assert calls == set(GENERIC_CALLS)


def test_interface_of_an_operator_is_one_page() -> None:
    """What few operators can do is a value of `Traits`, or an object that one method hands out."""
    code = code_of((CORE / "op.rs").read_text())
    start = re.search(r"pub trait Op\b", code)
    assert start
    block = code[start.start() : end_of_block(code, start.start())]
    assert 10 <= len(re.findall(r"\bfn \w+", block)) <= 16


def test_pointwise_operators_are_declared_by_few_clauses() -> None:
    """`facts { .. }` counts as one, as does what says that an `impl Cpu` follows."""
    code = code_of((CORE / "ops/pointwise/declare.rs").read_text())
    macro = re.search(r"macro_rules! pointwise \{\s*\(\$\(.*?\)\*\) =>", code, re.DOTALL)
    assert macro
    clauses = re.findall(r"^ {8}(?:\$\()?(\w+) [^\n]*;(?:\)\?)?$", macro.group(), re.MULTILINE)
    assert {"op", "f", "df", "facts", "cpu"} <= set(clauses)
    assert len(clauses) - clauses.count("op") <= 14


def test_each_shader_belongs_to_one_file() -> None:
    owners: dict[str, list[str]] = {}
    for path in engine_files():
        for name in re.findall(r'"(?:[./]*shaders/)?(\w+)\.wgsl"', path.read_text()):
            owners.setdefault(name, []).append(module_path(path)[0])
    files = {path.stem for path in (ROOT / "shaders").glob("*.wgsl")}
    common = {name for name in files if name.startswith(("prelude", "math_"))}
    assert set(owners) - common == files - common
    assert not [name for name, modules in owners.items() if len(modules) != 1]
    assert {name for name, [module] in owners.items() if module == "gpu"} - common == DRIVERS


def test_core_knows_nothing_of_python() -> None:
    files = [*engine_files(), *(ROOT / "rust" / crate / "Cargo.toml" for crate in CRATES)]
    assert not [f for f in files if re.search(r"\bpyo3\b", code_of(f.read_text()))]


def says_within(text: str, code: str, line: int) -> bool:
    """Return whether the fn of this line does nothing unsafe, or its body or trait says why."""
    start = sum(len(x) + 1 for x in code.split("\n")[:line])
    # Semicolons stand in types of arrays too, which may nest.
    array = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"
    head = re.compile(rf"[^{{}};]*\bunsafe\s+(?:extern\s+)?fn\b(?:[^{{;\[]|{array})*([{{;])")
    if not (m := head.match(code, start)):
        return False
    if m[1] == "{":
        end = end_of_block(code, m.start(1))
        body = slice(m.end(), end)
        return "unsafe" not in code[body] or "SAFETY:" in text[body]
    trait = code[:start].rfind("trait ")
    docs = re.search(r"(?:[ \t]*(?:///|#\[)[^\n]*\n)*[^\n]*\Z", text[:trait])
    return trait >= 0 and docs is not None and "# Safety" in docs[0]


def undocumented_unsafe(text: str) -> Iterator[int]:
    """Yield the line of each unsafe block, fn or impl without a SAFETY comment.

    The comment stands on the line, or right above the statement or item (attributes, doc
    comments and the statement's own first lines between are fine); a run of unsafe lines,
    such as `Send` and `Sync`, may share one. That of a fn may be the one of its body's block,
    and that of a method the `# Safety` of its trait.
    """
    plain = code_of(text)
    lines, code = text.split("\n"), plain.split("\n")
    unsafe = re.compile(r"(?<![=:(<,>] )\bunsafe\s*(\{|$|impl\b|trait\b|(extern\s+)?fn\s+\w)")
    documented = re.compile(r"SAFETY:|# Safety")
    good: set[int] = set()
    for i, line in enumerate(code):
        if not unsafe.search(line):
            continue
        ok, j = bool(documented.search(lines[i])) or says_within(text, plain, i), i - 1
        while not ok and j >= 0:
            above, shown = code[j].strip(), lines[j].strip()
            if documented.search(shown) or j in good:
                ok = True
            ended = above.endswith((";", "}")) and not above.startswith("#")
            if not shown or ended or (above.endswith("{") and i - j > 1):
                break
            j -= 1
        if ok:
            good.add(i)
        else:
            yield i + 1


def test_every_unsafe_says_why_it_is_sound() -> None:
    missing = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in engine_files() + rust_files("py")
        for line in undocumented_unsafe(path.read_text())
    ]
    assert not missing, "no `// SAFETY:` comment at\n" + "\n".join(missing)


def test_no_reason_of_an_unsafe_block_is_left_to_the_caller() -> None:
    empty = re.compile(
        r"SAFETY: (?:the caller's[.;]|as (?:above|there)|the same|as the caller (?:says|promises))"
    )
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in engine_files() + rust_files("py")
        for match in empty.finditer(path.read_text())
    ]
    assert not found, "say what holds: " + ", ".join(found)


def test_only_pyo3_takes_and_gives_the_lock_of_the_interpreter() -> None:
    """It counts on each thread who has it; what is done behind it, its count does not know."""
    behind = re.compile(r"PyEval_(Save|Restore|Acquire|Release)Thread|PyGILState_(Ensure|Release)")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in rust_files("py")
        for match in behind.finditer(path.read_text())
    ]
    assert not found


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("unsafe { f() }", [1]),
        ("// SAFETY: fine.\nunsafe { f() }", []),
        ("// SAFETY: fine.\nlet x =\n    unsafe { f() };", []),
        ("// SAFETY: fine.\nf();\nunsafe { g() }", [3]),
        ("// SAFETY: one.\nunsafe impl Send for T {}\nunsafe impl Sync for T {}", []),
        ("/// # Safety\n/// `p` is valid.\n#[inline]\npub unsafe fn f(p: *const u8) {}", []),
        ("// SAFETY: fine.\nunsafe fn f(p: *const u8) -> u8 {\n    *p\n}", []),
        ("unsafe fn f() {\n    // SAFETY: fine.\n    unsafe { g() }\n}", []),
        ("unsafe fn f() {\n    unsafe { g() }\n}", [1, 2]),
        ('unsafe extern "C" fn f() {}', []),
        ("/// # Safety\n/// Fine.\ntrait T: Copy {\n    unsafe fn f();\n}", []),
        ("trait T {\n    unsafe fn f();\n}", [2]),
        ('type F = unsafe extern "C" fn(i32);', []),
        ('let s = "unsafe { }"; // unsafe {', []),
    ],
)
def test_undocumented_unsafe_is_found(text: str, bad: list[int]) -> None:
    assert list(undocumented_unsafe(text)) == bad


def test_no_unfinished_rust() -> None:
    unfinished = re.compile(r"\b(todo|unimplemented|dbg)!")
    files = engine_files() + rust_files("py")
    assert not [f for f in files if unfinished.search(code_of(f.read_text()))]


def test_no_constant_is_subnormal() -> None:
    # As a float32 or as a float64: processors may take a hundred cycles for each one.
    number = re.compile(r"(?<![\w.])\d[\d_]*(?:\.[\d_]*)?(?:[eE][-+]?\d+)?")
    found = []
    for path in engine_files():
        code = without_tests(code_of(path.read_text()))
        for literal in number.findall(code) if "tests" not in path.stem else ():
            v = float(literal.replace("_", "")) if "e" in literal.lower() else 1.0
            if 2**-150 < v < 2**-126 or 0 < v < 2**-1022:
                found.append(f"{path.relative_to(ROOT)}: {literal}")
    assert not found


def test_processor_is_asked_for_every_feature_that_code_is_compiled_for() -> None:
    text = "\n".join(path.read_text() for path in engine_files())
    used = {f for m in re.findall(r'enable = "([^"]+)"', text) for f in m.split(",")}
    asked = set(re.findall(r'(?:has|is_x86_feature_detected)!\("(\w+)"\)', text))
    assert {"avx2", "bmi2", "avx512f"} <= used
    assert used <= asked
    # In one place, which can be told otherwise; lists of features stand there too.
    asking = [p.name for p in engine_files() if "x86_feature_detected" in p.read_text()]
    listing = [p.name for p in engine_files() if re.search('enable = "[^"]*,', p.read_text())]
    assert set(asking) == {"isa.rs"}
    assert set(listing) <= {"isa.rs"}


def test_core_asks_which_system_it_is_on_in_one_module() -> None:
    asks = re.compile(
        r"cfg!?\([^)]*\b(unix|windows|target_os|target_vendor|target_env|target_family)\b"
    )
    found = {tuple(module_path(p)[:2]) for p in engine_files() if asks.search(p.read_text())}
    # Tests of `fork`, and how much memory a card has, which only one of wgpu's back ends tells.
    assert {m for m in found if m[0] != "os"} == {("cpu", "pool"), ("gpu", "adapter")}


def test_extension_needs_no_lock_of_the_interpreters() -> None:
    declared = re.findall(r"#\[pymodule[^\]]*\]", (ROOT / "rust/py/src/lib.rs").read_text())
    assert declared == ["#[pymodule(gil_used = false)]"]
    # What is shared has a lock of its own, or was written before there was a second thread.
    text = "\n".join(p.read_text() for p in (ROOT / "rust/py/src").rglob("*.rs"))
    assert "static mut" not in text
    assert set(re.findall(r"unsafe impl(?:<.*>)? Sync for (\w+)", text)) == {
        "Cell",
        "Owner",
        "PyTensor",
    }


def python_imports(path: Path) -> Iterator[str]:
    """Yield the absolute name of everything that a file of the package imports."""
    package = list(path.relative_to(ROOT).with_suffix("").parts)[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_nn_reaches_the_extension_only_through_functional() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in sorted((PACKAGE / "nn").rglob("*.py"))
        if "functional" not in path.with_suffix("").parts
        and path.name != "_base.py"  # what the extension does of every module
        and (
            any("._C" in name for name in python_imports(path))
            or re.search(r"\b\w+\._C\b", path.read_text())
        )
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("part", "above"), [("nn", ("optim", "utils", "transforms")), ("autograd", ("nn", "optim"))]
)
def test_python_imports_point_down(part: str, above: tuple[str, ...]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((PACKAGE / part).rglob("*.py"))
        for name in python_imports(path)
        if name.startswith(tuple(f"pytensorlib.{a}" for a in above))
    ]
    assert not wrong


def test_package_holds_no_tools_of_development() -> None:
    # What users never run stays outside: each private module serves the package or the extension.
    files = [f for f in PACKAGE.rglob("*.py") if "__pycache__" not in f.parts]
    text = {f: f.read_text() for f in (*files, *rust_files("py"))}
    # Modules that PyTorch has: libraries import them.
    theirs = (ROOT / "tests/data/library_names.txt").read_text()
    theirs += " _environment _linalg_utils _lobpcg _traceback _vmap_internals "
    unused = [
        f.name
        for f in files
        if f.name.startswith("_") and not f.stem.startswith("__")
        if not re.search(rf"\b{f.stem}\b", theirs)
        if not any(re.search(rf"\b{f.stem}\b", t) for g, t in text.items() if g != f)
    ]
    assert not unused


def test_the_package_has_few_files_at_the_top() -> None:
    """What is private stands in a room of its own; PyTorch's own names stand where it has them."""
    assert len(list(PACKAGE.glob("*.py"))) <= 36
