"""The studio: label, learn and review in the browser."""
