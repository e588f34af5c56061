"""The part of a tagger below its head: pretrained transformers and a BiLSTM."""
