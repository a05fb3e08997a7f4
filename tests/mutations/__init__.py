"""Inputs damaged at random, and what must be true of reading each: a seed makes the same input again."""
