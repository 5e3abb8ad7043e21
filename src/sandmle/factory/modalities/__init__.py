"""What is particular to one modality; a folder each."""
