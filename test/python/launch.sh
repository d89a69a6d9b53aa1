# launch.sh TUTTI PYTHON FILE: the file on three ranks; what they all lack is said once.
"$2" -c 'import numpy' 2>/dev/null ||
  { echo "NumPy is missing for $2: install python3-numpy"; exit 77; }
export TUTTI_BOX=none
exec "$1" run -n 3 "$2" "$3"
