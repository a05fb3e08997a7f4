"""What the metadata should be, as files state it, and how a cluster's metadata differs from it.

A desired state holds what administrators decide: topics, configs, ACLs, SCRAM users, quotas and feature
levels. An image has such a state, too (of_image.py): it is compared with that of files (drift.py), and
written as YAML (write_yaml.py) or as Kafka's commands (commands.py).
"""
