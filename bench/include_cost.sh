#!/usr/bin/env bash
# What including sluice costs the compiler: the time to compile a file that includes sluice.hpp beside one that
# includes cuda_runtime.h, and an empty one, in turns.
#
#     bench/include_cost.sh                       with c++, and with nvcc where it is in the PATH
#     CXX=clang++ NVCC= bench/include_cost.sh     another compiler, and no nvcc
#     RUNS=30 bench/include_cost.sh               steadier medians (default 10)
#
# CUDA_INCLUDE names the folder of cuda_runtime.h (default: beside nvcc, otherwise /usr/local/cuda/include);
# without such a file, sluice.hpp is compared with an empty file. The target bench_include_cost runs this with
# the compilers that CMake found.
#
# Printed: median seconds, with the smallest and the largest, by the clock and by the CPU. The latter
# holds on a machine with other work to do. Aim: at most 1.0 s more than cuda_runtime.h.
set -euo pipefail
export LC_ALL=C

runs="${RUNS:-10}"
cxx="${CXX:-c++}"
nvcc="${NVCC-$(command -v nvcc || true)}"
include="$(cd "$(dirname "$0")/../include" && pwd)"
beside_nvcc="${nvcc:+$(dirname "$nvcc")/../include}"
cuda_include="${CUDA_INCLUDE-${beside_nvcc:-/usr/local/cuda/include}}"
has_cuda=0
[ -f "$cuda_include/cuda_runtime.h" ] && has_cuda=1

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# median_of VALUES...: the median, then the smallest and the largest in brackets.
median_of() {
    printf '%s\n' "$@" | sort -n | awk '
        { value[NR] = $1 }
        END {
            median = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
            printf "%.2f [%.2f, %.2f]", median, value[1], value[NR]
        }'
}

# compare TITLE EXTENSION COMMAND...: compiles each kind of file in turns and prints a line for each.
compare() {
    local title="$1" extension="$2"
    shift 2
    local kinds=(empty sluice)
    [ "$has_cuda" = 1 ] && kinds=(empty cuda_runtime sluice)
    : >"$work/empty.$extension"
    echo '#include <cuda_runtime.h>' >"$work/cuda_runtime.$extension"
    echo '#include <sluice/sluice.hpp>' >"$work/sluice.$extension"

    local -A clock=() processor=()
    local run kind real user system
    local TIMEFORMAT='%R %U %S'
    for ((run = 0; run <= runs; ++run)); do
        for kind in "${kinds[@]}"; do
            { time "$@" -c "$work/$kind.$extension" -o "$work/$kind.o" 2>"$work/messages"; } 2>"$work/time" || {
                cat "$work/messages" >&2
                return 1
            }
            # The first round only brings the files into memory.
            [ "$run" = 0 ] && continue
            read -r real user system <"$work/time"
            clock[$kind]+=" $real"
            processor[$kind]+=" $(awk "BEGIN { print $user + $system }")"
        done
    done

    echo "$title"
    local -A clock_median=() processor_median=()
    for kind in "${kinds[@]}"; do
        # The values are words by intent.
        # shellcheck disable=SC2086
        clock_median[$kind]="$(median_of ${clock[$kind]})"
        # shellcheck disable=SC2086
        processor_median[$kind]="$(median_of ${processor[$kind]})"
        printf '    %-13s clock %-22s processor %s\n' "$kind" "${clock_median[$kind]}" "${processor_median[$kind]}"
    done
    local base="${kinds[-2]}"
    awk -v base="$base" -v a="${clock_median[sluice]%% *}" -v b="${clock_median[$base]%% *}" \
        -v c="${processor_median[sluice]%% *}" -v d="${processor_median[$base]%% *}" 'BEGIN {
            printf "    sluice - %s: %.2f s by the clock, %.2f s of the CPU\n", base, a - b, c - d
        }'
}

echo "Seconds to compile a file with one include: median [min, max] of $runs runs"
host_flags=(-std=c++20 -O2 -I"$include")
[ "$has_cuda" = 1 ] && host_flags+=(-isystem "$cuda_include")
compare "$cxx ${host_flags[*]:0:2}" cpp "$cxx" "${host_flags[@]}"
if [ -n "$nvcc" ]; then
    compare "nvcc -std=c++20 -O2" cu "$nvcc" -std=c++20 -O2 -I"$include" ${CXX:+-ccbin "$CXX"}
fi
