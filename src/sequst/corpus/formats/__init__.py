"""One reader and one writer for each format; `detect` decides which format a file is in."""
