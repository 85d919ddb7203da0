#!/usr/bin/env bash
# Makes what run.py needs in a scratch folder: a virtual environment with the peers, and the programs in C.
#
#     benches/peers/setup.sh WORK
#
# Wants python3 with venv, gcc and g++; gemmlowp's headers (Debian: libgemmlowp-dev) for gemmlowp, which is left out
# without them. About 6 GB, since PyTorch's wheel brings libraries for GPUs.
set -euo pipefail
if [ $# != 1 ]; then
    sed -n '2,7s/^#[ ]\?//p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/bin"
cd "$1"

[ -d venv ] || python3 -m venv venv
venv/bin/pip install --quiet -r "$here/requirements.txt"

gcc -O3 -march=native -pthread "$here/c/limits.c" -o bin/limits
gcc -O2 -shared -fPIC "$here/c/pinshim.c" -o bin/pinshim.so -ldl
gcc -O2 -pthread "$here/c/gemm_blas.c" -o bin/gemm_blas -ldl -lm
headers=${GEMMLOWP:-/usr/include/gemmlowp}
if [ -d "$headers" ]; then
    g++ -O3 -std=c++17 -w -march=native -DGEMMLOWP_ENABLE_AVX2 -I"$headers" -pthread "$here/c/gemm_lowp.cpp" \
        -o bin/gemm_lowp
    { dpkg-query -W -f '${Version}' libgemmlowp-dev 2>/dev/null || echo unknown; } >bin/gemm_lowp.version
else
    echo "gemmlowp is left out: no headers in $headers (Debian: libgemmlowp-dev; or set GEMMLOWP)" >&2
fi
