"""Start a script on several processes: ``python -m pytensorlib.distributed.run``.

``--nproc-per-node 2 script.py`` runs it twice on this machine, with ``RANK``, ``LOCAL_RANK``,
``WORLD_SIZE`` and the others set as PyTorch's launcher sets them and `import torch` meaning
pytensorlib. MPI's ``mpiexec`` starts the processes. When one fails the others are ended, and the
traceback of the first is printed. Started by ``srun`` or ``mpiexec`` itself, it runs the script as
one of their ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import _mpi, _worker
from ._board import FOLDER, is_alive, read_line

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "run"]

FINISHED = ("done", "ended")  # the script, or its part in the group
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # which Windows does not tell apart
GRACE = 3.0  # seconds that ranks have to end after one failed, before they are killed
NEAR = 0.5  # seconds within which the ends of ranks may be seen in another order


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments: PyTorch's, and ``--hosts``.

    Returns
    -------
    argparse.ArgumentParser
        What PyTorch's launcher has for rendezvous and logs is read and not used.

    Examples
    --------
    >>> from pytensorlib.distributed.run import get_args_parser
    >>> get_args_parser().parse_args(["--nproc-per-node=2", "train.py"]).training_script
    'train.py'
    """
    parser = argparse.ArgumentParser(
        prog="python -m pytensorlib.distributed.run", description="Start ranks of a script."
    )

    def add(name: str, **options: Any) -> None:
        names = [f"--{name}"] + ([f"--{name.replace('-', '_')}"] if "-" in name else [])
        parser.add_argument(*names, **options)

    add("nproc-per-node", default="1", help="ranks on each machine; cpu, gpu or auto")
    add("nnodes", default="1", help="machines")
    add("hosts", default="", help="their names, with commas between; needed for more than one")
    add("max-restarts", type=int, default=0, help="how often to start all again after a failure")
    add("mpiexec", default="", help="MPI's launcher; found by default")
    add("master-addr", default="")
    add("master-port", type=int, default=0)
    parser.add_argument("-m", "--module", action="store_true", help="run a module, as python -m")
    add("no-python", action="store_true", help="run another program")
    ignored = "role node-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf monitor-interval"
    ignored += " start-method log-dir local-ranks-filter logs-specs local-addr numa-binding"
    for name in ignored.split():
        add(name, default=None, help=argparse.SUPPRESS)
    add("standalone", action="store_true", help=argparse.SUPPRESS)
    for short, name in (("-r", "--redirects"), ("-t", "--tee")):
        parser.add_argument(short, name, default=None, help=argparse.SUPPRESS)
    parser.add_argument("training_script", help="the script, module or program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """Return the command's arguments.

    Parameters
    ----------
    args : list of str, optional
        Those of the process by default.

    Returns
    -------
    argparse.Namespace
        By name.

    Examples
    --------
    >>> from pytensorlib.distributed.run import parse_args
    >>> parse_args(["--nnodes", "2", "train.py", "--lr", "1"]).training_script_args
    ['--lr', '1']
    """
    return get_args_parser().parse_args(args)


def ranks_of(text: str) -> int:
    """Return how many ranks a machine has, by a number or a word."""
    if text in ("cpu", "auto"):
        return os.cpu_count() or 1
    if text == "gpu":
        import pytensorlib as pt

        return max(1, pt.wgpu.device_count())
    n = int(text)
    if n < 1:
        raise SystemExit(f"--nproc-per-node must be at least 1, got {n}")
    return n


def find_mpiexec(given: str = "") -> tuple[str, bool]:
    """Return MPI's launcher, and whether it is Open MPI's.

    Raises
    ------
    SystemExit
        There is none.
    """
    beside = Path(sys.executable).parent / "mpiexec"
    path = given or (str(beside) if beside.exists() else shutil.which("mpiexec") or "")
    if not path or not _mpi.is_there():
        raise SystemExit(f"pytensorlib.distributed.run: MPI is not installed: {_mpi.INSTALL}")
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    words = (told.stdout + told.stderr).lower()
    return path, any(name in words for name in ("open mpi", "open-mpi", "openrte", "prrte"))


def variables(args: argparse.Namespace, ranks: int) -> dict[str, str]:
    """Return what the environment of all ranks has besides this process's own."""
    port = args.master_port
    if not port:
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
    found = {
        "MASTER_ADDR": args.master_addr or args.hosts.split(",")[0] or "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": args.rdzv_id or uuid.uuid4().hex[:8],
        "TORCHELASTIC_MAX_RESTARTS": str(args.max_restarts),
        "ROLE_NAME": args.role or "default",
        "PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1"),
    }
    if "OMP_NUM_THREADS" not in os.environ and ranks > 1:
        # The cores are shared out: each rank's loops would use all of them.
        found["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // ranks))
    return found


def command(args: argparse.Namespace, ranks: int, nodes: int, names: Sequence[str]) -> list[str]:
    """Return the command that starts all ranks."""
    path, is_open = find_mpiexec(args.mpiexec)
    words = [path, "-n", str(ranks * nodes)]
    hosts = [h for h in args.hosts.split(",") if h]
    if is_open:
        words += ["--oversubscribe", "--bind-to", "none"]
        words += ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        if hosts:
            words += ["--host", ",".join(f"{h}:{ranks}" for h in hosts)]
            words += [word for name in names for word in ("-x", name)]
    elif hosts:
        words += ["-hosts", ",".join(hosts), "-ppn", str(ranks)]
    return [*words, sys.executable, "-m", "pytensorlib.distributed._worker", *program(args)]


def program(args: argparse.Namespace) -> list[str]:
    """Return what each rank is to run."""
    how = ["--no-python"] if args.no_python else ["-m"] if args.module else []
    return [*how, args.training_script, *args.training_script_args]


def left_by(path: Path) -> dict[str, Any] | None:
    """Return the error in a rank's file, or None while it is being written."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def first_error(folder: Path) -> dict[str, Any] | None:
    """Return what the rank that failed first left."""
    found = [error for path in folder.glob("*.error") if (error := left_by(path))]
    return min(found, key=lambda e: e["time"]) if found else None


def end_all(process: subprocess.Popen[Any], folder: Path) -> None:
    """End the launcher of MPI and every rank of this machine."""
    pids = [line[0] for p in folder.glob("*.now") if (line := read_line(folder, int(p.stem)))]
    for number, seconds in ((signal.SIGTERM, GRACE), (KILL, GRACE)):
        if process.poll() is None:
            process.send_signal(number)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if process.poll() is not None and not any(map(is_alive, pids)):
                return
            time.sleep(0.02)
        for pid in filter(is_alive, pids):
            os.kill(pid, number)


def die_with_parent() -> None:
    """Let Linux end the process when the one that started it is gone."""
    import ctypes

    if hasattr(signal, "SIGTERM") and sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Watch:
    """Notices which rank of this machine ends first before it has finished its script."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self.lost: list[int] = []
        self.since: float | None = None  # when the first of them was seen
        self.files: dict[int, int] = {}  # what the system tells the end of a process by: its rank
        self.seen: set[int] = set()
        self.poll = select.poll() if hasattr(os, "pidfd_open") else None

    def look(self, seconds: float) -> None:
        """Wait for that long, or until a rank ends."""
        gone = self.follow()
        if self.poll is None or not (self.files or gone):
            time.sleep(seconds)
            return
        if gone or self.poll.poll(seconds * 1e3):
            # Several may have ended since: the one that began it may not have been followed yet.
            gone += self.follow()
            for file, _ in self.poll.poll(0):
                self.poll.unregister(file)
                os.close(file)
                gone.append(self.files.pop(file))
        # Of several since the last look, one that waited for others was ended for their sake.
        for rank in sorted(gone, key=self.waited):
            self.ended(rank)

    def follow(self) -> list[int]:
        """Have the system tell when a new rank ends; returns those that have ended."""
        gone = []
        for rank in range(self.size):
            line = None if rank in self.seen else read_line(self.folder, rank)
            if line is None:
                continue
            self.seen.add(rank)
            if self.poll is None:
                continue
            try:
                file = os.pidfd_open(line[0])
            except OSError:
                gone.append(rank)
                continue
            self.files[file] = rank
            self.poll.register(file, select.POLLIN)
        return gone

    def waited(self, rank: int) -> bool:
        """Return whether a rank was in a collective."""
        line = read_line(self.folder, rank)
        return line is not None and line[1] == "in"

    def ended(self, rank: int) -> None:
        """Note a rank that ended too early."""
        line = read_line(self.folder, rank)
        if line is not None and line[1] not in FINISHED:
            now = time.monotonic()
            self.since = now if self.since is None else self.since
            self.lost.append(rank)
            # On a busy machine the end of one that waited may be seen before that of its cause.
            if now < self.since + NEAR:
                self.lost.sort(key=self.waited)


def once(words: list[str], env: dict[str, str], folder: Path, size: int) -> tuple[int, list[int]]:
    """Run all ranks to their end; returns the status, and who ended too early, in order."""
    # In a session of its own: Ctrl-C comes here alone, and ends them in order. No thread of this
    # process runs while it forks.
    process = subprocess.Popen(
        words,
        env=env,
        start_new_session=True,
        preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
    )
    failed_at: float | None = None
    watch = Watch(folder, size)
    try:
        while process.poll() is None:
            watch.look(0.02)
            if failed_at is None and first_error(folder) is not None:
                failed_at = time.monotonic()
            if failed_at is not None and time.monotonic() > failed_at + GRACE:
                break  # ranks that do not notice
    except BaseException:
        end_all(process, folder)
        raise
    end_all(process, folder)
    watch.look(0)
    status = process.returncode
    if failed_at is not None and status in (0, signal.SIGTERM, KILL):
        status = 1  # the launcher was ended from here
    return status or (1 if watch.lost else 0), watch.lost


def report(folder: Path, status: int, size: int, lost: list[int]) -> None:
    """Tell which rank failed first, and how."""
    error = first_error(folder)
    if error is not None:
        print(f"rank {error['rank']} of {size} failed first:", file=sys.stderr)
        print(error["text"], file=sys.stderr, end="")
        return
    away = [rank for rank in range(size) if read_line(folder, rank) is None]
    if away and len(away) < size:  # one of them may have been the first
        print(
            f"the job ended with status {status}, without a traceback on this machine; "
            f"not on it: {', '.join(f'rank {rank}' for rank in away)}",
            file=sys.stderr,
        )
    elif lost:
        print(f"rank {lost[0]} of {size} died first, without a traceback:", file=sys.stderr)
    else:
        print(f"the job ended with status {status}, without a traceback:", file=sys.stderr)
    for rank in lost[:1] + [r for r in range(size) if r not in lost[:1]]:
        line = read_line(folder, rank)
        if line is not None and line[1] not in FINISHED:
            print(f"  rank {rank} (process {line[0]}) {line[2]}", file=sys.stderr)


def run_until_done(args: argparse.Namespace, ranks: int, nodes: int, given: dict[str, str]) -> None:
    """Run all ranks, again where they fail and may; raises SystemExit where they still do."""
    for attempt in range(args.max_restarts + 1):
        folder = Path(tempfile.mkdtemp(prefix="pytensorlib-"))
        given |= {FOLDER: str(folder), "TORCHELASTIC_RESTART_COUNT": str(attempt)}
        try:
            words = command(args, ranks, nodes, list(given))
            status, lost = once(words, os.environ | given, folder, ranks * nodes)
            if status == 0:
                return
            report(folder, status, ranks * nodes, lost)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(status if 0 < status < 256 else 1)


def run(args: argparse.Namespace) -> None:
    """Start all ranks and wait for their end; be one where ``srun`` or ``mpiexec`` started them.

    Parameters
    ----------
    args : argparse.Namespace
        Of `parse_args`.

    Raises
    ------
    SystemExit
        A rank failed, with the status of the job.

    Examples
    --------
    >>> from pytensorlib.distributed import run
    >>> callable(run.run)
    True
    """
    ranks, nodes = ranks_of(args.nproc_per_node), int(str(args.nnodes).rpartition(":")[2])
    told = _mpi.launched_as()
    if told is not None and told[1] > 1 and (ranks, nodes, args.hosts) == (1, 1, ""):
        _worker.main(program(args))  # srun or mpiexec started this process: it is a rank
        return
    if nodes > 1 and len([h for h in args.hosts.split(",") if h]) != nodes:
        raise SystemExit(f"--nnodes {nodes} needs --hosts with as many names")
    given = variables(args, ranks)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run_until_done(args, ranks, nodes, given)
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def config_from_args(args: argparse.Namespace) -> tuple[argparse.Namespace, str, list[str]]:
    """Return what `run` needs, the program, and its arguments.

    Parameters
    ----------
    args : argparse.Namespace
        Of `parse_args`.

    Returns
    -------
    tuple
        The arguments, the program, and its own arguments.

    Examples
    --------
    >>> from pytensorlib.distributed.run import config_from_args, parse_args
    >>> config_from_args(parse_args(["a.py", "1"]))[1:]
    ('a.py', ['1'])
    """
    return args, args.training_script, args.training_script_args


def main(args: Sequence[str] | None = None) -> None:
    """Run the command.

    Parameters
    ----------
    args : list of str, optional
        Those of the process by default.

    Examples
    --------
    >>> from pytensorlib.distributed import run
    >>> callable(run.main)
    True
    """
    try:
        run(parse_args(args))
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
