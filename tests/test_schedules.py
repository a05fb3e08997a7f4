"""The schedules: files that their tools can read, commands and flags that kraftlake has."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobs.cli import build_parser
from jobs.metrics import HELP
from jobs.runtime.settings import Settings
from transforms.quality.expectation_settings import configured
from transforms.quality.expectation_suites import suites

SCHEDULES = Path(__file__).parents[1] / "schedules"
UNITS = sorted((SCHEDULES / "systemd").glob("kraftlake*"))
RULES = SCHEDULES / "prometheus-rules.yml"
RULES_TEST = Path(__file__).parent / "prometheus_rules_test.yml"
# What stays wrong stays red.
RUN = ["--validate", "--fail-on", "open"]


def understood(words: list[str]) -> str:
    """The verb of a kraftlake command line; its own parser must take it, in a folder that is there.

    A run must fail as long as something is wrong.
    """
    words = [part for word in words for part in word.split("=", 1)]
    if words[0] == "run":
        at = words.index(RUN[0])
        assert words[at : at + len(RUN)] == RUN
    pages = ("--out", "--report")
    words = [Path(word).name if before in pages else word for before, word in pairwise(["", *words])]
    return build_parser(words[0], Settings()).parse_args(words).verb


def unit(path: Path) -> dict[str, dict[str, list[str]]]:
    """A unit file: section to key to its values, in order."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, value = line.split("=", 1)
            section.setdefault(key, []).append(value)
    return found


def test_systemd_units_call_verbs_and_have_timers() -> None:
    services = [path for path in UNITS if path.suffix == ".service" and "@" not in path.name]
    verbs = {
        path.stem: [
            understood(shlex.split(command)[1:])
            for key in ("ExecStart", "ExecStopPost")
            for command in unit(path)["Service"].get(key, [])
        ]
        for path in services
    }
    assert verbs == {"kraftlake": ["run", "report", "metrics"], "kraftlake-capture": ["capture"]}
    (called,) = (path for path in UNITS if "@" in path.name)
    for path in services:
        assert unit(path)["Unit"]["OnFailure"] == [called.name.replace("@", "@%n")]
        timer = unit(path.with_suffix(".timer"))
        assert timer["Timer"]["OnCalendar"]
        assert timer["Install"]["WantedBy"] == ["timers.target"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_itself_reads_them(path: Path, tmp_path: Path) -> None:
    """The program is replaced by one that is there: systemd looks for it."""
    for each in UNITS:
        text = each.read_text().replace("/opt/kraftlake/bin/kraftlake", "/bin/true")
        (tmp_path / each.name).write_text(text)
    result = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / path.name], capture_output=True, text=True, check=False
    )
    assert path.name not in result.stderr


def test_the_airflow_dag_calls_verbs_in_order() -> None:
    tree = ast.parse((SCHEDULES / "airflow/kraftlake_dag.py").read_text())
    assigned = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    names = {"LAKE": ast.literal_eval(assigned["LAKE"])}
    commands = eval(compile(ast.Expression(assigned["COMMANDS"]), "dag", "eval"), names)
    assert list(commands) == ["run", "report", "metrics"]
    for name, command in commands.items():
        program, *words = command.split()
        assert (program, understood(words)) == ("kraftlake", name)
    assert ast.literal_eval(assigned["WORTH_ANOTHER_TRY"]) == (3, 4, 75)


def test_the_kubernetes_cronjob() -> None:
    job = yaml.safe_load((SCHEDULES / "kubernetes/cronjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert len(job["spec"]["schedule"].split()) == 5
    spec = job["spec"]["jobTemplate"]["spec"]
    assert spec["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [1, 2, 5, 70, 78]
    pod = spec["template"]["spec"]
    assert pod["restartPolicy"] == "Never"  # without it Kubernetes refuses a podFailurePolicy
    containers: list[dict[str, Any]] = pod["containers"]
    (container,) = containers
    *shell, script = container["command"]
    assert shell == ["/bin/sh", "-c"]
    commands = [line.split()[1:] for line in script.splitlines() if line.startswith("kraftlake ")]
    assert [understood(words) for words in commands] == ["run", "metrics"]
    assert script.splitlines()[1::2] == ["code=$?", "exit $code"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert all({m["name"] for m in c["volumeMounts"]} <= volumes for c in containers)


def test_the_databricks_bundle() -> None:
    bundle = yaml.safe_load((SCHEDULES / "databricks/databricks.yml").read_text())
    job = bundle["resources"]["jobs"]["kraftlake"]
    clusters = {cluster["job_cluster_key"] for cluster in job["job_clusters"]}
    run, metrics = job["tasks"]
    assert run["email_notifications"]["on_failure"]
    assert (metrics["depends_on"], metrics["run_if"]) == ([{"task_key": "run"}], "ALL_DONE")
    for task in job["tasks"]:
        called = task["spark_python_task"]
        assert (SCHEDULES / "databricks" / called["python_file"]).is_file()
        assert understood(called["parameters"]) == task["task_key"]
        assert task["job_cluster_key"] in clusters
    assert len(job["schedule"]["quartz_cron_expression"].split()) == 6


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def test_alerts_are_on_metrics_that_kraftlake_writes() -> None:
    of_others = {"kube_job_failed"}
    named = {name for rule in rules() for name in re.findall(r"\b(?:kraftlake|kube)_\w+", rule["expr"])}
    assert named - of_others <= HELP.keys()
    assert {rule["labels"]["severity"] for rule in rules()} <= {"critical", "warning"}
    assert all(rule["annotations"]["summary"] for rule in rules())
    assert any("KraftlakeJobFailed" in line for line in (SCHEDULES / "kubernetes/cronjob.yaml").open())


def test_alerts_on_age_allow_what_the_expectation_of_freshness_allows() -> None:
    captures = next(suite for suite in configured(suites()) if suite.table.name == "captures")
    (fresh,) = (e for e in captures.expectations if e.name == "newest_capture_is_fresh")
    hours = [float(n) for rule in rules() for n in re.findall(r"> (\d+) \* 3600", rule["expr"])]
    assert hours == [fresh.allowed] * 3


def test_the_alerts_that_promtool_expects_are_worded_as_the_rules() -> None:
    """Also where promtool is not installed."""
    worded = {rule["alert"]: re.split(r"\{\{.*?\}\}", rule["annotations"]["summary"]) for rule in rules()}
    tests = yaml.safe_load(RULES_TEST.read_text())["tests"]
    expected = [each for test in tests for each in test["alert_rule_test"] if each["exp_alerts"]]
    assert {each["alertname"] for each in expected} <= worded.keys()
    for each in expected:
        summary = ".+".join(map(re.escape, worded[each["alertname"]]))
        for alert in each["exp_alerts"]:
            assert re.fullmatch(summary, alert["exp_annotations"]["summary"]), each["alertname"]


@pytest.mark.skipif(
    not shutil.which("promtool"), reason="no promtool here (Debian's package prometheus has it)"
)
def test_promtool_reads_the_rules_and_fires_them_when_it_should() -> None:
    for words in (["check", "rules", RULES], ["test", "rules", RULES_TEST]):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
