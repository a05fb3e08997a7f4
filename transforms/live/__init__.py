"""A running quorum as a Spark stream: sockets and TLS for the followers of kraft_core.wire.

The driver reads each committed batch once, as an anonymous observer, and passes its bytes to the tasks, which
decode them: tasks need neither the network nor the password.
"""
