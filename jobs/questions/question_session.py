"""question_session: a session that answers questions about the lake's database and refuses the rest."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from dashboards.databases import KRAFT, Database
from dashboards.definitions import defined, every_definition
from jobs.questions.jvm import java_object
from jobs.questions.rules import SETTINGS, rules

# The catalog of a session without --catalog.
SESSION_CATALOG = "spark_catalog"
# The databases and settings for which a session's extensions check statements already, by application.
_checked: set[tuple[str, str, str]] = set()


def question_session(
    spark: SparkSession, database: Database | None, settings: str = SETTINGS
) -> SparkSession:
    """A session beside `spark`, in the same catalogs, that reads the lake's database and no other.

    Every session that it makes is checked, too; `spark` itself is not. settings: what SET may name, separated
    by spaces.
    """
    asked = database or Database(SESSION_CATALOG, KRAFT)
    key = (spark.sparkContext.applicationId, str(asked), settings)
    if key not in _checked:
        java_session: Any = spark._jsparkSession  # pyright: ignore[reportPrivateUsage]
        java_session.extensions().injectParser(checker(spark, asked, settings))
        _checked.add(key)
    session = spark.newSession()
    session.sql(f"USE {asked}")
    return session


def checker(spark: SparkSession, database: Database, settings: str) -> Any:
    """The object of QuestionsOnly.java for a database."""
    functions = [defined(d) for d in every_definition() if " FUNCTION " in d.partition("(")[0]]
    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    allowed = jvm.java.util.HashMap(rules(functions, settings))
    return java_object(spark, "QuestionsOnly", allowed, database.catalog, database.name)
