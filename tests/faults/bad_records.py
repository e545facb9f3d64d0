"""What dp-analyze, dp-convert and dp-prepare cannot use."""

from __future__ import annotations

from typing import Any

from bad_input import LONG, NAMES, Case, flag

TABLE = "batch_size,num_devices,seconds_per_step\n"


def times(text: Any, words: str) -> Case:
    """A table of seconds per step that cannot be used."""
    return flag(
        rf"seconds_per_step: t\.csv.*{words}", "--seconds_per_step=t.csv", files={"t.csv": text}
    )


def lone(content: Any, words: str) -> Case:
    """Records of which the only study.json cannot be used."""
    return flag(
        rf"records_dir: no study can be read: s/8/study\.json: {words}",
        "--records_dir=s",
        files={"s/8/study.json": content},
    )


ANALYZE = {
    "no folder": flag("records_dir", bare=True),
    "missing folder": flag("expected a folder of records, got 'missing'", "--records_dir=missing"),
    "no study": flag(r"holds a study.json .*got 'd'", "--records_dir=d", files={"d": None}),
    "file": flag("expected a folder of records, got 'f'", "--records_dir=f", files={"f": ""}),
    "long name": flag("expected a folder of records, got 'nnn", f"--records_dir={LONG}"),
    "format": flag(r"format.*xml.*table\|json\|csv", "--format=xml"),
    "unknown flag": flag("records_dirs", "--records_dirs=records"),
    "left over": flag("of the form --name=value, got 'records'", "records"),
    "goal as text": flag("goal: expected a number, or several, each once, got 'low'", "--goal=low"),
    "NaN goal": flag("Goal.threshold: expected a finite number, got nan", "--goal=nan"),
    "infinite goal": flag("Goal.threshold: expected a finite number, got inf", "--goal=-1,inf"),
    "goal twice": flag("several, each once, got '0.05,0.05'", "--goal=0.05,0.05"),
    "no goal": flag("expected a number, or several, each once, got ''", "--goal="),
    "metric that is not measured": flag(
        "goal_metric: expected one of train/error, val/error, got 'val/x'",
        "--goal_metric=val/x",
        "--goal=1",
    ),
    "metric without a split": flag("SPLIT/METRIC .*got 'loss'", "--goal_metric=loss", "--goal=1"),
    "metric without a goal": flag(
        "goal: expected a threshold for train/error, got none", "--goal_metric=train/error"
    ),
    "step budgets as text": flag(
        "step_budgets: expected numbers > 0, such as 5,10, got '5,many'", "--step_budgets=5,many"
    ),
    "epoch budget of 0": flag("epoch_budgets: expected numbers > 0, .*'0'", "--epoch_budgets=0"),
    "no step budget": flag("step_budgets: expected numbers > 0, .*got ''", "--step_budgets="),
    "endless epochs": flag("epoch_budgets: expected numbers > 0, .*'inf'", "--epoch_budgets=inf"),
    "epochs of unknown length": flag(
        "epoch_budgets: expected studies that name their train_size, got one of batch size 1 that",
        "--epoch_budgets=1",
    ),
    "compare with budgets": flag(
        "expected no --step_budgets beside it", "--compare", "--step_budgets=5"
    ),
    "0 trials": flag("num_trials", "--num_trials=0"),
    "base": flag("expected one of 1, 8, 64, got 3", "--base_batch_size=3"),
    "compare alone": flag("compare: expected records of two or more workloads", "--compare"),
    "compare what": flag("compare.*wide", "--compare=wide"),
    "compare with heuristics": flag(
        "expected no --heuristics beside it", "--compare", "--heuristics"
    ),
    "normalize alone": flag(
        "normalize_at: expected --compare beside it, got none", "--normalize_at=8"
    ),
    "normalize elsewhere": flag(
        "normalize_at: expected a batch size at which one of the curves .*got 1000",
        *("--compare", "--goal=0.05,0.03", "--normalize_at=1000"),
    ),
    "report in a missing folder": flag(
        r"no/r\.html: expected a file in a folder that exists", "--report=no/r.html"
    ),
    "report is a folder": flag(
        "d: expected the name of a file, got a folder", "--report=d", files={"d": None}
    ),
    "plot in a missing folder": flag(r"no/p\.svg: expected a file in a folder", "--plot=no/p.svg"),
    "report and a plot of another kind": flag(
        r"p\.bmp: expected a file that ends in \.pdf, \.png, \.svg",
        "--report=r.html",
        "--plot=p.bmp",
    ),
    "plot of two goals": flag(
        "--plot: expected records of one workload and one goal, got 2",
        "--plot=p.svg",
        "--goal=0.5,0.03",
    ),
    "figures in a file": flag("expected a folder", "--figures=f", files={"f": ""}),
    "figures in no folder": flag("expected a folder", "--figures="),
    "no times": flag(r"no\.csv: cannot be read \(No such file", "--seconds_per_step=no.csv"),
    "times that were not measured": flag(
        "expected a study with seconds in its timing.json", "--seconds_per_step=measured"
    ),
    "times in a folder": times(None, r"cannot be read \(Is a directory\)"),
    "times in no UTF-8": times(b"\xff\xfe", "cannot be read"),
    "times with a NUL": times(
        b"batch_size\x00,num_devices,seconds_per_step\n", "(cannot be read|columns)"
    ),
    "empty times": times(
        "", "expected the columns batch_size,num_devices,seconds_per_step, got none"
    ),
    "times without rows": times(TABLE, "expected a row, got none"),
    "times with other columns": times("size,time\n1,2\n", "expected the columns .*, got size,time"),
    "times of 0 s": times(
        f"{TABLE}8,1,0\n", r":2: seconds_per_step: expected a number > 0, got '0'"
    ),
    "times of NaN": times(f"{TABLE}8,1,1\n64,1,nan\n", r":3: seconds_per_step: .*got 'nan'"),
    "times at half a size": times(
        f"{TABLE}8.5,1,1\n", r":2: batch_size: expected a whole number >= 1, got '8.5'"
    ),
    "times with cells missing": times(f"{TABLE}8,1\n", r":2: seconds_per_step: .*got None"),
    "times with cells too many": times(f"{TABLE}8,1,1,1\n", ":2: expected 3 cells, got more"),
    "times twice": times(f"{TABLE}8,1,1\n8,1,2\n", "got 8 on 1 twice"),
    "negative price": flag(
        "price_per_device_hour: expected a number >= 0, got -1", "--price_per_device_hour=-1"
    ),
    "NaN price": flag("expected a number >= 0, got nan", "--price_per_device_hour=nan"),
    "price as text": flag("price_per_device_hour.*cheap", "--price_per_device_hour=cheap"),
    "empty study": lone("", "is not JSON"),
    "cut study": lone('{"batch_size": ', "is not JSON"),
    "study is a list": lone("[]", "expected an object, got list"),
    "study is null": lone("null", "expected an object, got NoneType"),
    "study is no UTF-8": lone(b"\xff", "is not JSON"),
    "study is a folder": lone(None, "cannot be read"),
    "study without names": lone("{}", "expected a string 'dataset', got None"),
    "study of another batch size": lone(
        f'{{{NAMES}, "batch_size": 9}}',
        "expected the folder's 'batch_size', got 9",
    ),
}

TAR = ["--archive=archive.tar.bz2", "--no_checksum"]
CONVERT = {
    "nothing": flag("records_dir"),
    "no archive": flag("expected --archive and no --output_dir", "--records_dir=r"),
    "both directions": flag(
        "no --output_dir, got", "--records_dir=r", "--archive=a", "--output_dir=o"
    ),
    "no output": flag(
        "expected --output_dir and no --archive", "--records_dir=r", "--layout=published"
    ),
    "layout": flag(
        r"layout.*csv.*records\|published", "--records_dir=r", "--layout=csv", "--archive=a"
    ),
    "missing archive": flag(
        "missing: expected an archive or a folder, found none",
        "--records_dir=r",
        "--archive=missing",
    ),
    "another archive": flag("--no_checksum", "--records_dir=r", "--archive=archive.tar.bz2"),
    "no tar": flag(
        "not.tar: expected a tar",
        *("--records_dir=r", "--archive=not.tar", "--no_checksum"),
        files={"not.tar": b"x" * 2000},
    ),
    "empty folder": flag(
        "expected studies in the published layout, found",
        "--records_dir=r",
        "--archive=d",
        files={"d": None},
    ),
    "other workload": flag(
        "expected studies .*below imagenet, found none",
        "--records_dir=r",
        *TAR,
        "--workload=imagenet",
    ),
    "records in a file": flag(
        "--records_dir=f: expected a folder, there or to be made, got f, which is no",
        "--records_dir=f",
        *TAR,
        files={"f": ""},
    ),
    "records below a file": flag(
        "--records_dir=f/g: .*got f, which is", "--records_dir=f/g", *TAR, files={"f": ""}
    ),
    "another study there": flag(
        "expected no study or this one, .*got another one; name another --records_dir",
        *("--records_dir=r", *TAR),
        files={"r/mnist/simple_cnn_base/nesterov_momentum/32/study.json": '{"batch_size": 32}'},
    ),
    "no records": flag(
        "folder of records, got 'no'", "--records_dir=no", "--layout=published", "--output_dir=o"
    ),
    "output in a file": flag(
        "--output_dir=f: .*got f, which is no folder",
        *("--records_dir=records", "--layout=published", "--output_dir=f"),
        files={"f": ""},
    ),
    "another study in the output": flag(
        "expected no study or this one, .*got another one; name another --output_dir",
        *("--records_dir=records", "--layout=published", "--output_dir=o"),
        files={"o/toy/fc/sgd/1/study.json": "{}"},
    ),
}

PREPARE = {
    "nothing": flag("--dataset: expected one of cifar_10, .*mnist.*, got none"),
    "unknown": flag("expected one of .*got 'mnits'", "--dataset=digits", "--dataset=mnits"),
    "no name": flag("expected one of .*digits, .*got ''", "--dataset="),
    "data in a file": flag(
        "--data_dir=f: expected a folder, there or to be made, got f, which is no folder",
        *("--dataset=mnist", "--data_dir=f"),
        files={"f": ""},
    ),
    "unknown flag": flag("data_set", "--data_set=digits"),
    "left over": flag("got 'digits'", "digits"),
}
