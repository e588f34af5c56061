"""Fast paths of the tagger. Each is tested against a plain one."""
