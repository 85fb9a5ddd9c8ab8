#!/usr/bin/env bash
# Runs the gpu tests of a build under compute-sanitizer, and says for each test and tool whether it was clean:
#
#     bash tests/compute_sanitizer.sh build/test [--tests REGEX] [memcheck|racecheck|initcheck|synccheck …]
#
# All four tools where none is named, and of the tests all, or those whose name, or whose program's name, REGEX finds. Logs go to BUILD/compute-sanitizer. "nothing" is a program without code that the tool looks at.
# Tests that make a call or a kernel fail on purpose are left out: what they do is what the tools look for. So are the hazards from
# initcheck, since some of them read what nothing has written, and the test of CUPTI, which serves one tool at a time. NCCL's kernels,
# which wait for each other in loops, are not looked at, since they would take longer than ranks wait; so initcheck, which would
# not know of what they write, leaves out what exchanges. What the tools of
# CUDA 13.0 cannot do: racecheck fails itself ("TOOL") in some cases that call cuDNN or cuBLASLt, also where it is to look at no kernel
# at all. initcheck does not see what bulk copies from shared memory write (40 lines of plain CUDA show it), so that it takes the results
# of libraries' products for unwritten.
set -euo pipefail

fail() {
    printf 'compute_sanitizer: %s\n' "$1" >&2
    exit 2
}
[[ $# -ge 1 && -d $1/tests ]] || fail "expected the folder of a build with tests, found '${1:-}'"
build=$(cd "$1" && pwd)
shift
wanted=
if [[ ${1:-} == --tests ]]; then
    wanted=${2:-}
    [[ -n $wanted ]] || fail "--tests: expected an expression behind it"
    shift 2
fi
tools=("$@")
[[ ${#tools[@]} -gt 0 ]] || tools=(memcheck racecheck initcheck synccheck)
for tool in "${tools[@]}"; do
    [[ $tool =~ ^(memcheck|racecheck|initcheck|synccheck)$ ]] ||
        fail "there is no tool '$tool'; expected some of memcheck, racecheck, initcheck and synccheck"
done
command -v ctest >/dev/null || fail "expected ctest in the PATH, found none"
logs=$build/compute-sanitizer
mkdir -p "$logs"

# As CTest runs them: a program of many files is a test for each, and its own name stands for all of them. Name and command of
# each, all ended by zeros.
on_purpose='(fault|fault_attributed|launch_errors|frozen_encoder|report\.cupti)\.gpu$'
list='import json, os, re, sys
expression, on_purpose = sys.argv[1:]
quoted = f"\x27{expression}\x27"
try:
    wanted = re.compile(expression)
except re.error as error:
    sys.exit(f"compute_sanitizer: --tests: expected a regular expression, found {quoted}: {error}")
known, left_out, found = set(), [], False
for test in json.load(sys.stdin)["tests"]:
    name, command = test["name"], test.get("command", [""])
    if not command[0].endswith(".gpu"):
        continue
    program = os.path.basename(command[0])
    known.add(program)
    if not wanted.search(name) and not wanted.search(program):
        continue
    if re.search(on_purpose, name):
        left_out.append(name)
        continue
    found = True
    print(name, command[0], command[1] if len(command) > 1 else "", sep="\0", end="\0")
if not known:
    sys.exit("compute_sanitizer: expected gpu tests that were built where there is a GPU, found none")
if not found and left_out:
    names = ", ".join(left_out)
    sys.exit(f"compute_sanitizer: --tests: {quoted} names only tests that are left out: {names}")
if not found:
    names = ", ".join(sorted(known))
    sys.exit(f"compute_sanitizer: --tests: {quoted} names no gpu test; expected one of these, or of what they hold, as in "
             f"pipeline.ends.gpu: {names}")'
ctest --test-dir "$build" -L '^gpu$' --show-only=json-v1 | python3 -c "$list" "$wanted" "$on_purpose" >"$logs/tests" || exit 2
mapfile -d '' -t tests <"$logs/tests"
command -v compute-sanitizer >/dev/null || fail "expected compute-sanitizer in the PATH, found none"

# Replays that follow each other without a wait, of a graph with a conditional node, break memcheck and synccheck: they
# report addresses inside an allocation as outside of it, or lose the device. Seen with versions 2025.3.1 and 2026.4.0;
# with 2025.3.1 also in forty lines of plain CUDA with one `while` node, which run rightly without the tool. With each
# launch waited for, and no other program on the device, that goes away.
export wait_for_launches='^(graph\..*|examples\.graph_replay)\.gpu$'

# Of these programs each test case is a run of its own, beside the others: networks take minutes as a whole.
case_by_case='^(ragged\.rows_sort|nn|nn_detector|nn_networks|nn_resnet)\.gpu$'

# racecheck looks at every access to shared memory, which takes minutes where kernels sort there. Only their first hundred launches
# are looked at: those for a batch of each kind that a case draws.
export few_launches='^ragged\.rows_sort\.gpu$'

# Whether a program's code has what a tool looks at: racecheck at shared memory, synccheck at barriers. Where neither a kernel nor
# a library with kernels has any, there is nothing to run; where cuobjdump is missing, that is unknown.
concerns() {
    local tool=$1 program=$2 wanted
    case $tool in
    racecheck) wanted='LDS|STS|LDSM|STSM|ATOMS|UBLKCP|UTMALDG|UTMASTG|UTMAREDG' ;;
    synccheck) wanted='BAR|SYNCS|WARPSYNC|UCGABAR_ARV|UCGABAR_WAIT' ;;
    *) return 0 ;;
    esac
    if ! command -v cuobjdump >/dev/null || ldd "$program" | grep -qE 'libcu(blas|dnn|fft)|libnccl'; then return 0; fi
    local code
    code=$(cuobjdump -sass "$program" 2>/dev/null) || return 0
    [[ $code != *Function* ]] || grep -qE "\b($wanted)\b" <<<"$code"
}
export -f concerns

# A tool slows a program down and makes some copies wait for themselves, so that a test which looks at what has not
# happened yet may fail there; the tool's own count is what is asked for.
check() {
    local logs=$1 tool=$2 name=$3 program=$4 filter=$5 case=$6 log verdict=UNCLEAN note='' options=()
    if [[ $name =~ $wait_for_launches ]]; then export CUDA_LAUNCH_BLOCKING=1; fi
    if ! concerns "$tool" "$program"; then
        echo "nothing $tool $name${case:+: $case}"
        return
    fi
    log=$logs/$name.$tool${case:+.${case//[^[:alnum:]]/_}}.log
    if [[ $tool == racecheck && $name =~ $few_launches ]]; then options=(--launch-count 100); fi
    if ldd "$program" | grep -q libnccl; then
        options+=(--kernel-name-exclude kns=nccl)
        export CUDA_MODULE_LOADING=EAGER # a kernel that is loaded late would wait for another device's collective, without an end
    fi
    # In a filter a comma ends a name, and a question mark is any letter.
    compute-sanitizer --tool "$tool" --report-api-errors no "${options[@]}" "$program" ${filter:+"$filter"} \
        ${case:+"-tc=${case//,/?}"} >"$log" 2>&1 || note=" (tests failed: $log)"
    if grep -q 'Internal Sanitizer Error' "$log"; then
        verdict='TOOL   ' # it failed itself, and what it says of the program counts for nothing
    elif grep -q 'cudaErrorIllegalAddress\|cudaErrorLaunchFailure' "$log"; then
        verdict='LOST   ' # the device, so that the count is of what came before
    elif grep -q 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$log" && grep -q 'test cases: *[1-9]' "$log"; then
        verdict='clean  '
    fi
    echo "$verdict $tool $name${case:+: $case}$note"
}
export -f check

# The runs of the tests whose names match, or with `-v` do not, each as the arguments of `check`, all ended by zeros.
runs() {
    local tool case cases i
    for tool in "${tools[@]}"; do
        for ((i = 0; i < ${#tests[@]}; i += 3)); do
            grep -qE "$@" <<<"${tests[i]}" || continue
            if [[ $tool == initcheck && ${tests[i]} =~ ^(hazards|collective|nn_exchange) ]]; then continue; fi
            cases=('')
            if [[ ${tests[i]} =~ $case_by_case ]]; then
                mapfile -t cases < <("${tests[i + 1]}" --list-test-cases --no-intro | grep -v '^\[doctest\]\|^===')
            fi
            for case in "${cases[@]}"; do
                printf '%s\0' "$logs" "$tool" "${tests[i]}" "${tests[i + 1]}" "${tests[i + 2]}" "$case"
            done
        done
    done
}

: >"$logs/summary"
runs "$wait_for_launches" | xargs -0 -r -n 6 bash -c 'check "$@"' check | tee -a "$logs/summary"
runs -v "$wait_for_launches" | xargs -0 -r -n 6 -P "${JOBS:-8}" bash -c 'check "$@"' check | tee -a "$logs/summary"
! grep -q '^UNCLEAN\|^LOST\|^TOOL' "$logs/summary"
