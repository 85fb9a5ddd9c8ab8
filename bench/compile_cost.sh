#!/usr/bin/env bash
# What using sluice costs a compiler: functions of programs with 0, 1, 5 and 20 pipelines, with 1 and 2 sources, readbacks and graph
# captures, and processor seconds of those with pipelines, beside an empty file, cuda_runtime.h, that with standard headers that sluice needs, and the copies of one pipeline written by hand on the CUDA
# runtime API. Each pipeline has three stages, and types of its own; with 0 pipelines sluice.hpp is included and nothing is used.
# With the headers alone, and with those that are to be linked to sluice::compiled.
#
#     bench/compile_cost.sh                           with g++, clang++ and nvcc, where they are in the PATH; some minutes
#     CXX=clang++ NVCC= bench/compile_cost.sh         with this compiler alone, and no nvcc
#     RUNS=20 FLAGS=-O0 bench/compile_cost.sh         steadier seconds (default 5 runs), of other flags (default -O2); 0: functions alone
#     CXX=clang++ bench/compile_cost.sh --check       fails if this compiler (default c++) makes over 5 % more functions than its limits
#     bench/compile_cost.sh --renew                   writes what g++ and clang++, or CXX, make into the limits
#
# LIMITS names the file of the limits (default: compile_cost.limits beside this script). CUDA_INCLUDE names the folder of
# cuda_runtime.h (default: beside nvcc, otherwise /usr/local/cuda/include). Without such a file, seconds are of the Host backend
# alone, and there is no program by hand. The target bench_compile_cost runs this with the compilers that CMake found.
#
# Functions are exact: those in the object without optimisation, on the Host backend, so that every machine can count them. Seconds
# are of the processor, user and system, which other work on the machine changes less than the clock.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
limits=${LIMITS:-$here/compile_cost.limits}
count_flags=(-std=c++20 -O0 -DSLUICE_HAS_CUDA=0)
counted=(0 1 5 sources:1 sources:2 readbacks:1 readbacks:2 captures:1 captures:2)
ways=(headers compiled)
declare -A way_flag=([headers]=-DSLUICE_COMPILED=0 [compiled]=-DSLUICE_COMPILED=1)

fail() {
    printf 'compile_cost: %s\n' "$1" >&2
    exit "${2:-1}"
}
mode=${1:-}
[[ $# -le 1 && $mode =~ ^(--check|--renew)?$ ]] || fail "expected --check, --renew or nothing, found '$*'" 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# repeated COUNT: a program that runs what standard input has so many times, each time with another number for @.
repeated() {
    local k calls='' text
    text=$(cat)
    echo '#include <sluice/sluice.hpp>'
    for ((k = 0; k < $1; ++k)); do
        calls+=" run$k();"
        printf '%s\n' "${text//@/$k}"
    done
    echo "int main() {$calls }"
}
# program COUNT: so many pipelines. The first stage copies from pinned to device memory, the others within the latter.
program() {
    repeated "$1" <<'END'
using Batch = sluice::PinnedBuffer<float>;
struct A@ { sluice::DeviceBuffer<float> values{1000}; };
struct B@ { sluice::DeviceBuffer<float> values{1000}; };
void run@() {
    sluice::Stage first{"first", [](sluice::StreamRef stream, const Batch& in, A@& out) { sluice::copy(stream, out.values, in); }};
    sluice::Stage second{"second", [](sluice::StreamRef stream, const A@& in, B@& out) {
        sluice::copy(stream, out.values, in.values);
    }};
    sluice::DeviceBuffer<float> result{1000};
    sluice::Stage third{"third", [&](sluice::StreamRef stream, const B@& in) { sluice::copy(stream, result, in.values); }};
    sluice::Pipeline pipeline{sluice::Stages{first, second, third},
                              sluice::Slots{[](int) { return A@{}; }, [](int) { return B@{}; }}};
    Batch batch{1000};
    for (int i = 0; i < 10; ++i)
        pipeline.submit(batch).wait();
    pipeline.finish();
}
END
}
# sources COUNT: whose batches a loop goes through.
sources() {
    repeated "$1" <<'END'
struct Batch@ { sluice::PinnedBuffer<float> values{1000}; };
void run@() {
    sluice::Source source{[](int) { return Batch@{}; },
                          [](std::size_t index, Batch@& out) { out.values.data()[0] = float(index); },
                          {.workers = 2, .batches = 10}};
    for (const auto& batch : source)
        (void)batch->values.data();
}
END
}
# captures COUNT: each with keys of a type of its own.
captures() {
    repeated "$1" <<'END'
struct Key@ { int size; bool operator==(const Key@&) const = default; };
void run@() {
    sluice::GraphCapture<Key@> graphs;
    sluice::DeviceBuffer<float> values{1000};
    sluice::Stream stream;
    for (int i = 0; i < 10; ++i)
        graphs.run(stream, Key@{1000}, [&](sluice::StreamRef on) { sluice::fill(on, values, 1.0f); });
    stream.sync();
}
END
}
# readbacks COUNT: each of values of a type of its own.
readbacks() {
    repeated "$1" <<'END'
struct Value@ { float value; };
void run@() {
    sluice::Readback<Value@> results{1000, [](std::size_t, std::span<const Value@>) {}};
    sluice::DeviceBuffer<Value@> values{1000};
    sluice::Stream stream;
    results.push(stream, values);
    results.finish();
}
END
}

# What a program of 0 pipelines includes beside sluice: CUDA's runtime, and standard headers.
runtime() { if [[ $has_cuda -eq 1 ]]; then echo '#include <cuda_runtime.h>'; fi; }
standard() {
    runtime
    printf '#include <%s>\n' array atomic concepts condition_variable deque iterator memory mutex optional span string thread utility vector
}

# The same copies as one pipeline, with two slots a hand-over, and every result checked.
by_hand() {
    cat <<'END'
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::size_t bytes = 1000 * sizeof(float);

struct Slot {
    float* values;
    cudaEvent_t ready, free;
};

void check(cudaError_t status) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    std::exit(1);
}

} // namespace

int main() {
    float *batch, *result;
    cudaStream_t streams[3];
    Slot first[2], second[2];
    check(cudaMallocHost(&batch, bytes));
    check(cudaMalloc(&result, bytes));
    for (cudaStream_t& stream : streams)
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (Slot* slot : {&first[0], &first[1], &second[0], &second[1]}) {
        check(cudaMalloc(&slot->values, bytes));
        check(cudaEventCreateWithFlags(&slot->ready, cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&slot->free, cudaEventDisableTiming));
    }
    // A wait for an event that was not recorded yet is none.
    for (int i = 0; i < 10; ++i) {
        const Slot &a = first[i % 2], &b = second[i % 2];
        check(cudaStreamWaitEvent(streams[0], a.free, 0));
        check(cudaMemcpyAsync(a.values, batch, bytes, cudaMemcpyHostToDevice, streams[0]));
        check(cudaEventRecord(a.ready, streams[0]));
        check(cudaStreamWaitEvent(streams[1], a.ready, 0));
        check(cudaStreamWaitEvent(streams[1], b.free, 0));
        check(cudaMemcpyAsync(b.values, a.values, bytes, cudaMemcpyDeviceToDevice, streams[1]));
        check(cudaEventRecord(a.free, streams[1]));
        check(cudaEventRecord(b.ready, streams[1]));
        check(cudaStreamWaitEvent(streams[2], b.ready, 0));
        check(cudaMemcpyAsync(result, b.values, bytes, cudaMemcpyDeviceToDevice, streams[2]));
        check(cudaEventRecord(b.free, streams[2]));
    }
    for (cudaStream_t stream : streams) {
        check(cudaStreamSynchronize(stream));
        check(cudaStreamDestroy(stream));
    }
    for (Slot* slot : {&first[0], &first[1], &second[0], &second[1]}) {
        check(cudaFree(slot->values));
        check(cudaEventDestroy(slot->ready));
        check(cudaEventDestroy(slot->free));
    }
    check(cudaFree(result));
    check(cudaFreeHost(batch));
}
END
}

# compilers: those that are asked for, a line each.
compilers() {
    if [[ -n ${CXX:-} ]]; then
        echo "$CXX"
    else
        command -v g++ clang++ || fail "expected g++ or clang++ in the PATH, or a compiler in CXX, found none"
    fi
}

# identify COMPILER: its name, its major version and its standard library, whose functions count as well.
identify() {
    echo '#include <version>' | "$1" -std=c++20 -dM -E -x c++ - 2>"$work/messages" | awk '
        { value[$2] = $3 }
        END {
            if (!("__GNUC__" in value)) exit 1
            name = "__clang__" in value ? "clang++ " value["__clang_major__"] : "g++ " value["__GNUC__"]
            library = "unknown"
            if ("_GLIBCXX_RELEASE" in value) library = "libstdc++-" value["_GLIBCXX_RELEASE"]
            if ("_LIBCPP_VERSION" in value) library = "libc++-" value["_LIBCPP_VERSION"]
            print name, library
        }' || {
        cat "$work/messages" >&2
        fail "expected a compiler with the options of g++, found $1"
    }
}

# pipelines COUNT: as a sentence has it, and with another word before the count.
pipelines() {
    local count=${1#*:} word=pipeline
    [[ $1 != *:* ]] || word=${1%%s:*}
    if [[ $count -eq 1 ]]; then echo "1 $word"; else echo "$count ${word}s"; fi
}

# compile FILE COMMAND…: into $work/object.o, what is said into $work/messages.
compile() { "${@:2}" -I"$here/../include" -c "$1" -o "$work/object.o" >"$work/messages" 2>&1; }

# not_compiled COMPILER: ends the script.
not_compiled() {
    cat "$work/messages" >&2
    fail "expected $1 to compile the programs of bench/compile_cost.sh, found the errors above"
}

# count_functions COMPILER WAY PROGRAM: PROGRAM is a number of pipelines, or another word and a number, as in sources:2.
count_functions() {
    local of=program
    [[ $3 != *:* ]] || of=${3%%:*}
    "$of" "${3#*:}" >"$work/counted.cpp"
    compile "$work/counted.cpp" "$1" "${count_flags[@]}" "${way_flag[$2]}" || not_compiled "$1"
    nm "$work/object.o" | grep -cE ' [TtWw] '
}

# check COMPILER: its functions beside the limits, and a sentence for the first that is too many.
check() {
    local cxx=$1 identity way count found limit sentence=''
    identity=$(identify "$cxx")
    if ! grep -q "^$identity " "$limits"; then
        echo "skipped: $limits has no line of $identity; 'CXX=$cxx bench/compile_cost.sh --renew' adds it"
        return
    fi
    for way in "${ways[@]}"; do
        for count in "${counted[@]}"; do
            limit=$(awk -v line="$identity $way $count" '$1 " " $2 " " $3 " " $4 " " $5 == line { print $6 }' "$limits")
            [[ $limit =~ ^[0-9]+$ ]] ||
                fail "expected one line '$identity $way $count FUNCTIONS' in $limits, found '$limit' for FUNCTIONS"
            found=$(count_functions "$cxx" "$way" "$count")
            echo "$identity, $way: $(pipelines "$count"), $found functions, limit $limit"
            if [[ -z $sentence && $((found * 100)) -gt $((limit * 105)) ]]; then
                sentence="$identity makes $found functions of a program with $(pipelines "$count") ($way), more than 5 % above the limit"
                sentence+=" of $limit in $limits: let the headers instantiate less, or accept it by"
                sentence+=" 'CXX=$cxx bench/compile_cost.sh --renew'"
            fi
        done
    done
    [[ -z $sentence ]] || fail "$sentence"
}

# renew: the lines of other compilers, and of the file's comment, stay as they are.
renew() {
    local cxx identity way count found
    cp "$limits" "$work/limits"
    while read -r cxx; do
        identity=$(identify "$cxx")
        sed -i "/^$identity /d" "$work/limits"
        for way in "${ways[@]}"; do
            for count in "${counted[@]}"; do
                found=$(count_functions "$cxx" "$way" "$count")
                echo "$identity $way $count $found" | tee -a "$work/limits"
            done
        done
    done <"$work/compilers"
    {
        sed -n '/^#/p' "$work/limits"
        sed '/^#/d' "$work/limits" | sort -k1,1 -k2,2n -k3,3 -k4,4 -k5,5V
    } >"$work/renewed"
    cat "$work/renewed" >"$limits"
}

# functions: a row for each compiler.
functions() {
    local cxx identity way count found counts
    printf 'Functions in the object, %s\n' "${count_flags[*]}"
    printf '%-36s %12s %12s %12s %12s %14s\n' '' '0 pipelines' '1 pipeline' '5 pipelines' '20 pipelines' 'each further'
    while read -r cxx; do
        identity=$(identify "$cxx")
        for way in "${ways[@]}"; do
            counts=()
            for count in 0 1 5 20; do
                found=$(count_functions "$cxx" "$way" "$count")
                counts+=("$found")
            done
            printf '%-36s %12d %12d %12d %12d %14s\n' "$identity, $way" "${counts[@]}" \
                "$(awk "BEGIN { print (${counts[2]} - ${counts[1]}) / 4 }")"
        done
    done <"$work/compilers"
    printf '%-36s %14s %14s %14s %14s %14s %14s\n' '' '1 source' 'a further one' '1 readback' 'a further one' '1 capture' 'a further one'
    while read -r cxx; do
        identity=$(identify "$cxx")
        for way in "${ways[@]}"; do
            counts=()
            for count in sources:1 sources:2 readbacks:1 readbacks:2 captures:1 captures:2; do
                found=$(count_functions "$cxx" "$way" "$count")
                counts+=("$found")
            done
            printf '%-36s %14d %14d %14d %14d %14d %14d\n' "$identity, $way" "${counts[0]}" $((counts[1] - counts[0])) \
                "${counts[2]}" $((counts[3] - counts[2])) "${counts[4]}" $((counts[5] - counts[4]))
        done
    done <"$work/compilers"
}

# median_of SECONDS…: the median, then the least and the greatest in brackets.
median_of() {
    printf '%s\n' "$@" | sort -n | awk '
        { value[NR] = $1 }
        END {
            median = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
            printf "%.2f [%.2f, %.2f]", median, value[1], value[NR]
        }'
}

# seconds TITLE EXTENSION COMMAND…: compiles the programs in turns and prints a row for each.
seconds() {
    local title=$1 extension=$2 run kind user system
    shift 2
    local kinds=(empty runtime standard by_hand 0 1 5 20)
    [[ $has_cuda -eq 1 ]] || kinds=(empty standard 0 1 5 20)
    for kind in "${kinds[@]}"; do
        case $kind in
        empty) : ;;
        runtime | standard | by_hand) "$kind" ;;
        *) program "$kind" ;;
        esac >"$work/$kind.$extension"
    done

    # This only brings the compiler and the headers into memory.
    compile "$work/0.$extension" "$@" || not_compiled "$1"
    local -A spent=()
    local TIMEFORMAT='%U %S'
    for ((run = 0; run < runs; ++run)); do
        for kind in "${kinds[@]}"; do
            { time compile "$work/$kind.$extension" "$@"; } 2>"$work/time" || not_compiled "$1"
            read -r user system <"$work/time"
            spent[$kind]+=" $(awk "BEGIN { print $user + $system }")"
        done
    done
    for kind in "${kinds[@]}"; do
        local name=${kind/_/ }
        [[ ! $kind =~ ^[0-9]+$ ]] || name=$(pipelines "$kind")
        # shellcheck disable=SC2086 # words by intent
        printf '%-36s %-38s %-14s %s\n' "$title" "${flags[*]}" "$name" "$(median_of ${spent[$kind]})"
    done
}

[[ -z $mode || -f $limits ]] || fail "expected a file of limits, found none at $limits"
if [[ $mode == --check ]]; then
    check "${CXX:-c++}"
    exit
fi
compilers >"$work/compilers"
if [[ $mode == --renew ]]; then
    renew
    exit
fi
functions

runs=${RUNS:-5}
[[ $runs =~ ^[0-9]+$ ]] || fail "expected a number of runs in RUNS, found '$runs'" 2
[[ $runs -gt 0 ]] || exit 0
nvcc=${NVCC-$(command -v nvcc || true)}
beside_nvcc=${nvcc:+$(dirname "$nvcc")/../include}
cuda_include=${CUDA_INCLUDE-${beside_nvcc:-/usr/local/cuda/include}}
has_cuda=0
where=()
if [[ -f $cuda_include/cuda_runtime.h ]]; then has_cuda=1 where=(-isystem "$cuda_include"); fi
read -ra flags <<<"-std=c++20 ${FLAGS--O2} -DSLUICE_HAS_CUDA=$has_cuda"
printf '\nProcessor seconds, median [least, greatest] of %s\n' "$runs"
while read -r cxx; do
    for way in "${ways[@]}"; do
        seconds "$(identify "$cxx"), $way" cpp "$cxx" "${flags[@]}" "${way_flag[$way]}" "${where[@]}"
    done
done <"$work/compilers"
if [[ -n $nvcc && $has_cuda -eq 1 ]]; then
    version=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    host=$(identify "${CXX:-g++}")
    for way in "${ways[@]}"; do
        seconds "nvcc $version, ${host% *}, $way" cu "$nvcc" "${flags[@]}" "${way_flag[$way]}" ${CXX:+-ccbin "$CXX"}
    done
fi
