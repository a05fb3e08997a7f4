"""Facts and metrics of quorums read from a lake without Spark: for explain, plan and metrics."""
