echo "a line of a shell script counts as well, and this one is longer than a line of a source may be"
