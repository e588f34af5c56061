"""The paper's grid, tables and figures. So far: the demo, and single cells of the grid."""
