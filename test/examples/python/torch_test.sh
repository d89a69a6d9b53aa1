# torch_test.sh TUTTI PYTHON FILE [ARGUMENT...]: a program of PyTorch on two ranks.
tutti=$1 python=$2
shift 2
"$python" -c 'import torch' 2>/dev/null ||
  { echo "torch is missing for $python: make a venv, as ./bootstrap test does"; exit 77; }
exec "$tutti" run -n 2 "$python" "$@"
