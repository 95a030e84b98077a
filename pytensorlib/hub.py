"""Models and weights from the network or from a directory."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import pytensorlib as pt

from ._system import progress as _progress

tqdm = _progress.tqdm

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # resnet18-5c106cde.pth
CHUNK = 1 << 17
_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Return the directory of what was downloaded.

    Returns
    -------
    str
        What `set_dir` set, else ``$TORCH_HOME/hub``, ``$XDG_CACHE_HOME/torch/hub`` or
        ``~/.cache/torch/hub``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.hub.get_dir().endswith("hub")
    True
    """
    return _dir if _dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Choose the directory of what is downloaded.

    Parameters
    ----------
    d : path
        Made when something is written.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> old = torch.hub.get_dir()
    >>> torch.hub.set_dir("/tmp/models/hub")
    >>> torch.hub.get_dir()
    '/tmp/models/hub'
    >>> torch.hub.set_dir(old)
    """
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(
    url: str, dst: str | os.PathLike, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Write what an address holds to a file, which appears when it is complete and right.

    Parameters
    ----------
    url : str
        ``https://...`` or ``file://...``.
    dst : path
        Replaced where it is there.
    hash_prefix : str, optional
        The first digits of the SHA-256 that it must have.
    progress : bool, default True
        Show how much has come, on the standard error of a terminal.

    Raises
    ------
    RuntimeError
        The hash is another one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pytensorlib as torch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a").write_bytes(b"abc")
    >>> torch.hub.download_url_to_file((folder / "a").as_uri(), folder / "b", "ba7816bf")
    >>> (folder / "b").read_bytes()
    b'abc'
    """
    dst = os.path.expanduser(dst)
    sha256, shown = hashlib.sha256(), progress and sys.stderr.isatty()
    request = Request(url, headers={"User-Agent": "torch.hub"})
    handle, partial = tempfile.mkstemp(prefix=f"{Path(dst).name}.", dir=os.path.dirname(dst) or ".")
    try:
        with os.fdopen(handle, "wb") as file, urlopen(request) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
            done = 0
            while block := answer.read(CHUNK):
                file.write(block)
                sha256.update(block)
                done += len(block)
                if shown:
                    share = f"{100 * done // size} %" if size else f"{done >> 20} MB"
                    print(f"\r{Path(dst).name}: {share}", end="", file=sys.stderr)
        if shown:
            print(file=sys.stderr)
        found = sha256.hexdigest()
        if hash_prefix is not None and found[: len(hash_prefix)] != hash_prefix:
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
        os.replace(partial, dst)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | os.PathLike | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """Load a checkpoint from an address, which is asked only the first time.

    Parameters
    ----------
    url : str
        Where it is.
    model_dir : path, optional
        Where it is kept; by default ``checkpoints`` in `get_dir`.
    map_location
        As of `torch.load`.
    progress : bool, default True
        Show how much has come.
    check_hash : bool, default False
        Compare the SHA-256 with the digits in the file's name, as in ``resnet18-5c106cde.pth``.
    file_name : str, optional
        What it is kept as; by default as in the address.
    weights_only : bool, default True
        As of `torch.load`: classes are not looked up in files. (PyTorch's default is False.)

    Returns
    -------
    object
        What the file holds.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pytensorlib as torch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> torch.save({"a": torch.ones(2)}, folder / "net.pth")
    >>> url = (folder / "net.pth").as_uri()
    >>> torch.hub.load_state_dict_from_url(url, folder / "kept")
    {'a': tensor([1., 1.])}
    """
    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    kept = os.path.join(model_dir, name)
    if not os.path.exists(kept):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, kept, found.group(1) if found else None, progress)
    if zipfile.is_zipfile(kept):
        with zipfile.ZipFile(kept) as archive:
            inside = [member for member in archive.infolist() if not member.is_dir()]
            # An old release's archive with a checkpoint in it, not a checkpoint that is one.
            if len(inside) == 1 and "/" not in inside[0].filename:
                kept = archive.extract(inside[0], model_dir)
    return pt.load(kept, map_location=map_location, weights_only=weights_only)


def _repository(
    where: str | os.PathLike, source: str, force_reload: bool, trust_repo: Any, verbose: bool
) -> str:
    """Return the directory of a repository, downloading one of GitHub's."""
    if source == "local":
        return os.fspath(where)
    if source != "github":
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    found = re.fullmatch(r"([\w.-]+)/([\w.-]+?)(?::(.+))?", os.fspath(where))
    if found is None:
        raise ValueError(
            f"torch.hub: a repository is 'owner/name' or 'owner/name:ref', got {where!r}"
        )
    owner, name, ref = found.groups()
    _ask(f"{owner}/{name}", trust_repo)
    for branch in [ref] if ref else ["main", "master"]:
        place = os.path.join(get_dir(), f"{owner}_{name}_{branch.replace('/', '_')}")
        if os.path.isdir(place) and not force_reload:
            return place
        os.makedirs(get_dir(), exist_ok=True)
        packed = place + ".zip"
        url = f"https://github.com/{owner}/{name}/zipball/{branch}"
        try:
            download_url_to_file(url, packed, progress=verbose)
        except HTTPError as error:
            if error.code == 404 and branch != (ref or "master"):
                continue
            raise
        _unpack(packed, place)
        return place
    raise ValueError(f"torch.hub: {where!r} was not found")


def _unpack(packed: str, place: str) -> None:
    """Put the one directory in an archive at a place, in one step."""
    import shutil

    with tempfile.TemporaryDirectory(dir=os.path.dirname(place)) as folder:
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)
        os.remove(packed)
        (inner,) = os.listdir(folder)
        shutil.rmtree(place, ignore_errors=True)
        os.rename(os.path.join(folder, inner), place)


def _ask(repository: str, trust_repo: Any) -> None:
    """Go on only with a repository whose code may run."""
    trusted = Path(get_dir()) / "trusted_list"
    known = trusted.read_text().split() if trusted.exists() else []
    key = repository.replace("/", "_")
    if trust_repo is True or key in known:
        answer = "y"
    elif trust_repo is False or trust_repo is None:
        raise RuntimeError(
            f"torch.hub: loading {repository} runs its code. If you trust it, pass trust_repo=True "
            "(or 'check' to be asked)."
        )
    else:
        answer = input(f"Loading {repository} runs its code. Do you trust it (y/N)? ")
    if answer.strip().lower() not in ("y", "yes"):
        raise RuntimeError(f"torch.hub: {repository} is not trusted")
    if key not in known:
        trusted.parent.mkdir(parents=True, exist_ok=True)
        trusted.write_text("\n".join([*known, key]) + "\n")


def _entries(place: str) -> ModuleType:
    """Import the file ``hubconf.py`` of a directory, which may import its neighbours."""
    path = os.path.join(place, "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    if spec is None or spec.loader is None or not os.path.exists(path):
        raise FileNotFoundError(f"torch.hub: {place} has no hubconf.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, place)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(place)
    missing = [
        p for p in getattr(module, "dependencies", []) if importlib.util.find_spec(p) is None
    ]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module: ModuleType, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(  # noqa: A001
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
    *,
    source: str = "github",
) -> Any:
    """Return the names of the models that a repository offers in its ``hubconf.py``.

    Parameters
    ----------
    github : str
        ``"owner/name"`` or ``"owner/name:ref"``; for ``source="local"`` a directory.
    force_reload : bool, default False
        Download again.
    skip_validation : bool, default False
        Not used.
    trust_repo : bool or "check"
        Whether its code may run; "check" asks once.
    verbose : bool, default True
        Show how much has come.
    source : {"github", "local"}
        Where `github` is.

    Returns
    -------
    list of str
        Functions whose names do not begin with an underscore.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pytensorlib as torch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "hubconf.py").write_text("def three(): return 3")
    >>> torch.hub.list(str(folder), source="local")
    ['three']
    """
    module = _entries(_repository(github, source, force_reload, trust_repo, verbose))
    return [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]


def help(
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    *,
    source: str = "github",
) -> str | None:
    """Return the documentation of a model that a repository offers.

    Parameters
    ----------
    github : str
        ``"owner/name"`` or ``"owner/name:ref"``; for ``source="local"`` a directory.
    model : str
        A name as of `list`.
    force_reload : bool, default False
        Download again.
    skip_validation : bool, default False
        Not used.
    trust_repo : bool or "check"
        Whether its code may run; "check" asks once.
    source : {"github", "local"}
        Where `github` is.

    Returns
    -------
    str or None
        The docstring of the function.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pytensorlib as torch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "hubconf.py").write_text("def three(): 'Return 3.'")
    >>> torch.hub.help(str(folder), "three", source="local")
    'Return 3.'
    """
    module = _entries(_repository(github, source, force_reload, trust_repo, True))
    return _entry(module, model).__doc__


def load(
    repo_or_dir: str | os.PathLike,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a function of the ``hubconf.py`` of a repository or directory.

    Parameters
    ----------
    repo_or_dir : str
        ``"owner/name"`` or ``"owner/name:ref"`` on GitHub; for ``source="local"`` a directory.
    model : str
        The function's name.
    *args, **kwargs
        What it is called with.
    source : {"github", "local"}
        Where `repo_or_dir` is.
    trust_repo : bool or "check"
        Whether its code may run; "check" asks once.
    force_reload : bool, default False
        Download again.
    verbose : bool, default True
        Show how much has come.
    skip_validation : bool, default False
        Not used.

    Returns
    -------
    object
        What the function returns, a model as a rule.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pytensorlib as torch
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "hubconf.py").write_text("def add(a, b=1): return a + b")
    >>> torch.hub.load(folder, "add", 2, b=3, source="local")
    5
    """
    module = _entries(_repository(repo_or_dir, source, force_reload, trust_repo, verbose))
    return _entry(module, model)(*args, **kwargs)
