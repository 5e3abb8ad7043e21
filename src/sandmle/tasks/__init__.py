"""Task folders and corpora: reading, writing, checking a submission against its schema."""
