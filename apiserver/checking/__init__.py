"""`stowplan check`: admission offline, in the same words and with the lines of the file."""
