#!/usr/bin/env bash
# Runs the gpu tests of a build under compute-sanitizer, and says for each program and tool whether it was clean:
#
#     bash tests/compute_sanitizer.sh build/test [memcheck|racecheck|initcheck|synccheck …]
#
# All four tools without a second argument. Logs go to BUILD/compute-sanitizer. Tests that make a call or a kernel
# fail on purpose are left out: what they do is what the tools look for.
set -euo pipefail

[[ $# -ge 1 && -d $1/tests ]] || { echo "compute_sanitizer: expected the folder of a build with tests" >&2; exit 2; }
build=$(cd "$1" && pwd)
shift
tools=("$@")
[[ ${#tools[@]} -gt 0 ]] || tools=(memcheck racecheck initcheck synccheck)
logs=$build/compute-sanitizer
mkdir -p "$logs"

on_purpose='(fault|fault_attributed|launch_errors|frozen_encoder)\.gpu$'
mapfile -t programs < <(find "$build/tests" -type f -executable -name '*.gpu' | grep -vE "$on_purpose" | sort)
[[ ${#programs[@]} -gt 0 ]] || { echo "compute_sanitizer: $build holds no gpu tests" >&2; exit 2; }

# Replays that follow each other without a wait, of a graph with a conditional node, break memcheck and synccheck: they
# report addresses inside an allocation as outside of it, or lose the device. Seen with versions 2025.3.1 and 2026.4.0;
# with 2025.3.1 also in forty lines of plain CUDA with one `while` node, which run rightly without the tool. With each
# launch waited for, that goes away.
export wait_for_launches='(/graph|graph_replay)\.gpu$'

# racecheck looks at every access to shared memory, which takes minutes where kernels sort there. Of such programs each test
# case is a run of its own, beside the others, and only its first hundred launches are looked at: those for a batch of each
# kind that the case draws.
case_by_case='/ragged\.rows_sort\.gpu$'

# A tool slows a program down and makes some copies wait for themselves, so that a test which looks at what has not
# happened yet may fail there; the tool's own count is what is asked for.
check() {
    local tool=$1 program=$2 case=$3 log verdict=UNCLEAN note='' options=()
    if [[ $program =~ $wait_for_launches ]]; then export CUDA_LAUNCH_BLOCKING=1; fi
    log=$4/$(basename "$program").$tool${case:+.${case//[^[:alnum:]]/_}}.log
    if [[ -n $case ]]; then options=(--launch-count 100); fi
    # In a filter a comma ends a name, and a question mark is any letter.
    compute-sanitizer --tool "$tool" --report-api-errors no "${options[@]}" "$program" ${case:+"-tc=${case//,/?}"} \
        >"$log" 2>&1 || note=" (tests failed: $log)"
    if grep -q 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$log" && grep -q 'test cases: *[1-9]' "$log"; then
        verdict='clean  '
    fi
    echo "$verdict $tool $(basename "$program")${case:+: $case}$note"
}
export -f check

for tool in "${tools[@]}"; do
    for program in "${programs[@]}"; do
        cases=('')
        if [[ $tool == racecheck && $program =~ $case_by_case ]]; then
            mapfile -t cases < <("$program" --list-test-cases --no-intro | grep -v '^\[doctest\]\|^===')
        fi
        for case in "${cases[@]}"; do printf '%s\0%s\0%s\0' "$tool" "$program" "$case"; done
    done
done | xargs -0 -n 3 -P 8 bash -c 'check "$1" "$2" "$3" "$0"' "$logs" | tee "$logs/summary"
! grep -q '^UNCLEAN' "$logs/summary"
