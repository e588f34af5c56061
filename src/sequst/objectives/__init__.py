"""The losses, one idea a file: pure functions of tensors, each naming its equation."""
