"""Kraftlake's own Java in Spark's JVM, compiled there by Janino, Spark's compiler: a JRE is enough."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from jobs.runtime.session import packaged

PACKAGE = "kraftlake"


def java_object(spark: SparkSession, name: str, *arguments: Any) -> Any:
    """An object of the class in questions/NAME.java, made by its only constructor.

    Raises Py4JJavaError if that raises.
    """
    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(packaged(f"questions/{name}.java"))
    (constructor,) = compiler.getClassLoader().loadClass(f"{PACKAGE}.{name}").getConstructors()
    gateway: Any = spark.sparkContext._gateway  # pyright: ignore[reportPrivateUsage]
    array = gateway.new_array(jvm.Object, len(arguments))
    for position, argument in enumerate(arguments):
        array[position] = argument
    return constructor.newInstance(array)
