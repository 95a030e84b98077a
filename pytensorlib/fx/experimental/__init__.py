"""Questions that programs ask of sizes in graphs, answered for plain numbers."""
