"""What people look at: SQL views and functions over the lake, and pages."""
