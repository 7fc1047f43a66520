"""Drives, workloads and profiles in each of their forms."""

from __future__ import annotations

import os
import pathlib
import pickle
import subprocess
import sys

import flashwise
import pytest
from flashwise import device


def test_a_drive_is_the_same_in_each_of_its_forms(tmp_path: os.PathLike[str]) -> None:
    preset = device.preset("samsung-960-evo")
    path = os.path.join(tmp_path, "mine.toml")
    with open(path, "w") as file:
        file.write(preset.to_toml())
    loaded, made = device.load(path), device.Device(preset.config)
    assert preset == loaded == made == pickle.loads(pickle.dumps(preset)) and hash(preset) == hash(made)
    forms: list[object] = [preset, preset.config, path, "samsung-960-evo", "sim:samsung-960-evo", f"sim:{path}"]
    runs = [flashwise.simulate(form, rw="read", bs="64k", requests=100) for form in forms]  # type: ignore[arg-type]
    assert len({run.elapsed_ns for run in runs}) == 1
    assert "samsung-960-evo" in device.presets() and repr(preset).startswith("<drive Samsung SSD 960 EVO")


def test_values_are_replaced_by_key_paths_and_checked() -> None:
    drive = device.preset("samsung-960-evo", **{"ftl.gc.policy": "fifo"})
    assert drive.config["ftl"]["gc"]["policy"] == "fifo" and drive != device.preset("samsung-960-evo")
    with pytest.raises(flashwise.Error, match="flash.raed_ns|raed_ns"):
        drive.replace(**{"flash.raed_ns": 1})
    with pytest.raises(AttributeError, match="replace"):
        drive.name = "another"  # type: ignore[misc]
    assert device.random(7) == device.random(7) != device.random(8)


def test_an_array_has_members_that_fail() -> None:
    array = device.Device(
        {"name": "five", "level": "raid5", "members": 4, "member": "micron-m500", "chunk_bytes": 65536}
    )
    assert array.is_array and array.member == device.preset("micron-m500")
    run = flashwise.simulate(array, rw="randread", requests=500, fail=[(2, "1ms")])
    assert run.array is not None and run.total.requests == 500
    with pytest.raises(flashwise.UsageError, match="for arrays"):
        flashwise.simulate("micron-m500", rw="read", requests=1, fail=[(0, 1)])


def test_a_workload_is_a_name_a_mapping_a_file_or_a_trace(requests: str, tmp_path: os.PathLike[str]) -> None:
    mapping = {
        "name": "mix",
        "flows": [
            {
                "requests": 300,
                "synthetic": {
                    "read_share": 0.5,
                    "access": "random",
                    "size": {"fixed": {"bytes": 4096}},
                    "pacing": {"closed": {"queue_depth": 4}},
                },
            }
        ],
    }
    path = os.path.join(tmp_path, "mix.toml")
    with open(path, "w") as file:
        file.write(
            'name = "mix"\n[[flows]]\nrequests = 300\nsynthetic.read_share = 0.5\nsynthetic.access = "random"\n'
            "synthetic.size.fixed.bytes = 4096\nsynthetic.pacing.closed.queue_depth = 4\n"
        )
    by_mapping, by_file = flashwise.simulate("micron-m500", mapping), flashwise.simulate("micron-m500", path)
    assert by_mapping.total == by_file.total and by_mapping.total.requests == 300
    assert flashwise.simulate("micron-m500", "ycsb-a", requests=200).total.requests == 200
    assert flashwise.simulate("micron-m500", requests).total.requests == 200
    assert "ycsb-a" in flashwise.workloads()


def test_arguments_that_make_no_sense_are_value_errors() -> None:
    for call in (
        lambda: flashwise.simulate("micron-m500"),
        lambda: flashwise.simulate("micron-m500", "ycsb-a", rw="read"),
        lambda: flashwise.simulate("micron-m500", rw="reed", requests=1),  # type: ignore[arg-type]
        lambda: flashwise.simulate("micron-m500", rw="read", bs="4KB", requests=1),
        lambda: flashwise.simulate("micron-m500", rw="read", requests=1, precondition="full"),  # type: ignore[arg-type]
        lambda: flashwise.pool([1, 2, 3]),
        lambda: flashwise.pool([1, 2, 3], "mru", frames=1),
        lambda: flashwise.device.Device({"a": object()}),
    ):
        with pytest.raises(ValueError) as raised:
            call()
        assert isinstance(raised.value, flashwise.UsageError), raised.value


def test_a_profile_is_learned_scored_saved_and_read(profile: flashwise.Profile, tmp_path: os.PathLike[str]) -> None:
    assert profile.parameters.chunk_bytes.known == 4096
    assert profile.score is not None and profile.score.false_features == 0
    assert dict(profile.parameters)["write_unit_bytes"].verdict == "certain"
    path = os.path.join(tmp_path, "drive.toml")
    profile.save(path)
    with pytest.raises(flashwise.RefusedError, match="exists"):
        profile.save(path)
    assert flashwise.load_profile(path).parameters == profile.parameters


def test_an_audit_takes_a_profile_or_its_file(
    profile: flashwise.Profile, requests: str, tmp_path: os.PathLike[str]
) -> None:
    path = os.path.join(tmp_path, "drive.toml")
    profile.save(path)
    one, other = flashwise.audit(requests, profile), flashwise.audit(requests, path)
    assert one.findings == other.findings and one.findings
    assert one.is_violated == any(finding.judgement == "violation" for finding in one.findings)


DATABASE = """
import sqlite3, sys
sys.path.insert(0, sys.argv[1])
import sqlite
sqlite.load()
db = sqlite3.connect("file:app.db?vfs=flashwise&write-aligned-stripes=64k", uri=True)
db.executescript("PRAGMA journal_mode = wal; CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)")
print(db.execute("SELECT sum(x) FROM t").fetchone()[0])
db.close()
try:
    sqlite3.connect("app.db").execute("SELECT * FROM t")
except sqlite3.DatabaseError as error:
    print(error)
"""


def loads_extensions(python: str) -> bool:
    program = "import sqlite3; sqlite3.connect(':memory:').enable_load_extension(True)"
    return os.path.exists(python) and subprocess.run([python, "-c", program], capture_output=True).returncode == 0


def test_sqlite3_opens_a_database_through_the_vfs(tmp_path: os.PathLike[str]) -> None:
    # Some Pythons, such as those that pyenv builds, have a sqlite3 that loads nothing; then the system's may.
    pythons = [python for python in (sys.executable, "/usr/bin/python3") if loads_extensions(python)]
    if not pythons:
        pytest.skip("no Python here has a sqlite3 that loads extensions")
    # The module alone, since the package may be installed for another Python; it needs nothing else of it.
    package = os.path.join(tmp_path, "package")
    os.mkdir(package)
    for name in ("sqlite.py", "_errors.py"):
        text = pathlib.Path(flashwise.__file__).with_name(name).read_text()
        pathlib.Path(package, name).write_text(text.replace("from ._errors", "from _errors"))
    os.symlink(flashwise.sqlite.extension_path(), os.path.join(package, "libflashwise_sqlite.so"))
    done = subprocess.run(
        [pythons[0], "-c", DATABASE, package], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("6\nmalformed database schema (laid out by flashwise"), done


def test_a_python_whose_sqlite3_loads_nothing_is_an_error_in_words() -> None:
    if loads_extensions(sys.executable):
        flashwise.sqlite.load()
    else:
        with pytest.raises(flashwise.Error, match="this Python's sqlite3 cannot load extensions"):
            flashwise.sqlite.load()
