"""The classes that passes are built from."""
