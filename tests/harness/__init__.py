"""Shared by the black-box suites: real servers as child processes, and the comparison of answers."""
