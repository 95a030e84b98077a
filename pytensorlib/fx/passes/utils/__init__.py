"""What finds nodes in graphs."""
