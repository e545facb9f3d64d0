"""What users get wrong, and what each program has to say of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bad_code import line_of
from tiny_run import FLAGS, STUDIES

LONG = "n" * 300
NAMES = '"dataset": "a", "model": "b", "optimizer": "c"'
STUDY = f"{STUDIES.as_posix()}/16"


class Case(NamedTuple):
    """One mistake.

    Args:
        flags: given after those in `START`, so that they win.
        words: what the line has to hold, a regular expression.
        files: path to text or bytes, or None for a folder: there beside what the program needs.
        study: changes to the `study.json` of a study that was begun with the flags in `START`;
            None if there is no such study.
        bare: whether the flags in `START` are left out.
    """

    flags: list[str]
    words: str
    files: Mapping[str, Any] = {}
    study: Mapping[str, Any] | None = None
    bare: bool = False


START = {
    "train": (*FLAGS, "--batch_sizes=16", "--records_dir=r", "--num_workers=1"),
    "analyze": ("--records_dir=records",),
    "convert": (),
    "prepare": (),
}
OWN = ["--import=own_code", "--gin_file=own.gin", "--records_dir=r", "--num_workers=1"]


def bound(words: str, *params: str) -> Case:
    """A wrong binding beside the flags of the small run."""
    return Case([f"--gin_param={param}" for param in params], words)


def flag(words: str, *flags: str, **others: Any) -> Case:
    """Wrong flags."""
    return Case([*flags], words, **others)


def space(axis: str, words: str) -> Case:
    """A wrong axis of the search space."""
    both = f"{{'learning_rate': {axis}, 'momentum': ('linear', 0.0, 0.9)}}"
    return bound(rf"SearchSpace: 'learning_rate': .*{words}", f"SearchSpace.parameters = {both}")


def own(words: str, *params: str) -> Case:
    """Something wrong in a user's own module."""
    return Case([*OWN, *(f"--gin_param={param}" for param in params)], words, bare=True)


def model(name: str, words: str) -> Case:
    """A user's model that cannot be trained."""
    return own(words, f"Workload.model = @{name}")


def data(name: str, words: str) -> Case:
    """A user's data set that cannot be used."""
    return own(rf"data set {name}.*: {words}", f"Workload.dataset = @{name}")


def damaged(content: Any, words: str) -> Case:
    """A study.json that a run cannot go on with."""
    return Case([], rf"r/{STUDY}/study\.json: {words}", {f"r/{STUDY}/study.json": content})


def changed(words: str, *params: str, **settings: Any) -> Case:
    """Other settings than those of the study that is there."""
    words = rf"study\.json: expected a study with the same settings, got other ones \(.*{words}.*\)"
    return Case([f"--gin_param={param}" for param in params], words, study=settings)


CONFIGS = {
    "no config": flag(
        r"--gin_file: expected the config of a workload, got none \(see --list\)", bare=True
    ),
    "unknown config": flag(
        r"--gin_file=mnist/fc_1023_sgd.gin: .*did you mean mnist/fc_1024_sgd.gin\?",
        *("--gin_file=mnist/fc_1023_sgd.gin", "--records_dir=r"),
        bare=True,
    ),
    "config unlike any": flag(r"=qqq: expected a file, found none .*--list", "--gin_file=qqq"),
    "config is a folder": flag("--gin_file=d: expected a file", "--gin_file=d", files={"d": None}),
    "config is no text": flag("=b: expected a text file", "--gin_file=b", files={"b": b"\x00\xff"}),
    "config with a syntax error": flag(
        r"=b: expected NAME.PARAMETER = VALUE .* line 2",
        *("--gin_file=b",),
        files={"b": "Workload.num_trials = 3\nWorkload.num_trials: 3\n"},
    ),
    "config that includes itself": flag(
        "=b: expected files that do not include themselves",
        *("--gin_file=b",),
        files={"b": "include 'b'\n"},
    ),
    "include of no file": bound("include 'x.gin'.*: Unable to open file: x.gin", "include 'x.gin'"),
    "import of no module": bound("import no_such.*no_such_module", "import no_such_module"),
    "unknown parameter": bound(r"'modl'; did you mean model\?", "Workload.modl = 3"),
    "misspelt goal": bound(r"'treshold'; did you mean threshold\?", "Goal.treshold = 1"),
    "misspelt configurable": bound(r"'Wrkload'; did you mean Workload\?", "Wrkload.model = 3"),
    "unused binding": bound("expected bindings that are used, got SimpleCnn", "SimpleCnn.size = 3"),
    "unused scope": bound("that are used, got small/Goal.thr", "small/Goal.threshold = 1"),
    "unquoted text": bound("with strings in quotes.*got: a value that is", "Goal.metric = error"),
    "missing settings": flag(
        "Workload: expected a value for 'dataset', 'model'",
        *("--gin_param=Workload.num_trials = 3", "--records_dir=r"),
        bare=True,
    ),
    "required setting": bound(
        "Workload: expected a value for 'model', got none", "Workload.model = %gin.REQUIRED"
    ),
    "macro without a value": bound("for the macro %goal, got none", "Workload.goal = %goal"),
    "reference without brackets": bound(r"expected @Goal\(\) with its", "Workload.goal = @Goal"),
    "unknown reference": bound(
        r"'@Digit\(\)'; did you mean Digits\?", "Workload.dataset = @Digit()"
    ),
    "count as text": bound(
        "group_width: expected a whole number >= 1, got '8'", "Workload.group_width = '8'"
    ),
    "sizes as a number": own(
        "sizes: expected one or more, each once, got 8", "Workload.batch_sizes = 8"
    ),
    "data as text": bound(
        "dataset: expected a Dataset or a function .*got 'digits'", "Workload.dataset = 'digits'"
    ),
    "hidden sizes as a number": bound(
        "hidden_sizes: expected whole .*got 64", "FullyConnected.hidden_sizes = 64"
    ),
    "unknown optimizer": bound(
        "optimizer: expected one of momentum, .*'adam'", "Workload.optimizer = 'adam'"
    ),
    "unknown schedule": bound(
        "schedule: expected one of constant, .*'step'", "Workload.schedule = 'step'"
    ),
    "unknown loss": bound("loss: expected one of softmax.*'mse'", "Workload.loss = 'mse'"),
    "unknown estimator": bound(
        "estimator: expected one of auto, .*'gpu'", "Workload.estimator = 'gpu'"
    ),
    "no cadence": bound(
        r"ratio: expected a number in \(0, 1\], got 0", "Workload.measurement_ratio = 0"
    ),
    "negative budget": bound("Budget.steps: expected a number >= 0, got -1", "Budget.steps = -1"),
    "no budget": bound("Budget: expected steps, examples or per_batch_size", "Budget.steps = 0"),
    "endless budget": bound(
        "Budget: expected at most 2147483647 steps at batch", "Budget.steps = 1e10"
    ),
    "budget for a text": bound(
        "Budget.per_batch_size: expected", "Budget.per_batch_size = {'16': 8}"
    ),
}

GOALS = {
    "metric that is not measured": bound(
        "of the metrics classification_error, .*'val/acc'", "Goal.metric = 'val/acc'"
    ),
    "unknown split": bound(
        "SPLIT/METRIC with SPLIT one of train, val, test, got 'dev/x'", "Goal.metric = 'dev/x'"
    ),
    "split that is not there": own(
        "expected a metric of train, val, got 'test/", "Goal.metric = 'test/classification_error'"
    ),
    "direction": bound(
        "Goal.direction: expected 'minimize' or 'maximize', got 'up'", "Goal.direction = 'up'"
    ),
    "infinite threshold": bound(
        "Goal.threshold: expected a finite number, got inf", "Goal.threshold = 1e999"
    ),
    "NaN threshold": bound("got: a value that is neither a literal", "Goal.threshold = nan"),
    "threshold as text": bound(
        "Goal.threshold: expected a finite .* got '0.1'", "Goal.threshold = '0.1'"
    ),
    "huge threshold": bound(
        "Goal.threshold: expected a finite number, got 1000", f"Goal.threshold = 1{'0' * 400}"
    ),
}

SPACES = {
    "min > max": space("('log', 1.0, 0.1)", "expected low < high, got 1.0 and 0.1"),
    "min = max": space(
        "('log', 0.1, 0.1)",
        r"expected low < high, got 0.1 and 0.1; \('fixed', 0.1\) is one value",
    ),
    "log with 0": space("('log', 0, 1.0)", "expected low > 0 on a log scale, got 0"),
    "log below 0": space("('log', -1, 1.0)", "expected low > 0 on a log scale, got -1"),
    "reverse log with 1": space(
        "('reverse_log', 0.5, 1.0)", "expected high < 1 on a reverse log scale, got 1.0"
    ),
    "empty discrete": space("('discrete',)", r"expected \(scale, value, .*got \('discrete',\)"),
    "empty tuple": space("('discrete', ())", r"'discrete', \(\(\),\).*expected two values or more"),
    "unknown scale": space("('cubic', 1, 2)", "expected a scale of linear, log, .*got 'cubic'"),
    "infinite bound": space("('log', 1.0, 1e999)", "inf.*expected a finite low and high"),
    "bounds as text": space("('log', '0.1', '1')", "'0.1', '1'.*expected a finite low and high"),
    "half numbers": space("('integer', 1.5, 3)", "expected whole numbers, got 1.5 and 3"),
    "beyond floats": space("('linear', -1e308, 1e308)", "expected a range that floats can span"),
    "only a number": space("0.1", r"expected \(scale, value, ...\) .*got 0.1"),
    "infinite fixed value": bound(
        r"at batch size 16: learning_rate: expected numbers, got \(inf,\)",
        "SearchSpace.parameters = "
        "{'learning_rate': ('fixed', 1e999), 'momentum': ('linear', 0.0, 0.9)}",
    ),
    "no axes": bound("parameters: expected axes by name, got 7", "SearchSpace.parameters = 7"),
    "axis too few": bound(
        "at batch size 16: expected learning_rate, momentum .*got learning_rate$",
        "SearchSpace.parameters = {'learning_rate': ('log', 0.1, 1.0)}",
    ),
    "axis without a name": bound(
        "expected learning_rate, momentum .*got 1$",
        "SearchSpace.parameters = {1: ('log', 0.1, 1.0)}",
    ),
}

SIZES = {
    "batch size as text": flag(
        "expected whole numbers such as 8,32, got '8,many'", "--batch_sizes=8,many"
    ),
    "batch size 0": flag("batch size: expected a whole number >= 1, got 0", "--batch_sizes=0"),
    "batch size -8": flag("batch size: expected a whole number >= 1, got -8", "--batch_sizes=-8"),
    "batch size 1.5": flag("expected whole numbers such as 8,32, got '1.5'", "--batch_sizes=1.5"),
    "batch size 16.0": own("batch size: .*>= 1, got 16.0", "Workload.batch_sizes = (16.0,)"),
    "batch size above the data": flag(
        "batch size: expected at most the 1437 training examples of digits, got 1438",
        "--batch_sizes=1438",
    ),
    "batch size twice": flag(r"expected one or more, each once, got \(8, 8\)", "--batch_sizes=8,8"),
    "no batch size": flag(r"expected one or more, each once, got \(\)", "--batch_sizes="),
    "0 trials": flag("num_trials: expected a whole number >= 1, got 0", "--num_trials=0"),
    "-1 trials": flag("num_trials: expected a whole number >= 1, got -1", "--num_trials=-1"),
    "few trials": flag("num_trials.*few", "--num_trials=few"),
    "more trials than points": flag(
        "num_trials: expected at most 1073741824", f"--num_trials={10**400}"
    ),
    "more trials than room": flag(
        "r: expected room for the records .* MB, got", "--num_trials=1000000000"
    ),
}

RUNS = {
    "stop rule": flag(r"stop_rule.*never.*budget\|race", "--stop_rule=never"),
    "stop rule in gin": own(
        "stop_rule: expected one of budget, race, got 3", "Workload.stop_rule = 3"
    ),
    "seed": flag("seed.*one", "--seed=one"),
    "unknown flag": flag("records_dirs.*Did you mean", "--records_dirs=r"),
    "left over": flag("of the form --name=value, got 'x'", "x"),
    "0 seconds": flag(
        "--checkpoint_seconds: expected seconds > 0, got 0", "--checkpoint_seconds=0"
    ),
    "NaN seconds": flag("expected seconds > 0, got nan", "--checkpoint_seconds=nan"),
    "seconds as text": flag("checkpoint_seconds.*soon", "--checkpoint_seconds=soon"),
    "0 workers": flag("--num_workers: expected a number >= 1, got 0", "--num_workers=0"),
    "-2 workers": flag("--num_workers: expected a number >= 1, got -2", "--num_workers=-2"),
    "workers as text": flag("num_workers.*all", "--num_workers=all"),
    "shard 0": flag("shard: expected i/n with 1 <= i <= n, got 0/2", "--shard=0/2"),
    "shard beyond": flag("shard: expected i/n with 1 <= i <= n, got 3/2", "--shard=3/2"),
    "shard alone": flag("shard: expected i/n such as 2/4, got '2'", "--shard=2"),
    "no shard": flag("shard: expected i/n such as 2/4, got ''", "--shard="),
    "no folder": flag(
        "--records_dir: expected a folder for the records, got none", "--records_dir="
    ),
    "file for a folder": flag(
        "--records_dir=f: expected a folder, there or to be made, got f, which is no folder",
        *("--records_dir=f",),
        files={"f": ""},
    ),
    "folder below a file": flag(
        "=f/g: .*, got f, which is no folder", "--records_dir=f/g", files={"f": ""}
    ),
    "folder with a long name": flag(
        "expected a folder, there or .* name too long", f"--records_dir={LONG}"
    ),
    "folder that cannot be made": flag(
        "/dev/null, which is no folder", "--records_dir=/dev/null/r"
    ),
    "file in the place of a study": flag(
        f"r/{STUDY}: expected a folder for a study, .*, got (Not a dir|File exists)",
        files={"r/digits": ""},
    ),
    "status of no folder": flag("expected a folder of records, got 'none'", "--status=none"),
    "status of no study": flag(r"holds a study.json .*, got 'd'", "--status=d", files={"d": None}),
    "status of a damaged study": flag(
        r"d/8/study\.json: is not JSON", "--status=d", files={"d/8/study.json": "{"}
    ),
    "status of a study of something else": flag(
        r"d/8/study.json: num_trials: expected a whole number >= 0, got 'x'",
        *("--status=d",),
        files={"d/8/study.json": f'{{{NAMES}, "batch_size": 8, "num_trials": "x"}}'},
    ),
    "status of a study with half a goal": flag(
        r"d/8/study.json: goal: expected metric, threshold and direction",
        *("--status=d",),
        files={"d/8/study.json": f'{{{NAMES}, "batch_size": 8, "goal": {{}}}}'},
    ),
}

IMPORTS = {
    name: Case([*OWN, f"--import={name}"], words, bare=True)
    for name, words in {
        "no_such_module": "--import=no_such_module: expected a Python module in .*found none",
        "broken": r"=broken: expected a module .*, got SyntaxError: .*broken.py, line 2",
        "failing": r"=failing: .*, got KeyError: 'x' \(.*failing.py, line 2\)",
        "leaving": r"=leaving: .*, got SystemExit: 3 \(.*leaving.py, line 2\)",
        "needy": r"=needy: .*No module named 'no_such_module' \(.*needy.py, line 2\)",
    }.items()
}

MODELS = {
    "one logit more": model(
        "one_logit_more", r"expected one output of logits \(batch, 2\), got \[\(None, 3\)\]"
    ),
    "other input": model(
        "other_input", "model '.*': ValueError: .*expected axis -1 .* value 5, but received"
    ),
    "None": model("gives_none", "model: expected a Keras model, got NoneType"),
    "text": model("gives_text", "model: expected a Keras model, got str"),
    "no function": own(
        "model: expected a function that builds a Keras model, got 'fc'", "Workload.model = 'fc'"
    ),
    "not built": model(
        "not_built", "expected a built model, such as one that starts with keras.Input"
    ),
    "nothing to train": model("nothing_to_train", "expected weights that can be trained, got none"),
    "two outputs": model(
        "two_outputs", r"expected one output of logits \(batch, 2\), got \[.*, .*\]"
    ),
    "failing": model(
        "failing_model", rf"model: KeyError: 'layer_7' \(.*own_code.py, line {line_of('layer_7')}\)"
    ),
    "leaving": model("leaving_model", r"model: SystemExit: 3 \(.*own_code.py, line"),
    "other arguments": model(
        "takes_no_classes", "model: TypeError: takes_no_classes.. takes 1 pos"
    ),
    "subclass with one logit more": model(
        "subclass_with_one_logit_more",
        r"expected logits of shape \[2, 2\] for two examples, got \(2, 3\)",
    ),
    "failing in training": model(
        "fails_in_training",
        rf"RuntimeError: only for inference \(.*own_code.py, line {line_of('only for inf')}\)",
    ),
}

DATA = {
    "negative labels": data("negative_labels", "expected labels >= 0, got -1"),
    "huge labels": data("huge_labels", "expected labels below 2147483647, got 2147483649"),
    "float labels": data("float_labels", "expected labels that are whole numbers, got float64"),
    "no examples": data("no_examples", r"expected inputs \[examples, ...\], got none"),
    "NaN": data("nan_inputs", "expected inputs that are finite in float32, got NaN"),
    "lengths": data("too_few_labels", "expected as many labels as inputs, got 7 labels and 32"),
    "flat": data("flat_inputs", r"expected inputs .* of rank 2 or more, got shape \(32,\)"),
    "shapes": data("other_shape", "expected inputs of one shape in all splits, got"),
    "no val": data("no_val", r"expected splits 'train', 'val' .*, got \['train'\]"),
    "no mapping": data("no_mapping", "expected splits 'train', 'val' .*, got list"),
    "argument": data("needs_a_path", "TypeError: .*missing 1 required .*'path'$"),
    "failing": data(
        "failing_data",
        rf"RuntimeError: no such table \(.*own_code.py, line {line_of('no such table')}\)",
    ),
    "labels out of range": own(
        "data set short, train: expected labels from 0 to 1, got 0 to 2",
        "Workload.dataset = @OneClassShort()",
    ),
}

STUDY_FILES = {
    "empty": damaged("", "is not JSON"),
    "cut": damaged('{"batch_size": 1', "is not JSON .*remove the file: the finished trials are"),
    "list": damaged("[1]", "expected an object, got list"),
    "number": damaged("7", "expected an object, got int"),
    "null": damaged("null", "expected an object, got NoneType"),
    "no UTF-8": damaged(b'{"a": "\xff\xfe"}', "is not JSON"),
    "folder": damaged(None, r"cannot be read \(Is a directory\)"),
    "deep": damaged("[" * 10**5, "is not JSON"),
    "other object": damaged("{}", r"expected a study with .*\(.*batch_size: nothing there, 16 now"),
    "count as text": Case(
        [], "group_width: expected a whole number >= 1, got 'x'", study={"group_width": "x"}
    ),
    "count of nothing": Case(
        [], "num_trials: expected a whole number >= 1, got None", study={"num_trials": None}
    ),
    "horizon as text": Case(
        [], "horizon: expected a whole number >= 0, got '9'", study={"horizon": "9"}
    ),
    "other seed": Case(
        ["--seed=1"], r"\(seed: 0 there, 1 now\); name another --records_dir", study={}
    ),
    "other space": changed(
        "parameter_configs: .*0.02.*0.03",
        "SearchSpace.parameters = "
        "{'learning_rate': ('log', 0.03, 1.0), 'momentum': ('linear', 0.0, 0.9)}",
    ),
    "other model": changed("workload: .*'dropout_rate': 0.3", "FullyConnected.dropout_rate = 0.3"),
    "other goal": changed("goal: .*0.6.*0.7", "Goal.threshold = 0.7"),
    "other budget": changed("train_steps: 40 there, 41 now", "Budget.steps = 41"),
    "other cadence": changed(
        "measurement_ratio: 0.3 there, 0.2 now", "Workload.measurement_ratio = 0.2"
    ),
    "other stop rule": Case(
        ["--stop_rule=race"], "stop_rule: .budget. there, .race. now", study={}
    ),
    "other data": Case(
        [
            "--import=own_code",
            "--gin_param=Workload.dataset = @FunctionDataset()",
            "--gin_param=FunctionDataset.function = @good_data",
            "--gin_param=FunctionDataset.name = 'digits'",
        ],
        r"study\.json: expected .*\(.*train_size: 1437 there, 32 now.*'digest'",
        study={},
    ),
    "other results version": changed("results_version: 0 there, 1 now", results_version=0),
    "other device": changed("device: 'TPU' there, 'CPU' now", device="TPU"),
    "newer setting": changed("a_new_one: 3 there, nothing now", a_new_one=3),
}

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
    "nothing": flag("--dataset: expected one of digits, fashion_mnist, mnist, got none"),
    "unknown": flag("expected one of digits, .*got 'mnits'", "--dataset=digits", "--dataset=mnits"),
    "no name": flag("expected one of digits, .*got ''", "--dataset="),
    "data in a file": flag(
        "--data_dir=f: expected a folder, there or to be made, got f, which is no folder",
        *("--dataset=mnist", "--data_dir=f"),
        files={"f": ""},
    ),
    "unknown flag": flag("data_set", "--data_set=digits"),
    "left over": flag("got 'digits'", "digits"),
}

CASES = {
    f"{program}: {group}{name}": (program, case)
    for program, group, table in (
        ("train", "", CONFIGS),
        ("train", "goal, ", GOALS),
        ("train", "space, ", SPACES),
        ("train", "", SIZES),
        ("train", "", RUNS),
        ("train", "import of ", IMPORTS),
        ("train", "model, ", MODELS),
        ("train", "data, ", DATA),
        ("train", "study.json, ", STUDY_FILES),
        ("analyze", "", ANALYZE),
        ("convert", "", CONVERT),
        ("prepare", "", PREPARE),
    )
    for name, case in table.items()
}
assert all(re.compile(case.words) for _, case in CASES.values())
