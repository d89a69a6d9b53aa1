# fine
# FIXME
