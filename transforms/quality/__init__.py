"""What is wrong: findings of KRaft's rules, checkpoints compared with the log, expectations of the tables."""
