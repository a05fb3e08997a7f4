"""What every job stands on: settings, session, lease, progress, record and outcome."""
