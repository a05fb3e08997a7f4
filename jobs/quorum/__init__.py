"""What a lake says of quorums, without Spark: what explain, plan and metrics stand on."""
