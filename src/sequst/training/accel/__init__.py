"""What exists in training for speed alone: CUDA graphs and a fused AdamW."""
