"""Seeds: the structures that tasks are made after, from a catalogue, a folder or a table."""
