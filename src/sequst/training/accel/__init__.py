"""Fast paths of training: CUDA graphs and a fused AdamW."""
