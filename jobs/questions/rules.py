"""What a query may consist of: names of Spark's classes and functions (of Spark 4.2).

QuestionsOnly.java checks each parsed statement against these; anything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterable

# Nodes of the parsed plan.
QUERIES = (
    "Aggregate Deduplicate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LimitAll "
    "LocalLimit Offset OneRowRelation Pivot Project Sample Sort SubqueryAlias Union Unpivot UnresolvedHaving "
    "UnresolvedHint UnresolvedInlineTable UnresolvedRelation UnresolvedSubqueryColumnAliases "
    "UnresolvedTVFAliases UnresolvedTableValuedFunction UnresolvedWith WithWindowDefinition "
    "LocalRelation RelationTimeTravel PipeOperator"
)
COMMANDS = (
    "DescribeColumn DescribeFunction DescribeNamespace DescribeQueryCommand DescribeRelation ExplainCommand "
    "SetCatalogAndNamespace SetCommand ShowColumns ShowCreateTable ShowCurrentNamespaceCommand ShowFunctions "
    "ShowNamespacesCommand ShowPartitions ShowTableProperties ShowTables ShowViews DescribeDeltaHistory "
    "CurrentNamespace"
)
# Nodes that only name something.
RELATIONS = "UnresolvedRelation UnresolvedTable UnresolvedTableOrView UnresolvedView"
NAMESPACES = "UnresolvedNamespace"
FUNCTION_NAMES = "UnresolvedFunction UnresolvedFunctionName UnresolvedGenerator UnresolvedTableValuedFunction"
# Expressions whose name is only known when they are analyzed, or that call what is not Spark's.
REFUSED_EXPRESSIONS = (
    "CallMethodViaReflection TryReflect ExpressionWithUnresolvedIdentifier PythonUDF PythonUDAF ScalaUDF"
)
EXPRESSION_PACKAGES = (
    "org.apache.spark.sql.catalyst.analysis org.apache.spark.sql.catalyst.expressions "
    "org.apache.spark.sql.catalyst.expressions.aggregate"
)
# Spark's groups of functions that compute from their arguments alone. Not among them: misc_funcs (reflect,
# java_method), xml_funcs (an option names a file), protobuf_funcs (so does an argument).
FUNCTION_GROUPS = (
    "agg_funcs array_funcs bitwise_funcs collection_funcs conditional_funcs conversion_funcs datetime_funcs "
    "generator_funcs hash_funcs json_funcs lambda_funcs map_funcs math_funcs operator_funcs predicate_funcs "
    "string_funcs struct_funcs url_funcs variant_funcs vector_funcs window_funcs"
)
# Of other groups, and Spark's functions that make tables.
FUNCTIONS = (
    "assert_true bitmap_bit_position bitmap_bucket_number bitmap_count "
    "current_catalog current_database current_schema current_user equal_null "
    "input_file_name monotonically_increasing_id "
    "raise_error session_user spark_partition_id typeof user uuid version "
    "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack "
    "variant_explode variant_explode_outer"
)
REFUSED_FUNCTIONS = "reflect java_method try_reflect"
# What a client may set for itself: how values are shown and a query is spread, never where it reads.
SETTINGS = (
    "spark.sql.session.timeZone spark.sql.ansi.enabled spark.sql.shuffle.partitions "
    "spark.sql.mapKeyDedupPolicy spark.sql.adaptive.enabled spark.sql.autoBroadcastJoinThreshold"
)


def rules(functions: Iterable[str], settings: str) -> dict[str, str]:
    """Words by kind of rule, as QuestionsOnly takes them.

    functions: the lake's own. settings: what SET may name.
    """
    return {
        "plans": " ".join((QUERIES, COMMANDS, RELATIONS, NAMESPACES, FUNCTION_NAMES)),
        "relations": RELATIONS,
        "namespaces": NAMESPACES,
        "function_names": FUNCTION_NAMES,
        "refused_expressions": REFUSED_EXPRESSIONS,
        "expression_packages": EXPRESSION_PACKAGES,
        "function_groups": FUNCTION_GROUPS,
        "functions": " ".join((FUNCTIONS, *functions)),
        "refused_functions": REFUSED_FUNCTIONS,
        "settings": settings,
    }
