"""What a cycle of bindings costs, beside reading what pods expose in the plain way."""
