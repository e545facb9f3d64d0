"""Wrong ways to run a workload: flags and folders, a user's code, a study that is there."""

from __future__ import annotations

from bad_code import line_of
from bad_input import LONG, NAMES, OWN, STUDY, Case, changed, damaged, data, flag, model, own

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
    "micro-batch size of nothing": Case(
        [], "micro_batch_size: expected a whole number >= 1, got 0", study={"micro_batch_size": 0}
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
