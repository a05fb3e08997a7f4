"""The runtime of every job: settings, session, lease, progress, run record and outcome."""
