"""What the black-box suites stand on: the real servers as child processes, and the comparison of two answers."""
