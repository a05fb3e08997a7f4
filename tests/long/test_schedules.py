"""The schedules as their own tools read them: each is installed from PyPI into a folder of its own.

systemd's is asked in tests/test_schedules.py, where there is one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.long.venvs import Ask, installed

pytestmark = pytest.mark.long

SCHEDULES = Path(__file__).parents[2] / "schedules"

DAGS = """
import json, sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
tasks = {t.task_id: t for dag in bag.dags.values() for t in dag.tasks}
print(json.dumps({
    "errors": bag.import_errors,
    "warnings": bag.captured_warnings,
    "dags": list(bag.dags),
    "after": {name: sorted(t.downstream_task_ids) for name, t in tasks.items()},
    "rules": {name: t.trigger_rule.value for name, t in tasks.items()},
    "called": sorted({type(c).__name__ for t in tasks.values() for c in t.on_failure_callback}),
}))
"""
# The state of a whole run of the DAG.
DAG_RUN = """
import json, os, subprocess, sys

os.environ |= {"AIRFLOW__CORE__DAGS_FOLDER": sys.argv[1], "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
for words in (["db", "migrate"], ["dags", "reserialize"]):
    subprocess.run([sys.executable, "-m", "airflow", *words], check=True, stdout=subprocess.DEVNULL)
from airflow.dag_processing.dagbag import DagBag

dag = DagBag(sys.argv[1]).dags["kraftlake"]
for task in dag.tasks:
    task.on_failure_callback = []
print(json.dumps(dag.test().state.value))
"""
# What a task does with each exit code of its command.
EXITS = """
import importlib.util, json, sys

spec = importlib.util.spec_from_file_location("dag", sys.argv[1] + "/kraftlake_dag.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
raised = {}
for code in (0, 1, 2, 3, 4):
    try:
        module.call(f"{sys.executable} -c raise(SystemExit({code}))")
        raised[code] = None
    except Exception as error:
        raised[code] = type(error).__name__
print(json.dumps(raised))
"""
# The API's own schema, properties that it does not know refused.
RESOURCE = """
import json, sys, kubernetes_validate, yaml

text = open(sys.argv[1] + "/cronjob.yaml").read()
faults = []
for spoilt in (text, text.replace("concurrencyPolicy", "concurencyPolicy")):
    try:
        resource, version = yaml.safe_load(spoilt), kubernetes_validate.latest_version()
        kubernetes_validate.validate(resource, version, strict=True)
        faults.append(None)
    except kubernetes_validate.ValidationError as error:
        faults.append(error.message)
print(json.dumps(faults))
"""
# Databricks' own classes of a bundle's resources refuse what a job does not have.
JOB = """
import json, sys, yaml
from databricks.bundles.jobs import Job

job = yaml.safe_load(open(sys.argv[1] + "/databricks.yml"))["resources"]["jobs"]["kraftlake"]
read = Job.from_dict(job)
try:
    Job.from_dict(job | {"shedule": {}})
    refused = None
except Exception as error:
    refused = str(error)
print(json.dumps({
    "tasks": [task.task_key for task in read.tasks],
    "cron": read.schedule.quartz_cron_expression,
    "refused": refused,
}))
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    folder = tmp_path_factory.mktemp("airflow") / "venv"
    return installed(
        folder,
        "apache-airflow==3.3.2",
        "apache-airflow-providers-standard==1.21.0",
        "apache-airflow-providers-smtp==3.2.0",
    )


def test_airflow_loads_the_dag(airflow: Ask) -> None:
    assert airflow(DAGS, SCHEDULES / "airflow") == {
        "errors": {},
        "warnings": {},
        "dags": ["kraftlake"],
        "after": {"run": ["metrics", "report"], "report": [], "metrics": []},
        "rules": {
            "run": "all_success",
            "report": "all_done_setup_success",
            "metrics": "all_done_setup_success",
        },
        "called": ["SmtpNotifier"],
    }


@pytest.mark.parametrize(("code", "state"), [(0, "success"), (1, "failed")])
def test_the_run_of_the_dag_is_as_red_as_its_run_of_kraftlake(
    airflow: Ask, tmp_path: Path, code: int, state: str
) -> None:
    """Page and metrics are written also after a run that fails."""
    text = (SCHEDULES / "airflow/kraftlake_dag.py").read_text()
    done = f'"{sys.executable} -c raise(SystemExit({code}))"'
    text = re.sub(r'"run": f"[^"]*"', f'"run": {done}', text)
    text = re.sub(r'"(report|metrics)": f"[^"]*"', rf'"\1": "touch {tmp_path}/\1"', text)
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags/kraftlake_dag.py").write_text(text)
    assert airflow(DAG_RUN, tmp_path / "dags") == state
    assert {path.name for path in tmp_path.iterdir()} == {"dags", "report", "metrics"}


def test_airflow_tries_again_what_may_pass(airflow: Ask) -> None:
    """AirflowFailException fails a task for good, any other exception is tried again."""
    assert airflow(EXITS, SCHEDULES / "airflow") == {
        "0": None,
        "1": "AirflowFailException",
        "2": "AirflowFailException",
        "3": "RuntimeError",
        "4": "RuntimeError",
    }


def test_the_cronjob_is_one_by_the_schema_of_kubernetes(tmp_path: Path) -> None:
    ask = installed(tmp_path / "venv", "kubernetes-validate==1.37.0")
    fine, spoilt = ask(RESOURCE, SCHEDULES / "kubernetes")
    assert fine is None
    assert "concurencyPolicy" in spoilt


def test_the_job_is_one_by_the_classes_of_databricks(tmp_path: Path) -> None:
    ask = installed(tmp_path / "venv", "databricks-bundles==1.22.1", "pyyaml")
    read = ask(JOB, SCHEDULES / "databricks")
    assert (read["tasks"], read["cron"]) == (["run", "metrics"], "0 20 * * * ?")
    assert "shedule" in read["refused"]
