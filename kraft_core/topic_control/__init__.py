"""Topics as the active controller creates, changes and deletes them (KIP-4), as a pure engine."""
