"""Models and weights from addresses and directories."""

import hashlib

import pytest

import pytensorlib as torch
from pytensorlib import hub


def test_download_checks_the_hash_and_leaves_nothing_wrong(tmp_path):
    source = tmp_path / "source.bin"
    source.write_bytes(b"weights" * 1000)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    out = tmp_path / "out"
    out.mkdir()
    hub.download_url_to_file(source.as_uri(), out / "a.bin", digest[:8], progress=False)
    assert (out / "a.bin").read_bytes() == source.read_bytes()
    with pytest.raises(RuntimeError, match='expected "0000"'):
        hub.download_url_to_file(source.as_uri(), out / "b.bin", "0000")
    assert [p.name for p in out.iterdir()] == ["a.bin"]


def test_state_dict_is_downloaded_once_and_its_hash_is_in_the_name(tmp_path):
    torch.save({"a": torch.arange(3)}, tmp_path / "net.pth")
    digest = hashlib.sha256((tmp_path / "net.pth").read_bytes()).hexdigest()
    named = tmp_path / f"net-{digest[:8]}.pth"
    (tmp_path / "net.pth").rename(named)
    old = hub.get_dir()
    hub.set_dir(tmp_path / "hub")
    try:
        for _ in range(2):
            state = hub.load_state_dict_from_url(named.as_uri(), check_hash=True)
            assert state["a"].tolist() == [0, 1, 2]
            named.unlink(missing_ok=True)  # the second time nothing is asked
        assert (tmp_path / "hub/checkpoints" / named.name).exists()
        wrong = tmp_path / "net-00000000.pth"
        torch.save({}, wrong)
        with pytest.raises(RuntimeError, match="invalid hash"):
            hub.load_state_dict_from_url(wrong.as_uri(), check_hash=True)
    finally:
        hub.set_dir(old)


def test_local_repository_offers_its_functions(tmp_path):
    (tmp_path / "neighbour_of_hubconf.py").write_text("value = 7")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['math']\n"
        "import neighbour_of_hubconf\n"
        "def seven(times=1):\n"
        "    'Return 7.'\n"
        "    return times * neighbour_of_hubconf.value\n"
        "def _hidden(): ...\n"
    )
    assert hub.list(tmp_path, source="local") == ["seven"]
    assert hub.help(tmp_path, "seven", source="local") == "Return 7."
    assert hub.load(tmp_path, "seven", times=2, source="local") == 14
    with pytest.raises(RuntimeError, match="Cannot find callable"):
        hub.load(tmp_path, "eight", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(tmp_path, "seven", source="elsewhere")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package_anywhere']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package_anywhere"):
        hub.list(tmp_path, source="local")


def test_code_from_the_network_runs_only_when_trusted(tmp_path):
    old = hub.get_dir()
    hub.set_dir(tmp_path)
    try:
        with pytest.raises(RuntimeError, match="trust_repo=True"):
            hub.load("owner/name", "model", trust_repo=False)
        with pytest.raises(ValueError, match="owner/name"):
            hub.load("no-slash", "model", trust_repo=True)
    finally:
        hub.set_dir(old)
