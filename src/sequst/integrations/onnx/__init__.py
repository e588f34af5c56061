"""A tagger as a folder that onnxruntime runs. Only `exporting` and `comparing` need torch."""
