"""A tagger as a service over HTTP, its Python client, and Label Studio's backend."""
