"""What was read becomes what it proves: conclusions, findings, histories."""
