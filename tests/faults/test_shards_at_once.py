"""Two hosts at one study: here two processes that know nothing of each other but the folder."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest
from tiny_run import FLAGS, command, finished_run, run, trial_files


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["budget", "race"])
def test_two_shards_at_once(rule, tmp_path, tmp_path_factory):
    flags = [*FLAGS, f"--stop_rule={rule}", "--num_workers=1"]
    if rule == "budget":
        alone = finished_run(tmp_path_factory.getbasetemp())
    else:
        alone = tmp_path / "alone"
        assert run("train", *flags, f"--records_dir={alone}").returncode == 0
    shared = [*flags, f"--records_dir={tmp_path / 'shared'}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    started = [
        subprocess.Popen(**command("train", *shared, f"--shard={i}/2"), **quiet) for i in (1, 2)
    ]
    told = [process.communicate(timeout=300)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], told
    ours = trial_files(tmp_path / "shared")
    timings = {name for name in ours if "/timing-" in name}
    assert {name.rpartition("/")[2] for name in timings} == {
        "timing-1-of-2.json",
        "timing-2-of-2.json",
    }
    assert {n: data for n, data in ours.items() if n not in timings} == trial_files(alone)
    assert run("train", f"--status={tmp_path / 'shared'}").returncode == 0


@pytest.mark.slow
def test_a_shard_that_is_stopped_says_who_it_waits_for(tmp_path):
    flags = [*FLAGS, f"--records_dir={tmp_path}", "--num_workers=1", "--shard=1/2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(**command("train", *flags), **pipes) as process:
        while len([*tmp_path.glob("*/*/*/64/[0-9]*")]) < 2 and process.poll() is None:
            time.sleep(0.05)
        time.sleep(2.0)
        process.terminate()
        _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert told == (
        "dp-train: stopped by SIGTERM (batch size 16 waits for shard 2/2, batch size 64 waits for "
        "shard 2/2); the same command goes on from there\n"
    )
