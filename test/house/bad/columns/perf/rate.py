# Fits.
print("a line of Python counts as well, and this one is longer", "than a line of a source may be, by far")
