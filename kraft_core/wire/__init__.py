"""Requests to a running quorum, without I/O: encoding, login, and the log as an observer reads it.

An observer of this package is anonymous: no request that it builds has a replica id or a directory id, so no
node counts it as a replica (KIP-595, Fetch).
"""
