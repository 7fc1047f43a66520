"""The calls of the package."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, Union

from . import _native
from . import device as _device
from . import trace as _trace
from ._errors import UsageError
from ._inputs import Bytes, StrPath, Time, given, profile_text, several, to_toml
from ._progress import Listener, shown
from .device import Device
from .results import Audit, Pool, Profile, Simulation, Study
from .trace import Trace

DeviceLike = Union[Device, Mapping[str, Any], StrPath]
"""A drive: a :class:`~flashwise.device.Device`, a mapping, the path of a TOML file, or the name of a preset."""
WorkloadLike = Union[Mapping[str, Any], StrPath]
"""A workload: a mapping, the path of a TOML file or of a trace, or a name such as ``"ycsb-a"``."""
Rw = Literal["read", "write", "randread", "randwrite", "rw", "randrw"]
Precondition = Literal["empty", "fill", "steady", "analytic"]


class Policy(Protocol):
    """A replacement policy in Python. Pages are numbered from 0 in the order of their first access.

    A call for each access is slow, which is enough to try an idea; ``examples/own-policy`` in the repository is the same
    in Rust, as fast as the built-in ones.

    A policy may have a ``name``; otherwise it is called by its class. Each pool works on a deep copy of the object.
    """

    def admit(self, page: int, is_write: bool, /) -> object:
        """A page that missed has got a frame."""
        ...

    def touch(self, page: int, is_write: bool, /) -> object:
        """A page in a frame is accessed."""
        ...

    def victim(self, /) -> int:
        """The page to evict: one that has a frame. It has none afterwards."""
        ...


def _workload(workload: WorkloadLike | None, fio: dict[str, Any]) -> dict[str, Any]:
    if workload is None:
        if "rw" not in fio:
            raise UsageError("give a workload, or rw: see help(flashwise.simulate)")
        return {"fio": fio}
    if fio:
        names = ", ".join(fio)
        raise UsageError(f"a workload and {names}: the latter describe a workload of their own; leave one of them out")
    if isinstance(workload, Mapping):
        return {"toml": to_toml(workload)}
    return {"named": os.fspath(workload)}


def simulate(
    device: DeviceLike,
    workload: WorkloadLike | None = None,
    *,
    rw: Rw | None = None,
    bs: Bytes | None = None,
    bssplit: str | None = None,
    size: Bytes | None = None,
    iodepth: int | None = None,
    rwmixread: int | None = None,
    random_distribution: str | None = None,
    thinktime: Time | None = None,
    rate_iops: int | None = None,
    rate_process: Literal["linear", "poisson"] | None = None,
    requests: int | None = None,
    runtime: Time | None = None,
    buffer_compress_percentage: int | None = None,
    dedupe_percentage: int | None = None,
    precondition: Precondition = "empty",
    seed: int | None = None,
    interval: Time | None = None,
    fold: bool = False,
    widen: bool = False,
    fail: Sequence[tuple[int, Time]] = (),
    progress: bool | Listener | None = None,
) -> Simulation:
    """Runs a workload on a simulated drive or array, in virtual time.

    >>> import flashwise
    >>> run = flashwise.simulate("samsung-960-evo", rw="randread", iodepth=32, requests=10_000)
    >>> run.total.requests
    10000

    Args:
        device: the drive or array.
        workload: what is requested; instead, ``rw`` and the options after it describe a workload in fio's terms.
        rw: access pattern.
        bs: bytes of a request; 4 KiB by default.
        bssplit: sizes of requests with percentages, such as ``"4k/60:64k/40"``, instead of ``bs``.
        size: bytes of the drive that are used; without ``requests`` and ``runtime``, also the bytes to transfer.
        iodepth: requests in flight; 1 by default.
        rwmixread: percentage of reads with ``rw`` and ``randrw``; 50 by default.
        random_distribution: ``"random"``, ``"zipf:THETA"``, ``"pareto:H"`` or ``"zoned:ACCESSES/SIZE:…"``.
        thinktime: pause between a completion and the next request.
        rate_iops: requests per second, submitted whether or not the drive keeps up; ``iodepth`` is ignored.
        rate_process: distribution of the times between these.
        requests: most requests of each flow.
        runtime: most time of each flow, on the drive's clock.
        buffer_compress_percentage: percentage that compression saves, on drives that compress.
        dedupe_percentage: percentage of written pages that are equal to earlier ones, on drives that deduplicate.
        precondition: content of each drive before the workload: nothing, every page written once in order, or a steady
            state of garbage collection, simulated or computed.
        seed: seed of all random choices; that of the workload by default.
        interval: length of an interval of the time series; 200 to 400 intervals by default.
        fold: of a trace, fold addresses beyond the end of the drive.
        widen: of a trace, widen requests to whole logical blocks.
        fail: members of an array that fail, and when: ``[(2, "500ms")]``. Members count from 0.
        progress: a bar, or a function that is called with the stage and its fraction; by default a bar, in a
            notebook or if tqdm is installed, once the call takes more than a second.

    Returns:
        The result. As a table it has a row for each interval of the time series.

    Raises:
        Error: if the drive or the workload cannot be read, or do not fit each other.
        KeyboardInterrupt: at Ctrl-C.
    """
    fio = given(
        {
            "rw": rw,
            "bs": bs,
            "bssplit": bssplit,
            "size": size,
            "iodepth": iodepth,
            "rwmixread": rwmixread,
            "random_distribution": random_distribution,
            "thinktime": thinktime,
            "rate_iops": rate_iops,
            "rate_process": rate_process,
        }
    )
    drive = _device.resolve(device)
    request = {
        "device": {"text": drive._text, "path": drive._path},
        "workload": _workload(workload, fio),
        "limits": {
            "seed": seed,
            "requests": requests,
            "runtime": runtime,
            "buffer_compress_percentage": buffer_compress_percentage,
            "dedupe_percentage": dedupe_percentage,
            "fold": fold,
            "widen": widen,
        },
        "precondition": precondition,
        "interval": interval,
        "fail": [list(failure) for failure in fail],
    }
    with shown(progress) as listener:
        return Simulation._from(_native.simulate(json.dumps(request), listener))


def _accesses(trace: Trace | StrPath | Iterable[int | tuple[int, bool]]) -> dict[str, Any]:
    if isinstance(trace, (Trace, str, os.PathLike)):
        return {"trace": _trace.resolve(trace)}
    pages = [(int(page), False) if not isinstance(page, tuple) else (int(page[0]), bool(page[1])) for page in trace]
    return {"pages": pages}


def pool(
    trace: Trace | StrPath | Iterable[int | tuple[int, bool]],
    policy: str | Policy | Sequence[str | Policy] = "lru",
    *,
    frames: int | Sequence[int] = (),
    pool_size: Bytes | Sequence[Bytes] = (),
    ace: bool = False,
    compare: bool = False,
    write_back_batch: int | None = None,
    near: bool = False,
    evict: int | None = None,
    prefetch: Literal["none", "sequential", "history", "both"] = "none",
    alpha: float | None = None,
    kr: int | None = None,
    kw: int | None = None,
    profile: Profile | StrPath | None = None,
    drive: DeviceLike | None = None,
    unit: Literal["auto", "page", "request"] = "auto",
    accesses: int | None = None,
    jobs: int = 0,
    progress: bool | Listener | None = None,
) -> Pool:
    """Simulates buffer pools on a trace: every policy with every size, on all cores.

    >>> import flashwise
    >>> cyclic = [page for _ in range(10) for page in range(100)]
    >>> flashwise.pool(cyclic, ["lru", "sieve"], frames=90).results[0].misses
    1000

    Args:
        trace: a trace; or accesses, each a page's number or a pair of that and whether it is written.
        policy: policies by name, such as ``"lru"``, ``"clock:bit=1"`` or ``"all"``, and objects with the methods of
            :class:`Policy`.
        frames: sizes of the pool in pages.
        pool_size: sizes of the pool in bytes.
        ace: write dirty pages back in batches.
        compare: run each policy twice, without and with ACE.
        write_back_batch: most pages that are written in one batch; k_w if it is known, otherwise 8. Implies ``ace``.
        near: write back only dirty pages among the next victims, as many as a batch has. Implies ``ace``.
        evict: pages to evict when the victim is dirty. Implies ``ace``.
        prefetch: pages to read together with a page whose frame was dirty. Anything but ``"none"`` implies ``ace``.
        alpha: page write time ÷ page read time, to compute costs by the parametric model; with ``kr`` and ``kw``.
        kr: pages that the drive reads at once.
        kw: pages that the drive writes at once.
        profile: a profile to take these three from.
        drive: a simulated drive, filled before, to measure times on.
        unit: whether an access is a page of a request, or the request.
        accesses: most accesses that are read from the trace.
        jobs: pools to simulate in parallel; 0 for one a core.
        progress: as in :func:`simulate`.

    Returns:
        The result. As a table it has a row for each pool.

    Raises:
        UsageError: if a policy or one of its parameters is unknown, or no size is given.
        KeyboardInterrupt: at Ctrl-C.
    """
    chosen = [policy] if isinstance(policy, str) or not isinstance(policy, Sequence) else list(policy)
    sizes, bytes_ = several(frames), several(pool_size)
    if not sizes and not bytes_:
        raise UsageError("give the size of the pool: frames or pool_size")
    tried = None if drive is None else _device.resolve(drive)
    request = {
        "accesses": _accesses(trace),
        "most_accesses": accesses,
        "unit": unit,
        "policies": [name if isinstance(name, str) else None for name in chosen],
        "frames": sizes,
        "pool_sizes": bytes_,
        "ace": ace,
        "compare": compare,
        "write_back_batch": write_back_batch,
        "near": near,
        "evict": evict,
        "prefetch": prefetch,
        "alpha": alpha,
        "kr": kr,
        "kw": kw,
        "profile": None if profile is None else profile_text(profile),
        "drive": None if tried is None else {"text": tried._text, "path": tried._path},
        "jobs": jobs,
    }
    own = [object_ for object_ in chosen if not isinstance(object_, str)]
    with shown(progress) as listener:
        return Pool._from(_native.pool(json.dumps(request), own, listener))


def audit(
    trace: Trace | StrPath,
    profile: Profile | StrPath,
    *,
    window: int = 20_000,
    progress: bool | Listener | None = None,
) -> Audit:
    """Checks the requests of a trace against a drive's parameters.

    Args:
        trace: the trace.
        profile: the drive's profile, from :func:`learn` or a file of ``flashwise learn --profile``.
        window: requests from the start of the trace that are simulated for the costs; 0 for none.
        progress: as in :func:`simulate`.

    Returns:
        The findings: for each rule how often it is violated, where, what it costs, and what helps. As a table it has a
        row for each rule.
    """
    request = {"trace": _trace.resolve(trace), "profile": profile_text(profile), "window": window}
    with shown(progress) as listener:
        return Audit._from(_native.audit(json.dumps(request), listener))


def learn(
    target: Device | Mapping[str, Any] | StrPath = "sim:samsung-960-evo",
    *,
    effort: Literal["quick", "thorough"] | None = None,
    file_system: Literal["ext4", "xfs"] | None = None,
    max_write: Bytes | None = None,
    time_budget: Time | None = None,
    request_size: Bytes | Sequence[Bytes] = (),
    resume: Profile | StrPath | None = None,
    limits: bool = False,
    card: bool = False,
    score: bool = False,
    seed: int = 1,
    progress: bool | Listener | None = None,
) -> Profile:
    """Learns the hidden parameters of a drive from latencies.

    On a directory, all writes go to a new scratch file in it, at most a tenth of the free space, which is deleted
    afterwards. A block device is only read: overwriting one needs the program and two of its options.

    Args:
        target: ``"sim:PRESET"``, ``"sim:FILE.toml"``, a Device or a mapping for a simulated drive; a directory on a real
            drive; or a block device.
        effort: few samples (at most 5 minutes and 1 % of a real drive's capacity, its default), or every sample that
            narrows an interval (the default on simulated drives).
        file_system: learn a simulated drive through a file of this file system.
        max_write: stop before more than this is written in all.
        time_budget: start no probe after this time on the drive's clock.
        request_size: further sizes at which asymmetry and concurrency are measured.
        resume: a profile of the same drive to continue from; finished probes are skipped.
        limits: measure the limits of a cloud volume instead of the drive; the default on a simulated volume.
        card: measure in which units a memory card works instead of the drive; the default on a simulated card.
        score: compare the result with the true parameters of the simulated drive.
        seed: seed of all random choices.
        progress: as in :func:`simulate`.

    Returns:
        The profile: each parameter with its interval and its verdict, and the curves behind it.

    Raises:
        RefusedError: if the target could lose data.
        KeyboardInterrupt: at Ctrl-C.
    """
    drive = target if isinstance(target, Device) else Device(target) if isinstance(target, Mapping) else None
    request = {
        "target": f"sim:{drive.name}" if drive is not None else os.fspath(target),  # type: ignore[arg-type]
        "device": None if drive is None else {"text": drive._text, "path": drive._path},
        "file_system": file_system,
        "seed": seed,
        "effort": effort,
        "max_write": max_write,
        "time_budget": time_budget,
        "request_sizes": several(request_size),
        "resume": None if resume is None else profile_text(resume),
        "limits": limits,
        "card": card,
        "score": score,
    }
    with shown(progress) as listener:
        return Profile._from(_native.learn(json.dumps(request), listener))


def load_profile(path: StrPath) -> Profile:
    """Reads a profile: a file of :meth:`Profile.save` or of ``flashwise learn --profile``."""
    return Profile._from(_native.profile(os.fspath(path)))


def study(
    name: str,
    *,
    quick: bool = False,
    seed: int = 1,
    file_system: Literal["ext4", "xfs", "none"] = "ext4",
    program: StrPath | None = None,
    resume: StrPath | None = None,
    progress: bool | Listener | None = None,
) -> Study:
    """Runs a published study: each claim of a paper beside what is measured here.

    >>> import flashwise
    >>> flashwise.study("gc-organisation", quick=True).claims[0].verdict  # doctest: +SKIP
    'reproduced'

    Args:
        name: a name of :func:`studies`.
        quick: the short form: the same questions, fewer points and repetitions.
        seed: seed of all random choices.
        file_system: where a study that runs SQLite on a simulated drive has its databases; ``"none"`` is the bare drive.
        program: the program ``flashwise``, for the studies that attach drives and run a server on them.
        resume: a file in which the study ``stores`` keeps finished runs, and whose runs it does not repeat.
        progress: as in :func:`simulate`.

    Returns:
        The result: claims, tables and charts. As a table it has a row for each claim.

    Raises:
        UsageError: if there is no study of that name.
        Error: if the study needs something that is missing.
        KeyboardInterrupt: at Ctrl-C.
    """
    request = {
        "name": name,
        "quick": quick,
        "seed": seed,
        "file_system": file_system,
        "program": None if program is None else os.fspath(program),
        "resume": None if resume is None else os.fspath(resume),
    }
    with shown(progress) as listener:
        return Study._from(_native.study(json.dumps(request), listener))


def studies() -> dict[str, str]:
    """Studies, for :func:`study`, each with its title."""
    return dict(_native.studies())


def workloads() -> list[str]:
    """Workloads that have a name, for :func:`simulate`."""
    return list(_native.workload_names())


def policies() -> dict[str, str]:
    """Replacement policies that have a name, for :func:`pool`, each with a line about it."""
    return dict(_native.policy_names())
