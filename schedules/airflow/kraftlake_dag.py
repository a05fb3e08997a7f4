"""Airflow 3: load captured controller directories every hour, validate the lake, write page and metrics."""

from datetime import datetime, timedelta

from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

LAKE = "/data/lake"
COMMANDS = {
    "run": f"kraftlake run --captures /backup/controllers --lake {LAKE} --validate --fail-on open --wait 600",
    "report": f"kraftlake report --lake {LAKE} --out /srv/www/kraftlake.html",
    "metrics": f"kraftlake metrics --lake {LAKE} --out /var/lib/node_exporter/textfile/kraftlake.prom",
}
# Nothing readable, the lake is busy, or it could not finish. A retry does not help against the other codes.
WORTH_ANOTHER_TRY = (3, 4, 75)
# What is called when a task fails for good: mail by the connection smtp_default.
FAILED = SmtpNotifier(from_email="airflow@example.org", to="kafka-operations@example.org")


def call(command: str) -> None:
    """Run a command; fail without a retry unless a retry can help."""
    import subprocess

    code = subprocess.run(command.split(), check=False).returncode
    if code in WORTH_ANOTHER_TRY:
        raise RuntimeError(f"{command} exited with {code}")
    if code:
        raise AirflowFailException(f"{command} exited with {code}")


with DAG(
    "kraftlake",
    schedule="20 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10), "on_failure_callback": FAILED},
) as dag:
    tasks = {
        name: PythonOperator(
            task_id=name,
            python_callable=call,
            op_args=[command],
        )
        for name, command in COMMANDS.items()
    }
    # Page and metrics matter most when the run found an error. As teardowns they follow it also then, and
    # leave the state of the DAG's run to task `run`.
    tasks["run"] >> [tasks["report"].as_teardown(), tasks["metrics"].as_teardown()]
