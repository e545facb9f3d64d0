"""Data sets behind one interface: `base.Dataset`."""
