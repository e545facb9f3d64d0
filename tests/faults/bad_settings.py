"""Wrong settings of a workload: configs, goals, search spaces, sizes."""

from __future__ import annotations

from bad_input import bound, flag, own, space

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
    "unknown loss": bound("loss: expected one of .*softmax.*'mse'", "Workload.loss = 'mse'"),
    "unknown estimator": bound(
        "estimator: expected one of auto, .*'gpu'", "Workload.estimator = 'gpu'"
    ),
    "no cadence": bound(
        r"ratio: expected a number in \(0, 1\], got 0", "Workload.measurement_ratio = 0"
    ),
    "micro-batch of 0": bound(
        "micro_batch_size: expected a whole number >= 1, got 0", "Workload.micro_batch_size = 0"
    ),
    "negative budget": bound("Budget.steps: expected a number >= 0, got -1", "Budget.steps = -1"),
    "no budget": bound("Budget: expected steps, examples or per_batch_size", "Budget.steps = 0"),
    "endless budget": bound(
        "Budget: expected at most 2147483647 steps at batch", "Budget.steps = 1e10"
    ),
    "half a step": bound(
        r"step_budgets: expected whole numbers >= 1, got \(0.5,\)", "Workload.step_budgets = (0.5,)"
    ),
    "no epochs": bound(
        r"epoch_budgets: expected numbers > 0, got \(0,\)", "Workload.epoch_budgets = (0,)"
    ),
    "collection above the records": bound(
        r"collection: expected a name that can name a folder, .*got '\.\./x'",
        "Workload.collection = '../x'",
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
    "race without a threshold": flag(
        "stop_rule: expected 'budget' for a goal without a threshold, got 'race'",
        *("--gin_param=Goal.threshold = None", "--stop_rule=race"),
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
    "micro-batch size 0": own(
        "micro_batch_size: expected a whole number >= 1, got 0", "Workload.micro_batch_size = 0"
    ),
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
