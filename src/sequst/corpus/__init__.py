"""What people bring: sentences and tags. Reads, checks, samples, writes. Knows no model."""
