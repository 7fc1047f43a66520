"""Results: the documents that the program prints with ``-o json``, as objects with types.

Names, units and meaning are those of the documents. Times are in nanoseconds (``_ns``), sizes in bytes (``_bytes``),
shares from 0 to 1. ``to_dict()`` gives the document itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from ._base import Record, Result, Tabular
from ._errors import RefusedError


@dataclass(frozen=True, kw_only=True)
class Figure(Record):
    """A value with its interval and its verdict."""

    value: Any = None
    """The value; `None` if absent or unknown."""
    low: Any = None
    """Lower end of the 95 % interval."""
    high: Any = None
    """Upper end of the 95 % interval."""
    verdict: str = "inconclusive"
    """`"certain"`, `"inconclusive"` or `"absent"`."""

    @property
    def known(self) -> Any:
        """The value if it is certain, otherwise `None`."""
        return self.value if self.verdict == "certain" else None


@dataclass(frozen=True, kw_only=True)
class Preconditioned(Record):
    """What was done to a drive, or to all drives of an array, before the workload."""

    state: str
    """The requested state."""
    bytes_laid_out: int
    """Bytes that were laid out on the empty drive at once, without being written."""
    host_bytes_written: int
    """Bytes that were written for it, through the drive's host interface."""
    elapsed_ns: int
    """How long that took the drive, ns of its own time."""
    is_settled: bool | None
    """Whether write amplification is steady; `None` where it was not waited for."""
    write_amplification: tuple[float, ...]
    """Write amplification over each window of random overwrites; for a computed state, what theory predicts. A window
    is half a capacity, the first two a sixteenth each where a large drive starts from the computed state. Of an array,
    the mean of the drives that had such a window."""


@dataclass(frozen=True, kw_only=True)
class Percentiles(Record):
    """Percentiles of a response time, ns."""

    _names: ClassVar[dict[str, str]] = {
        "p50": "50",
        "p90": "90",
        "p95": "95",
        "p99": "99",
        "p99_9": "99.9",
        "p99_99": "99.99",
        "p99_999": "99.999",
    }

    p50: int
    """Median."""
    p90: int
    """90 % are no longer."""
    p95: int
    """95 % are no longer."""
    p99: int
    """99 % are no longer."""
    p99_9: int
    """99.9 % are no longer."""
    p99_99: int
    """99.99 % are no longer."""
    p99_999: int
    """99.999 % are no longer."""


@dataclass(frozen=True, kw_only=True)
class DistributionPoint(Record):
    """One point of a distribution."""

    percent: float
    """Share of the requests, percent."""
    response_ns: int
    """That took no longer than this, ns."""


@dataclass(frozen=True, kw_only=True)
class Responses(Record):
    """Response times and rates of a set of requests; a response time runs from submission to completion."""

    requests: int
    """Completed requests."""
    iops: float
    """Requests a second."""
    bytes: int
    """Bytes that they moved."""
    bytes_per_s: float
    """Bytes a second."""
    mean_response_ns: float | None
    """Mean response time, ns; `None` without requests, as all that follows."""
    min_response_ns: int | None
    """Shortest response time, ns."""
    max_response_ns: int | None
    """Longest response time, ns."""
    percentiles_ns: Percentiles | None
    """Percentiles of the response time, ns, three significant digits."""
    distribution: tuple[DistributionPoint, ...]
    """The distribution of the response time, ascending."""


@dataclass(frozen=True, kw_only=True)
class FlowResult(Responses):
    """One flow."""

    name: str
    """Its name in the workload."""
    priority: str
    """Its class."""
    start_ns: int
    """When it started, ns after the workload's start."""
    elapsed_ns: int
    """From its start to its last completion, ns."""
    reads: int
    """Completed reads."""
    writes: int
    """Completed writes."""
    trims: int
    """Completed trims."""
    flushes: int
    """Completed flushes."""
    refused: int
    """Writes and trims that the drive refused because its life had ended; they are in no other figure."""
    mean_queueing_ns: float | None
    """Mean time from submission until the drive took a request from its queue, ns; `None` without requests."""
    mean_service_ns: float | None
    """Mean time from then to completion, ns; `None` without requests."""
    read: Responses | None
    """Reads alone; `None` where there was none."""
    write: Responses | None
    """Writes alone; `None` where there was none."""
    notes: tuple[str, ...] = ()
    """What to know of its requests, a sentence each: devices of its trace that share the same addresses, events that
    were lost."""


@dataclass(frozen=True, kw_only=True)
class HostActivity(Record):
    """What went over the host interface."""

    bytes_read: int
    """Bytes read."""
    bytes_written: int
    """Bytes written."""
    bytes_absorbed: int
    """Bytes written over data that was still in the write buffer, so that the flash never saw the older data."""


@dataclass(frozen=True, kw_only=True)
class FlashActivity(Record):
    """What the flash did. Commands are counted in pages of flash: a command that names `n` planes counts `n`, so that a
    superpage program over 2 planes of each of 8 dies counts 16. Bytes are counted when a command is issued, pages when
    its die takes it."""

    reads: int
    """Pages sensed, for the host, for partial pages, and for garbage collection."""
    programs: int
    """Pages programmed."""
    erases: int
    """Blocks erased, plane by plane."""
    bytes_read: int
    """Bytes moved out of the flash."""
    bytes_programmed: int
    """Bytes programmed, padding included."""
    bytes_padded: int
    """Of these, bytes that hold no data."""
    program_suspensions: int
    """Times that a read interrupted a program."""
    erase_suspensions: int
    """Times that a read interrupted an erase."""
    read_retries: int
    """Times that a page was sensed again because it could not be corrected."""
    uncorrectable_reads: int
    """Reads that could not be corrected in the end."""
    failed_programs: int
    """Programs that failed."""
    failed_erases: int
    """Erases that failed."""


@dataclass(frozen=True, kw_only=True)
class Busy(Record):
    """How busy parts of one kind were."""

    mean: float
    """Mean over all of them."""
    min: float
    """Of the least busy one."""
    max: float
    """Of the busiest one."""
    each: tuple[float, ...]
    """Of each."""


@dataclass(frozen=True, kw_only=True)
class Utilisation(Record):
    """How busy the parts of a drive were: shares of the elapsed time. What was started counts whole."""

    channels: Busy
    """Channels: commands, addresses and data on them."""
    chips: Busy
    """Chips: each the mean of its dies."""
    dies: Busy
    """Dies: their arrays sensing, programming or erasing."""
    planes: Busy
    """Planes: the same for the planes that commands name; plane `p` of die `d` is number `d · planes per die + p`."""


@dataclass(frozen=True, kw_only=True)
class CommandTimes(Record):
    """What the flash commands of a class saw."""

    _names: ClassVar[dict[str, str]] = {
        "class_": "class",
    }

    class_: str
    """What they were for: `host read`, `gc program`, …"""
    commands: int
    """Commands that ended."""
    mean_waiting_ns: float
    """Mean time from a command's issue until its die took it: queueing, ns."""
    mean_service_ns: float
    """Mean time from then to its end: channel, array and waits for the channel between, ns."""


@dataclass(frozen=True, kw_only=True)
class GarbageCollection(Record):
    """What garbage collection did."""

    executions: int
    """Superblocks that were collected."""
    pages_moved: int
    """Logical pages that were moved."""
    superblocks_erased: int
    """Superblocks that were erased."""
    wear_levelling_executions: int
    """Superblocks that wear levelling emptied."""
    superblocks_retired: int
    """Superblocks that were retired because they failed or were worn out."""


@dataclass(frozen=True, kw_only=True)
class WriteCauses(Record):
    """Write amplification by cause."""

    host: float
    """What the host wrote; below 1 where the write buffer absorbed or still holds a part."""
    gc: float
    """What garbage collection moved."""
    wear_levelling: float
    """What wear levelling moved."""
    retirement: float
    """What was moved out of superblocks that are retired."""
    folding: float
    """What was moved out of an SLC cache."""
    mapping: float
    """Mapping tables."""
    padding: float
    """What holds no data, because a flush or a collection could not wait for more."""


@dataclass(frozen=True, kw_only=True)
class DataReduction(Record):
    """What a drive did to store less than it was given. The bytes that were written are those of whole logical pages;
    each page was zeros, or a duplicate, or unique."""

    bytes_written: int
    """Bytes of the logical pages that were written."""
    bytes_of_zeros: int
    """Of those, bytes of zeros, of which nothing was stored."""
    bytes_duplicate: int
    """Of those, bytes of pages that were stored already."""
    bytes_unique: int
    """Of those, bytes of all others, before compression."""
    bytes_stored: int
    """Bytes that these took on flash."""
    bytes_merged: int
    """Bytes of pages that were found to be equal after they had been written."""
    lookups: int
    """Pages that were looked up among the fingerprints."""
    logical_bytes: int
    """Bytes of logical pages on the drive at the end, zeros left out."""
    physical_bytes: int
    """Bytes that they take on flash."""
    physical_capacity_bytes: int
    """Bytes that they may take."""


@dataclass(frozen=True, kw_only=True)
class SlcCache(Record):
    """What went through an SLC cache."""

    capacity_bytes: int
    """Bytes that it can hold at most: of its dynamic superblocks, as many as may be in SLC mode at a time."""
    bytes_cached: int
    """Bytes programmed with one bit a cell, padding included."""
    bytes_bypassed: int
    """Bytes of the host's superpages that were programmed past it."""
    bytes_folded: int
    """Bytes moved out of it."""
    superblocks_folded: int
    """Superblocks that were emptied for that."""
    superblocks: int
    """Superblocks that hold one bit a cell at the end."""
    valid_bytes: int
    """Bytes of valid pages in the full ones among them."""


@dataclass(frozen=True, kw_only=True)
class EraseCount(Record):
    """Superblocks that are worn alike."""

    erases: int
    """P/E cycles."""
    superblocks: int
    """How many superblocks."""


@dataclass(frozen=True, kw_only=True)
class EraseCounts(Record):
    """How worn the drive is."""

    min: int
    """P/E cycles of the least worn superblock."""
    mean: float
    """Mean over all superblocks."""
    max: int
    """P/E cycles of the most worn superblock."""
    distribution: tuple[EraseCount, ...]
    """How many superblocks have gone through how many cycles, ascending."""


@dataclass(frozen=True, kw_only=True)
class Interval(Record):
    """One interval; a request counts in the interval of its completion."""

    start_ns: int
    """Its start, ns after the workload's start."""
    requests: int
    """Completed requests."""
    iops: float
    """Requests a second."""
    bytes_per_s: float
    """Bytes a second."""
    mean_response_ns: float | None
    """Mean response time, ns; `None` where no request completed."""
    write_amplification: float | None
    """Write amplification; `None` where nothing was written."""


@dataclass(frozen=True, kw_only=True)
class TimeSeries(Record):
    """The run in intervals of equal length; the last one ends with the run."""

    interval_ns: int
    """Length of an interval, ns."""
    intervals: tuple[Interval, ...]
    """The intervals, without gaps."""


@dataclass(frozen=True, kw_only=True)
class Invariant(Record):
    """One thing that was checked."""

    name: str
    """Its name."""
    holds: bool
    """Whether it held."""
    detail: str
    """The figures that were compared."""


@dataclass(frozen=True, kw_only=True)
class Process(Record):
    """What the simulation took."""

    wall_s: float
    """Wall-clock seconds of the simulation, without preconditioning."""
    requests_per_s: float
    """Simulated requests a second of wall-clock time."""
    peak_memory_bytes: int | None
    """Largest memory of the process so far, bytes; `None` if the system does not report it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulation(Tabular, Result):
    """Everything that one simulation gives."""

    _rows: ClassVar[str] = "time_series"

    schema: str
    """Always `"flashwise.simulation"`."""
    schema_version: int
    """Always 1."""
    flashwise_version: str
    """Version of flashwise."""
    device: dict[str, Any]
    """What the drive was built of, or each drive of the array."""
    array: dict[str, Any] | None
    """What the array is and did; `None` where the workload ran on a single drive."""
    workload: dict[str, Any]
    """The workload."""
    seed: int
    """Seed of every random choice."""
    precondition: Preconditioned
    """What was on the drive before."""
    elapsed_ns: int
    """From the workload's start to the last completion, ns of the drive's time."""
    total: Responses
    """All flows together."""
    flows: tuple[FlowResult, ...]
    """The flows in the order of the workload."""
    host: HostActivity
    """What went over the host interface."""
    flash: FlashActivity
    """What the flash did for it."""
    utilisation: Utilisation
    """How busy channels and dies were."""
    flash_commands: tuple[CommandTimes, ...]
    """How long flash commands waited and were served, for each class that there was."""
    flash_energy_mj: float | None
    """Energy of all flash operations, mJ; `None` if the configuration has no energies."""
    gc: GarbageCollection
    """What garbage collection did."""
    write_amplification: float | None
    """Bytes programmed into flash for any reason ÷ bytes written by the host; `None` where nothing was written."""
    write_amplification_by_cause: WriteCauses | None
    """The same by cause; the parts add up to the whole."""
    reduction: DataReduction | None
    """What the drive did to store less than it was given; `None` where it stores everything by default."""
    slc_cache: SlcCache | None
    """What went through the drive's SLC cache; `None` where there is none."""
    erase_counts: EraseCounts | None
    """P/E cycles over the whole life of the drive, preconditioning included; `None` where nothing is erased."""
    life: dict[str, Any] | None
    """What the drive has lived through, and how much is left; `None` where nothing wears out."""
    unwritten_pages_read: int
    """Logical pages that were read although they had never been written: with many of these, the workload measures an
    empty drive."""
    time_series: TimeSeries
    """The run in intervals."""
    invariants: tuple[Invariant, ...]
    """What was checked, and held."""
    process: Process
    """What the simulation itself took; the only part that differs from run to run."""


@dataclass(frozen=True, kw_only=True)
class SweepRow(Record):
    """Figures of one flow, or of all together; those of the drive are the same in all rows of a cell."""

    flow: str
    """The flow's name; `all` for all together."""
    requests: int
    """Completed requests."""
    iops: float
    """Requests a second."""
    bytes_per_s: float
    """Bytes a second."""
    mean_response_ns: float | None
    """Mean response time, ns."""
    max_response_ns: int | None
    """Longest response time, ns."""
    p50_ns: int | None
    """Median of the response time, ns."""
    p95_ns: int | None
    """95th percentile, ns."""
    p99_ns: int | None
    """99th percentile, ns."""
    p99_9_ns: int | None
    """99.9th percentile, ns."""
    p99_99_ns: int | None
    """99.99th percentile, ns."""
    elapsed_ns: int
    """From the workload's start to the last completion, ns."""
    write_amplification: float | None
    """Write amplification."""
    write_amplification_gc: float | None
    """The part of it that garbage collection caused."""
    gc_executions: int
    """Collected superblocks."""
    gc_pages_moved: int
    """Logical pages that they moved."""
    flash_pages_read: int
    """Flash pages sensed."""
    flash_pages_programmed: int
    """Flash pages programmed."""
    flash_blocks_erased: int
    """Blocks erased."""
    channel_utilisation: float
    """Mean share of time that channels were busy."""
    die_utilisation: float
    """Mean share of time that dies were busy."""
    plane_utilisation: float | None
    """Mean share of time that planes were busy; absent from what an earlier version wrote."""
    erase_count_mean: float | None
    """Mean P/E cycles of a superblock."""
    erase_count_max: int | None
    """P/E cycles of the most worn superblock."""
    unwritten_pages_read: int
    """Logical pages that were read although they had never been written."""


@dataclass(frozen=True, kw_only=True)
class SweepCell(Record):
    """One combination of values and what came of it."""

    index: int
    """Its place in the grid, from 0."""
    key: str
    """Hash of everything that decides its result."""
    values: dict[str, Any]
    """The values that make it differ from the others, by key path."""
    rows: tuple[SweepRow, ...]
    """All flows together, then, where there are several, each flow; empty where the simulation failed."""
    error: str | None
    """Why there are no rows."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep(Tabular, Result):
    """All cells of a grid."""

    _rows: ClassVar[str] = "cells"

    schema: str
    """Always `"flashwise.sweep"`."""
    schema_version: int
    """Always 1."""
    flashwise_version: str
    """Version of flashwise."""
    name: str
    """The grid's name."""
    resumed: int
    """Cells that had been finished before and were not run again."""
    failed: int
    """Cells whose simulation failed."""
    cells: tuple[SweepCell, ...]
    """The cells in the order of the grid."""


@dataclass(frozen=True, kw_only=True)
class DriveModel(Record):
    """What the model knows of a drive."""

    asymmetry: float
    """Α: time of a page write ÷ time of a page read."""
    read_concurrency: int
    """K_r: pages that are read at once."""
    write_concurrency: int
    """K_w: pages that are written at once."""


@dataclass(frozen=True, kw_only=True)
class ModelCost(Record):
    """Times in units of one page read."""

    total_reads: float
    """All of it."""
    read_part: float
    """Waiting for reads."""
    write_part: float
    """Waiting for write-backs."""


@dataclass(frozen=True, kw_only=True)
class DriveCost(Record):
    """How a run continued a drive."""

    elapsed_ns: int
    """From the first access to the last, on the drive's clock."""
    read_ns: int
    """Of it, waiting for reads."""
    write_ns: int
    """Of it, waiting for write-backs."""
    write_amplification: float | None
    """Flash bytes programmed ÷ bytes written, in this run; `None` if nothing was written or it is unknown."""


@dataclass(frozen=True, kw_only=True)
class PoolResult(Record):
    """One pool's run."""

    policy: str
    """The policy, with its parameters."""
    ace: bool
    """Whether dirty pages are written back in batches."""
    variant: str | None
    """How, in the words of ACE's authors; `None` for the classic way."""
    frames: int
    """Frames of the pool."""
    accesses: int
    """Accesses."""
    misses: int
    """Accesses to pages without a frame."""
    miss_ratio: float
    """Misses ÷ accesses."""
    evictions: int
    """Pages that were evicted."""
    dirty_evictions: int
    """Victims that were dirty."""
    write_back_operations: int
    """Batches of pages that were written together."""
    pages_written: int
    """Pages in them."""
    mean_batch: float | None
    """Pages of a batch, on average; `None` without one."""
    pages_prefetched: int
    """Pages that were prefetched."""
    prefetched_used: int
    """Of those, pages that were requested before their eviction."""
    accesses_per_s: float
    """Accesses ÷ time on the processor: of one core, whatever else the machine does; the drive not simulated."""
    model_cost: ModelCost | None
    """Cost by the parametric model."""
    drive_cost: DriveCost | None
    """Cost on the simulated drive."""


@dataclass(frozen=True, kw_only=True)
class BestPool(Record):
    """The best pool of one size by one measure."""

    frames: int
    """Frames of the pool."""
    by: str
    """By what."""
    policy: str
    """The policy; of several that are as good, the first of the results."""
    variant: str | None
    """How it writes back; `None` for the classic way."""
    value: float
    """Its value."""
    worst: float
    """The highest value of a pool of this size."""
    is_shared: bool
    """Whether pools of other policies are as good."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Pool(Tabular, Result):
    """All runs."""

    _rows: ClassVar[str] = "results"

    schema: str
    """Always `"flashwise.pool"`."""
    schema_version: int
    """Always 1."""
    trace: str
    """The trace."""
    requests: int
    """Its requests, as far as they were read."""
    accesses: int
    """Accesses to pages in it."""
    writes: int
    """Accesses that write."""
    pages: int
    """Different pages."""
    page_bytes: int
    """Bytes of a page."""
    prefetch: str
    """What is prefetched."""
    model: DriveModel | None
    """The drive of the parametric model."""
    drive: str | None
    """The simulated drive."""
    accesses_per_s: float
    """Accesses of all results ÷ time from the first to the last of them, on all cores."""
    results: tuple[PoolResult, ...]
    """A pool each: by policy, then frames, then the way to write back."""
    best: tuple[BestPool, ...]
    """The best pools of each size."""


@dataclass(frozen=True, kw_only=True)
class FindingExample(Record):
    """One request that violates a rule."""

    operation: str
    """The operation."""
    role: str
    """The file's role in a database, if known."""
    file: str | None = None
    """The file's name, if the trace has it."""
    offset_bytes: int
    """Where."""
    length_bytes: int
    """How much."""
    request: int
    """Which request of the trace; the first is 1."""


@dataclass(frozen=True, kw_only=True)
class PlaceShare(Record):
    """How many of the violations are in one place."""

    place: Any
    """Where."""
    violations: int
    """Requests there that violate the rule."""
    bytes: int
    """Their bytes."""


@dataclass(frozen=True, kw_only=True)
class ProcessShare(Record):
    """How many of the violations are of one process."""

    process: int
    """Its number."""
    violations: int
    """Its requests that violate the rule."""
    bytes: int
    """Their bytes."""


@dataclass(frozen=True, kw_only=True)
class FindingCost(Record):
    """What fixing a rule's violations would save over the simulated window: the unmodified requests minus the requests
    with the violations fixed, on a drive made from the profile. Negative if the fix loses more than it saves."""

    time_ns: int | None
    """Drive time, or time that the program waits for its calls (`machine`), ns; `None` if not simulated."""
    flash_bytes: int | None
    """Flash bytes programmed; `None` if not simulated."""
    is_in_steady_state: bool = False
    """Whether both were replayed on the drive in its steady state, with garbage collection running."""


@dataclass(frozen=True, kw_only=True)
class Finding(Record):
    """The result of one rule on one trace."""

    rule: str
    """Which rule."""
    judgement: str
    """What is concluded."""
    statement: str
    """The rule in a sentence, with the drive's own figures in it."""
    violations: int
    """Requests that violate it."""
    requests: int
    """Requests that it applies to."""
    bytes: int
    """Bytes of the requests that violate it."""
    examples: tuple[FindingExample, ...]
    """The first requests that violate it, at most three."""
    places: tuple[PlaceShare, ...]
    """Where they are, most violations first, at most five."""
    processes: tuple[ProcessShare, ...] = ()
    """By process, most violations first, at most five; empty if the trace has no processes."""
    cost: FindingCost
    """Their cost."""
    remedy: str
    """The remedy, with the name of the setting or technique."""


@dataclass(frozen=True, kw_only=True)
class UncheckedRule(Record):
    """A rule that was not checked."""

    rule: str
    """Which."""
    reason: str
    """Why."""


@dataclass(frozen=True, kw_only=True)
class AuditMachine(Record):
    """What is between a program and its drive."""

    file_system: str
    """The file system."""
    memory_bytes: int
    """Memory that the page cache may fill. It is empty at first."""


@dataclass(frozen=True, kw_only=True)
class SteadyState(Record):
    """The unmodified window, replayed again and again on a drive in its steady state."""

    time_ns: int
    """Drive time of one window, ns."""
    flash_bytes: int
    """Flash bytes that one window programs, including those that garbage collection moves."""
    host_bytes: int
    """Host bytes that one window writes."""


@dataclass(frozen=True, kw_only=True)
class Calibrated(Record):
    """How near the drive comes to one question's answer."""

    what: str
    """The operation, such as `read of 4 KiB`."""
    profile_ns: int
    """The profile's answer, ns."""
    drive_ns: int
    """The simulated drive's, ns."""


@dataclass(frozen=True, kw_only=True)
class AuditSimulation(Record):
    """How the costs were simulated."""

    window_requests: int
    """The first so many requests of the trace were simulated."""
    trace_requests: int
    """Requests of the whole trace."""
    machine: AuditMachine | None = None
    """Of a trace that was taken above the page cache: what was between the program and the drive. Without it the window
    was replayed on the bare drive."""
    time_ns: int
    """Time of the unmodified window, ns, without the program's own between requests: drive time, or with a `machine`
    the time of the calls."""
    flash_bytes: int
    """Flash bytes that the unmodified window programs."""
    host_bytes: int
    """Host bytes that the unmodified window writes."""
    steady_state: SteadyState | None = None
    """The same on the drive in its steady state, if a rule needed it."""
    calibrated: tuple[Calibrated, ...]
    """How close the simulated drive is to the learned one."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Audit(Tabular, Result):
    """One audit of one trace."""

    _rows: ClassVar[str] = "findings"

    schema: str
    """`flashwise.findings`."""
    schema_version: int
    """1."""
    flashwise_version: str
    """Version of flashwise that made it."""
    trace: str
    """The trace, or the command that was traced."""
    remarks: tuple[str, ...]
    """Remarks on the trace, a sentence each."""
    target: str
    """The target that the profile is of."""
    device: str
    """The drive's name."""
    findings: tuple[Finding, ...]
    """One finding for each rule that could be checked: violations, costliest first; then rules that nothing can change,
    rules that are better broken, and those that no request breaks."""
    unjudged: tuple[UncheckedRule, ...]
    """The rules that were not checked."""
    simulated: AuditSimulation | None
    """How the costs were simulated; `None` if they were not."""
    not_simulated: str | None = None
    """Why they were not."""
    picture: dict[str, Any]
    """The requests by time and address."""
    partitions: dict[str, Any] | None = None
    """Alignment of the drive's partitions, if a drive or an image was named."""

    @property
    def is_violated(self) -> bool:
        """Whether a rule is violated: the program would exit with code 3."""
        return any(finding.judgement == "violation" for finding in self.findings)


@dataclass(frozen=True, kw_only=True)
class AddressRange(Record):
    """Lowest and highest."""

    first_byte: int
    """First byte."""
    end_byte: int
    """First byte behind the last one."""


@dataclass(frozen=True, kw_only=True)
class LengthShare(Record):
    """A length, and how often it is requested."""

    bytes: int
    """The length, bytes."""
    share: float
    """Share of reads and writes."""


@dataclass(frozen=True, kw_only=True)
class LatencyPercentiles(Record):
    """A distribution of times, ns."""

    p50_ns: int
    """Median."""
    p99_ns: int
    """99th percentile."""
    p999_ns: int
    """99.9th percentile."""
    max_ns: int
    """Longest."""


@dataclass(frozen=True, kw_only=True)
class TraceSummary(Record):
    """A trace in numbers."""

    requests: int
    """Requests of any kind."""
    reads: int
    """Reads."""
    writes: int
    """Writes."""
    trims: int
    """Trims."""
    zero_writes: int
    """Writes of zeros."""
    flushes: int
    """Flushes."""
    fua_writes: int
    """Writes with force unit access."""
    bytes_read: int
    """Bytes read."""
    bytes_written: int
    """Bytes written, without zeros."""
    duration_ns: int
    """From the first submission to the last, ns."""
    is_in_order: bool
    """Whether no time is earlier than the one before."""
    addresses: AddressRange | None
    """Lowest and highest byte that is requested."""
    footprint_bytes: int
    """Distinct pages of 4 KiB that are read or written, as estimated, times 4 KiB."""
    sequential_share: float
    """Share of reads and writes that start where the one before ended, on the same device and file."""
    aligned_share: float
    """Share of reads and writes that start and end at a multiple of 4 KiB."""
    lengths: tuple[LengthShare, ...]
    """The most frequent lengths of reads and writes, the most frequent first."""
    latency: LatencyPercentiles | None
    """Latencies; `None` if the trace has none."""
    mean_queue_depth: float | None
    """Mean number of requests in flight: latencies added up over the duration (Little's law)."""
    devices: int
    """Distinct devices, if the trace has them."""
    processes: int
    """Distinct processes, if the trace has them."""
    duplicate_share: float | None
    """Of requests with a content, the share whose content was there before: what deduplication could save, as
    estimated."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TraceInfo(Result):
    """What `trace info` gives."""

    schema: str
    """`flashwise.trace-info`."""
    schema_version: int
    """1."""
    files: tuple[str, ...]
    """Files or disks that it names, the first 100."""
    summary: TraceSummary
    """Its requests in numbers."""
    trace: str
    """The file, or `standard input`."""
    format: str
    """How it is written."""
    format_reason: str
    """Why it is taken for that."""
    compression: str
    """How it is compressed, the outermost first: none, or such as gzip, tar."""
    clock: str
    """What its times count from."""
    skipped_lines: int
    """Bad lines that were passed over."""
    remarks: tuple[str, ...]
    """Remarks on contents of the trace that the requests do not show, a sentence each."""


@dataclass(frozen=True, kw_only=True)
class DeviceIdentity(Record):
    """Which drive a profile is of."""

    target: str
    """The target as the user named it, such as `sim:samsung-960-evo`."""
    name: str
    """Model or path."""
    capacity_bytes: int
    """Addressable bytes of the target."""
    logical_block_bytes: int
    """Smallest addressable unit."""
    clock: str
    """The clock of the times."""


@dataclass(frozen=True, kw_only=True)
class Recipe(Record):
    """How a profile was learned."""

    seed: int
    """Seed of every random choice."""
    region_bytes: int
    """Bytes of the device that the probes wrote to and read from."""
    bytes_written: int
    """Bytes that all probes together wrote."""
    bytes_read: int
    """Bytes that all probes together read."""
    device_time_ns: int
    """Time that the probes took on the device's clock, ns."""
    probes: tuple[str, ...] = ()
    """Probes that finished, in order; a run that continues from this profile skips them."""


@dataclass(frozen=True, kw_only=True)
class Parameters(Record):
    """The figures of a drive. One that was not probed is inconclusive and has no value."""

    write_unit_bytes: Figure
    """Desirable write length: writes of a whole multiple of it waste nothing."""
    stripe_bytes: Figure
    """The length from which on what is written reads back fastest: the unit in which the drive lays data out; absent
    where any length reads back equally fast."""
    chunk_bytes: Figure
    """Contiguous bytes on one channel of a drive that was written in order."""
    hot_location: Figure
    """Where chunk-sized reads are served fastest."""
    hot_location_survives_writes: Figure
    """Whether the hot locations are still there after everything was overwritten in blocks of 4 KiB in random order."""
    page_bytes: Figure
    """The unit that a read cannot split: touching two costs more than touching one; absent where a read moves no more
    than it asks for."""
    asymmetry_4k: Figure
    """Α at 4 KiB: saturated read IOPS ÷ saturated write IOPS."""
    read_concurrency_4k: Figure
    """K_r at 4 KiB: reads in flight at which throughput stops growing."""
    write_concurrency_4k: Figure
    """K_w at 4 KiB: writes in flight at which throughput stops growing."""
    asymmetry_8k: Figure
    """Α at 8 KiB."""
    read_concurrency_8k: Figure
    """K_r at 8 KiB."""
    write_concurrency_8k: Figure
    """K_w at 8 KiB."""
    latency_asymmetry_4k: Figure
    """Latency of a 4 KiB write ÷ that of a 4 KiB read, one at a time."""
    latency_asymmetry_8k: Figure
    """The same at 8 KiB."""
    asymmetry_4k_collecting: Figure
    """Α at 4 KiB once garbage is collected all the time."""
    asymmetry_8k_collecting: Figure
    """Α at 8 KiB once garbage is collected all the time."""
    latency_asymmetry_4k_collecting: Figure
    """Latency of a 4 KiB write ÷ that of a 4 KiB read, one at a time, once garbage is collected all the time."""
    latency_asymmetry_8k_collecting: Figure
    """The same at 8 KiB."""
    write_buffer_bytes: Figure
    """Bytes of writes that the drive has acknowledged before they are on flash, at most."""
    flush_ns: Figure
    """Time of a flush of one block that was just written, beyond that of a flush of nothing; absent where there is
    nothing to wait for."""
    durable_write_ns: Figure
    """Time of a 4 KiB write that is durable at completion, beyond that of one that is not; absent where both take the
    same."""
    power_loss_protected: Figure
    """Whether what was acknowledged survives a power cut, as far as the time of flushes shows it."""
    read_cache_bytes: Figure
    """Bytes of pages read before that the drive still has at hand."""
    read_ahead_bytes: Figure
    """Bytes that the drive reads ahead of a sequential reader."""
    parallel_units: Figure
    """Places that serve reads independently of each other."""
    internal_volumes: Figure
    """Parts of the drive with dies of their own that writes reach by single bits of their address, and that do not help
    each other out; parts that no bit chooses between are not counted."""
    internal_volume_bits: Figure
    """Bits of a byte address that select the volume."""
    superblock_bytes: Figure
    """What is erased at once."""
    over_provisioning: Figure
    """Bytes that can be overwritten at random after a fill until garbage is first collected ÷ addressable bytes: the
    flash beyond these, without what the collection keeps free."""
    collection_onset_bytes: Figure
    """Bytes overwritten at random after a sequential fill until garbage is first collected."""
    collection_cost: Figure
    """Saturated 4 KiB write IOPS before the onset ÷ those in the steady state."""
    write_amplification_uniform: Figure
    """Flash bytes programmed ÷ host bytes written in the steady state of uniform random 4 KiB writes."""
    write_amplification_skewed: Figure
    """The same where 80 % of the writes go to 20 % of the drive."""
    slc_cache_bytes: Figure
    """Bytes that are taken at the speed of cells with one bit."""
    sustained_write_bytes_per_s: Figure
    """Sequential write speed in the long run, after every cache."""
    compression_gain: Figure
    """Write speed of zeros ÷ that of random bytes; absent where content makes no difference."""
    deduplication_gain: Figure
    """Write speed of repeated blocks ÷ that of blocks that differ; absent where it makes no difference."""
    trim_gain: Figure
    """Write amplification in the steady state ÷ that after half of the drive was trimmed; absent where trim changes
    nothing."""

    def __iter__(self) -> Iterator[tuple[str, Figure]]:
        """Names and figures, in the order of the report."""
        return ((field.name, getattr(self, field.name)) for field in fields(self))


@dataclass(frozen=True, kw_only=True)
class Limits(Record):
    """The limits of a volume. One that was not probed is inconclusive and has no value."""

    read_iops_limit: Figure
    """Reads of 4 KiB a second in the long run; absent where no limit binds before the drive does."""
    write_iops_limit: Figure
    """Writes of 4 KiB a second in the long run; absent where no limit binds before the drive does."""
    read_bandwidth_limit: Figure
    """Bytes read a second in the long run, in large requests; absent where no limit binds before the drive does."""
    write_bandwidth_limit: Figure
    """Bytes written a second in the long run, in large requests; absent where no limit binds before the drive does."""
    read_iops_burst: Figure
    """Reads of 4 KiB a second while burst credits last; absent where the long-run rate is also the first one."""
    write_iops_burst: Figure
    """Writes of 4 KiB a second while burst credits last; absent where the long-run rate is also the first one."""
    read_bandwidth_burst: Figure
    """Bytes read a second while burst credits last; absent where the long-run rate is also the first one."""
    write_bandwidth_burst: Figure
    """Bytes written a second while burst credits last; absent where the long-run rate is also the first one."""
    burst_operations: Figure
    """Size of a full bucket of I/O credits: reads beyond those that the long-run rate grants, and writes where they
    draw from the same bucket."""
    burst_operations_refill: Figure
    """I/O credits that an idle volume gains a second."""
    write_burst_operations: Figure
    """The same of writes that have a bucket of their own; absent where they draw from that of reads."""
    write_burst_operations_refill: Figure
    """Their refill; absent where writes draw from the bucket of reads."""
    burst_bytes: Figure
    """Size of a full bucket of byte credits: bytes read beyond those that the long-run rate grants, and written where
    both draw from the same bucket."""
    burst_bytes_refill: Figure
    """Byte credits that an idle volume gains a second."""
    write_burst_bytes: Figure
    """The same of writes that have a bucket of their own; absent where they draw from that of reads."""
    write_burst_bytes_refill: Figure
    """Their refill; absent where writes draw from the bucket of reads."""
    shared_budget: Figure
    """Whether reads and writes draw from one budget."""
    shared_iops_limit: Figure
    """Reads of 4 KiB a second that the shared budget is worth in the long run, `shared_write_cost` for each write."""
    shared_write_cost: Figure
    """What a write of 4 KiB takes from the shared budget, in reads of 4 KiB."""
    shared_write_cost_per_mib: Figure
    """What a written MiB takes from the shared budget, in reads of 4 KiB; absent where writes are charged by
    request."""
    shared_bandwidth_limit: Figure
    """Bytes a second that reads and writes share in the long run, in large requests."""
    throttle_hold_ns: Figure
    """How long a request beyond the limit is held; absent where it waits only for its turn."""
    request_unit_bytes: Figure
    """Size from which on a request is charged as several; absent where any request is charged as one."""
    network_latency_ns: Figure
    """Part of the latency that every request has in common, whatever its size and direction: the way to the drive."""
    limit_of_instance: Figure
    """Whether the limit is the instance's, over all of its volumes, and not the volume's."""


@dataclass(frozen=True, kw_only=True)
class Card(Record):
    """The figures of a memory card. One that was not probed is inconclusive and has no value."""

    allocation_unit_bytes: Figure
    """Unit in which the card maps what is written, counted from the start of the card; absent where no write is slow
    for the place that it goes to."""
    open_units_linear: Figure
    """Units that stay open while each is written in order."""
    open_units_random: Figure
    """Units that stay open while each is written in any order; absent where any write out of order merges its unit."""
    merge_ns: Figure
    """Time of a short durable write to a unit that is not open."""
    special_first_unit: Figure
    """Whether the first unit of the card stays open beside the others."""


@dataclass(frozen=True, kw_only=True)
class AtSize(Record):
    """Asymmetry and concurrency of one request size; those of 4 and 8 KiB are in `Parameters`."""

    request_bytes: int
    """Bytes of a request."""
    asymmetry: Figure
    """Α: saturated reads ÷ saturated writes."""
    latency_asymmetry: Figure
    """Α of single requests: median write latency ÷ median read latency."""
    read_concurrency: Figure
    """K_r: reads in flight at which throughput stops growing."""
    write_concurrency: Figure
    """K_w: the same of writes."""


@dataclass(frozen=True, kw_only=True)
class Evidence(Record):
    """How one figure came about, so that anyone can repeat it."""

    figure: str
    """Key of the figure in `Parameters`, `Limits` or `Card`."""
    recipe: str
    """What was done to the drive."""
    reason: str
    """The reading, and why that gives the verdict."""
    left_out: bool = False
    """Whether the probe was not started because this kind of drive is not written that much by default."""
    not_tried: bool = False
    """Whether no probe for the figure ran to its end: a budget was spent, or the drive may not be written so much. If
    the figure has no value, its verdict is "not tried"."""
    curve: str | None = None
    """Name of the curve in `probes` that it was read from; `None` where another list of `Curves` holds it."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Profile(Result):
    """Everything that was learned about one drive."""

    schema: str
    """Always `"flashwise.profile"`."""
    schema_version: int
    """Always 1."""
    flashwise_version: str
    """Version of flashwise that learned it."""
    device: DeviceIdentity
    """Which drive."""
    recipe: Recipe
    """How it was learned, so that it can be repeated."""
    parameters: Parameters
    """The figures."""
    limits: Limits | None = None
    """The limits of what stands in front of the drive, if they were probed."""
    card: Card | None = None
    """The units of a memory card, if they were probed."""
    at_sizes: tuple[AtSize, ...] = ()
    """Asymmetry and concurrency at further request sizes, if requested."""
    evidence: tuple[Evidence, ...] = ()
    """How each figure came about."""
    curves: dict[str, Any]
    """The curves that the figures were read from."""
    score: Score | None = None
    """Comparison with the true parameters of a simulated drive, if it was requested."""

    def to_toml(self) -> str:
        """The profile as the file that the program reads (``--profile``)."""
        text = self._native.toml()
        assert text is not None
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the profile to a new TOML file.

        Raises:
            RefusedError: if the file exists.
        """
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(self.to_toml())
        except FileExistsError:
            raise RefusedError(f"{os.fspath(path)}: exists; existing files are never written to") from None


@dataclass(frozen=True, kw_only=True)
class FigureScore(Record):
    """One figure of the score."""

    figure: str
    """Key in the profile's `parameters`."""
    truth: Any
    """The true value; `None` if the drive has no such feature."""
    value: Any
    """What was learned."""
    verdict: str
    """How sure it is."""
    correct: bool
    """Whether the two agree; an inconclusive figure is right if its best guess is."""


@dataclass(frozen=True, kw_only=True)
class Score(Record):
    """The score of one profile."""

    figures: tuple[FigureScore, ...]
    """Figure by figure; those without a defined truth are left out."""
    scored: int
    """Figures scored."""
    correct: int
    """Of those, right."""
    settled: int
    """Verdicts `certain` or `absent`."""
    settled_correct: int
    """Of those, right."""
    false_features: int
    """Features that the drive does not have and that were reported as certain."""


@dataclass(frozen=True, kw_only=True)
class Measured(Record):
    """A mean over runs with its 95 % interval."""

    value: float
    """The mean."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


@dataclass(frozen=True, kw_only=True)
class LearnedCell(Record):
    """A figure that was learned of a drive."""

    verdict: str
    """`"certain"`, `"inconclusive"` or `"absent"`."""
    value: float | None
    """The value, in bytes if it is a size; `None` if absent or not a number."""
    low: float | None
    """Lower end of its interval."""
    high: float | None
    """Upper end of its interval."""
    words: str
    """As printed: "≈" marks a best guess, "–" absent, "?" inconclusive."""


@dataclass(frozen=True, kw_only=True)
class StudyClaim(Record):
    """A claim and the measurement that tests it."""

    claim: str
    """The published claim."""
    measured: str
    """The measured result."""
    verdict: str
    """`"reproduced"`, `"partly"` or `"not-reproduced"`."""
    because: str
    """Why."""


@dataclass(frozen=True, kw_only=True)
class StudyTable(Record):
    """A table of a study."""

    caption: str
    """Its caption, with the unit."""
    columns: tuple[str, ...]
    """Names of the columns."""
    rows: tuple[tuple[str | Measured | LearnedCell, ...], ...]
    """The rows: words, means, or learned figures."""


@dataclass(frozen=True, kw_only=True)
class StudyPoint(Record):
    """A point of a line."""

    x: float
    """Where."""
    y: Measured
    """What is measured there."""


@dataclass(frozen=True, kw_only=True)
class StudySeries(Record):
    """A line of a chart."""

    name: str
    """Its name."""
    points: tuple[StudyPoint, ...]
    """Its points."""


@dataclass(frozen=True, kw_only=True)
class StudyChart(Record):
    """A line chart."""

    title: str
    """Its title."""
    x_label: str
    """Name and unit of the horizontal axis, which is logarithmic."""
    x_is_bytes: bool
    """Whether the horizontal axis shows bytes."""
    y_label: str
    """Name and unit of the vertical axis, which starts at zero."""
    series: tuple[StudySeries, ...]
    """The lines."""


@dataclass(frozen=True, kw_only=True)
class StudySection(Record):
    """One question of a study and its answer."""

    title: str
    """The question."""
    text: tuple[str, ...]
    """What was varied, and what follows."""
    tables: tuple[StudyTable, ...]
    """The numbers."""
    charts: tuple[StudyChart, ...]
    """The same as charts."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Study(Tabular, Result):
    """A published study that was run: its claims beside what was measured."""

    _rows: ClassVar[str] = "claims"

    schema: str
    """`flashwise.study`."""
    schema_version: int
    """1."""
    flashwise_version: str
    """Version of flashwise that ran it."""
    name: str
    """Its name."""
    title: str
    """One line."""
    source: str
    """Authors, title, place and year of the text."""
    quick: bool
    """Whether it is the short form."""
    seed: int
    """Seed of all random choices."""
    claims: tuple[StudyClaim, ...]
    """The claims of the text."""
    sections: tuple[StudySection, ...]
    """The measurements, each with its question and its answer."""
    limits: tuple[str, ...]
    """Limits of the study."""
