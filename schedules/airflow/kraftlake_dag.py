"""Airflow 3: load captured controller directories every hour, validate the lake, write the page."""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

LAKE = "/data/lake"
COMMANDS = {
    "run": f"kraftlake run --captures /backup/controllers --lake {LAKE} --validate --wait 600",
    "report": f"kraftlake report --lake {LAKE} --out /srv/www/kraftlake.html",
}
# Nothing readable, the lake is busy, or it could not finish. A retry does not help against the other codes.
WORTH_ANOTHER_TRY = (3, 4, 75)


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
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10)},
) as dag:
    tasks = {
        name: PythonOperator(
            task_id=name,
            python_callable=call,
            op_args=[command],
            # The page matters most when the run found an error.
            trigger_rule="all_done" if name == "report" else "all_success",
        )
        for name, command in COMMANDS.items()
    }
    tasks["run"] >> tasks["report"]
