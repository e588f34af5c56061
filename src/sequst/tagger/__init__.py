"""The tagger: words -> sub-words -> batches -> encoder -> head -> tags; saving and loading."""
