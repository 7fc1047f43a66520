"""flashwise: simulate SSDs, learn their hidden parameters, and check what a database requests of them.

>>> import flashwise
>>> run = flashwise.simulate("machado-4g", rw="randwrite", iodepth=32, requests=20_000, precondition="steady")
>>> run.write_amplification > 1
True

The names are those of the program ``flashwise``, whose guide describes them. Sizes are bytes or texts such as ``"64k"``;
times are nanoseconds or texts such as ``"10ms"``.
"""

from __future__ import annotations

from . import device, results, sqlite, trace
from ._api import Policy, audit, learn, load_profile, policies, pool, simulate, studies, study, workloads
from ._errors import Error, RefusedError, UsageError
from ._native import __version__
from ._sweep import sweep
from .device import Device
from .results import Audit, Pool, Profile, Simulation, Study, Sweep
from .trace import Trace

__all__ = [
    "Audit",
    "Device",
    "Error",
    "Policy",
    "Pool",
    "Profile",
    "RefusedError",
    "Simulation",
    "Study",
    "Sweep",
    "Trace",
    "UsageError",
    "__version__",
    "audit",
    "device",
    "learn",
    "load_profile",
    "policies",
    "pool",
    "results",
    "simulate",
    "sqlite",
    "studies",
    "study",
    "sweep",
    "trace",
    "workloads",
]
