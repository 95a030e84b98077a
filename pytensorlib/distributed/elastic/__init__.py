"""Starting processes that train together: not here."""
