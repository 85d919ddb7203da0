#!/bin/bash
# Builds the fake libcuda.so, libnvrtc.so and libcublasLt.so into OUTDIR, only where the sources have changed.
#   build.sh OUTDIR         builds
#   build.sh OUTDIR test    builds, and runs the self test
# Safe with many callers at once. FAKE_CUDA_CXX names the compiler (g++); FAKE_CUDA_CXXFLAGS adds flags.
set -eu
[ $# -ge 1 ] || { echo "usage: build.sh OUTDIR [test]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
compiler=${FAKE_CUDA_CXX:-g++}
extra=${FAKE_CUDA_CXXFLAGS:-}
flags="-std=c++17 -O2 -fPIC -pthread -fvisibility=hidden -Wall -Wextra -Wshadow -Wno-missing-field-initializers $extra"
driver="errors settings device device_info memory allocate pool copy stream event capture graph module image launch block warp fiber fault meet tables"
compiler_parts="nvrtc nvrtc_options nvrtc_compile nvrtc_source nvrtc_tools"

exec 9>"$out/.lock"
flock 9

stamp=$( (cd "$here" && cat build.sh ./*.h ./*.cpp; echo "$flags"; "$compiler" --version) | sha256sum | cut -d' ' -f1)
if [ "$(cat "$out/.stamp" 2>/dev/null || true)" != "$stamp" ]; then
    work=$(mktemp -d "$out/.build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    for part in simt_abi simt simt_vector simt_math simt_integer simt_atomic; do
        grep -v '^#pragma once' "$here/$part.h"
    done >"$work/shim.h"
    # One precompiled header saves half of the time.
    printf '#include "%s"\n' "$here/state.h" "$here/stream.h" >"$work/common.h"
    "$compiler" $flags -x c++-header "$work/common.h" -o "$work/common.h.gch"
    objects() {
        for part in "$@"; do
            echo "$part"
        done | xargs -P "$(nproc)" -I{} "$compiler" $flags "-DFAKE_SHIM_FILE=\"$work/shim.h\"" -include "$work/common.h" -c "$here/{}.cpp" -o "$work/{}.o"
    }
    objects $driver $compiler_parts
    in_work() { for part in "$@"; do echo "$work/$part.o"; done; }
    echo '{ global: cu[A-Z]*; nvrtc[A-Z]*; fake_cuda_*; local: *; };' >"$work/exports"
    flags="$flags -Wl,--version-script=$work/exports -Wl,-z,defs"
    "$compiler" $flags -shared -Wl,-soname,libcuda.so -Wl,-z,nodelete -o "$work/libcuda.so" $(in_work $driver) -ldl
    "$compiler" $flags -shared -Wl,-soname,libnvrtc.so -o "$work/libnvrtc.so" $(in_work $compiler_parts)
    # It knows no more of the driver than its interface.
    "$compiler" ${flags%%-Wl*} -O2 -shared -Wl,-soname,libcublasLt.so -Wl,-z,defs -o "$work/libcublasLt.so" "$here"/cublaslt*.cpp -L"$work" -lcuda
    "$compiler" ${flags%%-Wl*} "$here"/selftest*.cpp -o "$work/selftest" -L"$work" -lcuda -lnvrtc
    # cuDNN knows of the driver what its header says.
    "$compiler" ${flags%%-Wl*} -shared -Wl,-soname,libcudnn.so -Wl,-z,defs -o "$work/libcudnn.so" "$here"/cudnn*.cpp -L"$work" -lcuda
    ln -s libcuda.so "$work/libcuda.so.1"
    for file in libcuda.so libnvrtc.so libcublasLt.so selftest libcuda.so.1; do
        mv -fT "$work/$file" "$out/$file"
    done
    mv -fT "$work/libcudnn.so" "$out/libcudnn.so"
    echo "$stamp" >"$out/.stamp"
fi
if [ "${2:-}" = test ]; then
    LD_LIBRARY_PATH="$out" "$out/selftest"
fi
