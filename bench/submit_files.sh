#!/usr/bin/env bash
# The files of include/sluice/pipeline that one steady submit passes, with how many lines of each, by gcov: accessors of one line count.
# Two stages that copy, on the CPU backend, which looks for its streams' faults in two files that CUDA's does not pass.
#
#     bench/submit_files.sh             lists them under overlapped and graphed
#     bench/submit_files.sh --check     fails where they are more than 9 and 13
#
# Takes g++ (or CXX, a GCC) and its gcov (or GCOV).
set -euo pipefail
export LC_ALL=C

if [[ $# -gt 1 || ${1:---check} != --check ]]; then
    echo "submit_files: expected --check or nothing, found '$*'" >&2
    exit 2
fi
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cxx=${CXX:-g++}
gcov=${GCOV:-gcov}
if ! "$cxx" --version 2> /dev/null | grep -q 'Free Software' || ! command -v "$gcov" > /dev/null; then
    echo "skipped: submit_files takes a GCC and its gcov"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > steps.cpp << 'END'
#include <cstdlib>
#include <string_view>

#include <sluice/sluice.hpp>

extern "C" void __gcov_reset();
extern "C" void __gcov_dump();

struct Slot {
    sluice::DeviceBuffer<float> values{1000};
};

int main(int, char** arguments) {
    sluice::DeviceBuffer<float> batch{1000}, result{1000};
    sluice::PipelineOptions options;
    options.schedule =
        std::string_view(arguments[1]) == "graphed" ? sluice::Schedule::graphed : sluice::Schedule::overlapped;
    options.steps_per_graph = 1;
    sluice::Stage first{"first", [](sluice::StreamRef stream, const sluice::DeviceBuffer<float>& in, Slot& out) {
                            sluice::copy(stream, out.values, in);
                        }};
    sluice::Stage second{"second", [&](sluice::StreamRef stream, const Slot& in) { sluice::copy(stream, result, in.values); }};
    sluice::Pipeline pipeline{sluice::Stages{first, second}, sluice::Slots{[](int) { return Slot{}; }}, options};
    for (int i = 0; i < 40; ++i)
        pipeline.submit(batch);
    __gcov_reset();
    pipeline.submit(batch);
    __gcov_dump();
    std::_Exit(0); // or the end would count as well
}
END
"$cxx" -std=c++20 -O0 --coverage -DSLUICE_HAS_CUDA=0 -I"$root/include" steps.cpp -o steps -pthread

status=0
# passed SCHEDULE MOST
passed() {
    rm -f ./*.gcda
    ./steps "$1"
    "$gcov" -t ./*.gcda | awk '
        /^ *-: *0:Source:/ { sub(/.*0:Source:/, ""); file = match($0, /sluice\/pipeline\/.*/) ? substr($0, RSTART) : "" }
        file != "" && $1 ~ /^[0-9]+[*]?:$/ { if (!((file, $2) in seen)) { seen[file, $2]; ++lines[file] } }
        END { for (file in lines) printf "%6d  %s\n", lines[file], file }' | sort -k2 > files
    echo "$1: $(wc -l < files) files"
    cat files
    if [[ -n $check && $(wc -l < files) -gt $2 ]]; then
        echo "submit_files: more than $2" >&2
        status=1
    fi
}
check=${1:-}
passed overlapped 9
passed graphed 13
exit $status
