"""`stowplan check`: admission offline, with the same messages and the line numbers of the file."""
