# torch_test.sh TUTTI PYTHON FILE [BACKEND]: a program of PyTorch on two ranks.
#
# With gloo the process ends as soon as the program is over. DistributedDataParallel of PyTorch 2.13
# keeps its group for ever, so gloo's threads live while Python is taken down. One of them may still
# hold the last tensor then; it asks for the interpreter's lock, and terminate() ends the process.
tutti=$1 python=$2
shift 2
"$python" -c 'import torch' 2>/dev/null ||
  { echo "torch is missing for $python: make a venv, as ./bootstrap test does"; exit 77; }
[ "$2" = gloo ] || exec "$tutti" run -n 2 "$python" "$@"
exec "$tutti" run -n 2 "$python" -c '
import os, runpy, sys
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
sys.stdout.flush()
os._exit(0)' "$@"
