#!/usr/bin/env bash
# The figures of docs/performance, group by group, and whether they are still those of the pages:
#
#     bash bench/figures.sh BUILD OUT GROUP…          BUILD: a release build; OUT: a folder for what is measured
#     bash bench/figures.sh --lanes BUILD OUT         all groups on a machine of several GPUs, by figures/lanes.py
#     bash bench/figures.sh --check OUT… [--write]    compares what is in the folders with the pages, by figures/check.py
#
# Groups, and the targets of BUILD that they need:
#   host_time                    pipeline_overhead graph_overhead
#   shapes shares live ports     pipeline_shapes stage_shares live_input ports
#   overload cameras             live_input live
#   replays                      graph_overhead graph_replay; PyTorch
#   ragged                       ragged
#   schedules                    schedule_choice frozen_encoder gpu_augment masked_giou
#   reports encoder              frozen_encoder gpu_augment
#   encoder_pytorch encoder_batches   frozen_encoder; PyTorch
#   augment augment_pytorch      augment gpu_augment; PyTorch
#   giou giou_pytorch            masked_giou detector_layers giou; PyTorch
#   kernels                      frozen_encoder detector_layers resnet18; ncu
#   resnet18_below (rungs 0 to 5) resnet18_float16 (6 to 8)   resnet18; PyTorch
#   inference memory             resnet18
#   operators pipelines step_cost     the package of examples/pytorch
#   two_gpus ranks               on two GPUs: pipeline_shapes collectives frozen_encoder resnet18
#
# Groups that are right or wrong at any speed, and may run beside each other:
#
#   losses_tf32 losses_float16   resnet18; PyTorch
#   accuracies                   gpu_augment resnet18
#   isolated                     the package of examples/pytorch
#   kills                        on two GPUs: frozen_encoder
#
# PYTHON names the Python that has PyTorch, python3 by default. A command that fails, or takes longer than FIGURES_SECONDS (580), is
# said to, and the others go on. OUT has a report for each, what it printed, and the machine with the commit, which FIGURES_COMMIT
# names where git doesn't know it. Says of each how long it took.

# shellcheck disable=SC2317 # groups are called by their names
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^$/s/^# \?//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
# The whole name of OUT, which is made where it is not there.
folder_of_out() {
    { mkdir -p "$1" && [[ -w $1 ]] && cd "$1"; } 2>/dev/null && pwd && return
    echo "figures: OUT: expected a folder that can be written, or made, not '$1'" >&2
    return 2
}
if [[ ${1:-} == --check ]]; then
    [[ $# -ge 2 ]] || usage
    exec python3 "$here/figures/check.py" "${@:2}"
fi
if [[ ${1:-} == --lanes ]]; then
    [[ $# -ge 3 ]] || usage
    [[ -d $2 ]] || { echo "figures: BUILD: expected the folder of a build, found '$2'" >&2; exit 2; }
    folder_of_out "$3" >/dev/null || exit
    exec python3 "$here/figures/lanes.py" "${@:2}"
fi
[[ $# -ge 3 ]] || usage
[[ -d $1 ]] || { echo "figures: BUILD: expected the folder of a build, found '$1'" >&2; exit 2; }
build=$(cd "$1" && pwd)
out=$(folder_of_out "$2") || exit
cd "$here/.." || exit
bench=$build/bench examples=$build/examples encoder=$build/examples/frozen_encoder/frozen_encoder
export NCCL_NVLS_ENABLE=0
failed=0

# run NAME COMMAND…: says what is run, keeps what it prints in OUT/NAME.txt, and goes on where it fails.
run() {
    local name=$1 begun=$SECONDS code limit=()
    shift
    rm -f "$out/$name.json" "$out/$name.txt" # of an earlier run
    [[ $(type -t "$1") == function ]] || ! command -v timeout >/dev/null || limit=(timeout --kill-after=10 "${FIGURES_SECONDS:-580}")
    echo "\$ $*"
    ${limit[@]+"${limit[@]}"} "$@" | tee "$out/$name.txt"
    code=${PIPESTATUS[0]}
    ((code == 0)) || { echo "exit code $code"; failed=1; }
    echo "# $name: $((SECONDS - begun)) s"
}
# Further arguments by which a program writes OUT/NAME.json.
benchmark() { run "$1" "$bench/$2" "${@:3}" "--benchmark_out=$out/$1.json"; }
experiment() { run "$1" "$examples/$2/$2" "${@:3}" --json "$out/$1.json"; }
script() { run "$1" "${PYTHON:-python3}" "bench/$2" "${@:3}" --json "$out/$1.json"; }
# Runs it on each of two GPUs by itself, at the same time.
both_alone() {
    local visible=${CUDA_VISIBLE_DEVICES:-0,1}
    CUDA_VISIBLE_DEVICES=${visible%%,*} "$@" &
    CUDA_VISIBLE_DEVICES=${visible#*,} "$@" || return
    wait $!
}
resnet18() { script "$1" resnet18.py "$examples/resnet18/resnet18" --rounds 1 "${@:2}"; }
plans=$out/resnet18_plans # cuDNN's algorithms, which take long to be chosen by trial
rungs() { resnet18 "$@" --losses 0 --no-inference --kernels --plans "$plans"; }

host_time() {
    local turn
    for turn in 1 2 3; do
        benchmark "pipeline_overhead_$turn" pipeline_overhead --benchmark_filter=cuda/two_stage
        benchmark "graph_overhead_$turn" graph_overhead --benchmark_filter=cuda/two_stage
    done
}
shapes() {
    local group
    for group in host_time uneven slow_source cpu_stage multi_copy; do
        benchmark "shapes_$group" pipeline_shapes "--benchmark_filter=^$group"
    done
}
replays() {
    benchmark graphs graph_overhead "--benchmark_filter=cuda/(replay|while)" --benchmark_repetitions=5
    experiment graph_replay graph_replay --backend cuda
    script graphs_pytorch pytorch/graphs.py
}
shares() { run stage_shares "$bench/stage_shares"; }
live() { run live_input "$bench/live_input" --check --seconds 2; }
overload() { run overload "$bench/live_input" --part overload --rows a --side sluice --seconds 120 --check; }
cameras() {
    run cameras_30 "$examples/live/live" --backend cuda --rate 30 --seconds 10
    run cameras_1000 "$examples/live/live" --backend cuda --rate 1000 --seconds 3 --schedule graphed --in-flight 4
}
ports() { benchmark ports ports; }
ragged() { benchmark ragged ragged --benchmark_filter=cuda/; }
schedules() {
    run schedule_choice "$bench/schedule_choice"
    script experiments schedule_choice.py "$examples" --rounds 1
}
reports() {
    local turn batch
    for turn in 1 2 3; do
        experiment "newcomer_$turn" frozen_encoder --data examples/data/digits # as a newcomer runs it
    done
    for turn in 1 2 3; do
        experiment "digits_plain_$turn" frozen_encoder --data examples/data/digits --backend cuda --steps 3000 --workers 8
        experiment "digits_report_$turn" frozen_encoder --data examples/data/digits --backend cuda --steps 3000 --workers 8 --report
    done
    for batch in 2 8 32; do
        experiment "kernels_encoder_$batch" frozen_encoder --backend cuda --batch "$batch" --steps 200 --warmup 60 --kernels \
            --schedule overlapped,graphed
    done
    for batch in 8 32 128; do
        experiment "kernels_augment_$batch" gpu_augment --backend cuda --augment device --batch "$batch" --steps 120 --kernels \
            --schedule overlapped,graphed
    done
}
encoder() {
    local turn batch precision
    for turn in 1 2 3; do
        experiment "encoder_plain_$turn" frozen_encoder --backend cuda --batch 8 --steps 500 --warmup 80
        experiment "encoder_report_$turn" frozen_encoder --backend cuda --batch 8 --steps 500 --warmup 80 --report
    done
    for batch in 1 8 32 128; do
        for precision in tf32 bfloat16; do
            experiment "encoder_${precision}_$batch" frozen_encoder --backend cuda --batch "$batch" --precision "$precision" \
                --steps $((batch == 128 ? 40 : 300)) --warmup 30 --schedule serial,overlapped,graphed
        done
    done
    local network
    for network in encoder decoder; do
        experiment "only_$network" frozen_encoder --backend cuda --batch 8 --only "$network" --steps 500 --warmup 80
    done
}
encoder_pytorch() {
    script encoder_pytorch frozen_encoder.py "$encoder" --batches 8 --rounds 1 --compiled --losses 0
    script encoder_bfloat16 frozen_encoder.py "$encoder" --batches 8 --rounds 1 --bfloat16 --losses 0
}
encoder_batches() { script encoder_batches frozen_encoder.py "$encoder" --rounds 2 --losses 0; }
augment() {
    local on
    benchmark augment augment --benchmark_filter=cuda/
    for on in device none; do
        experiment "training_$on" gpu_augment --backend cuda --augment "$on" --batch 32 --steps 300 --schedule serial,overlapped,graphed
        experiment "training_${on}_autotune" gpu_augment --backend cuda --augment "$on" --batch 32 --steps 300 --schedule graphed \
            --algorithms autotune
    done
    experiment training_sweep gpu_augment --backend cuda --sweep --steps 60 --schedule serial,overlapped,graphed
}
augment_pytorch() {
    script augment_pytorch pytorch/augment.py --part operators --batch 32 256 --only published torchvision "exact, in stages"
    script training_pytorch pytorch/augment.py --part training --batch 8 16 32 64 128 256 --only alone serial two-streams
}
giou() {
    experiment giou masked_giou --backend cuda --part losses --steps 200
    experiment giou_bfloat16 masked_giou --backend cuda --part losses --steps 200 --predictions bfloat16
    experiment giou_work masked_giou --backend cuda --part work
    experiment detector_bfloat16 masked_giou --backend cuda --part forward
    experiment detector_tf32 masked_giou --backend cuda --part forward --precision tf32
    benchmark detector_layers detector_layers
    benchmark giou_by_hand giou --benchmark_filter=cuda/float32/ragged
    experiment giou_digits masked_giou --backend cuda --data examples/data/digits --steps 6000 --schedule serial,overlapped,graphed
}
giou_pytorch() {
    script giou_pytorch pytorch/giou.py --quick
    script giou_loop_pytorch pytorch/giou.py --part losses --only loop --seconds 0.1
}
# By ncu, each with its caches flushed before.
kernels_of() { run "kernels_of_$1" "${PYTHON:-python3}" bench/kernels.py --json "$out/kernels_of_$1.json" -- "${@:2}"; }
kernels() {
    kernels_of encoder "$encoder" --backend cuda --batch 8 --schedule serial --warmup 2 --steps 6
    kernels_of detector "$bench/detector_layers" --benchmark_filter=^step/bfloat16
    kernels_of resnet18 "$examples/resnet18/resnet18" --backend cuda --rung 7 --schedule overlapped --algorithms heuristic --warmup 2 --steps 4
}
resnet18_below() { rungs resnet18_below --rungs 0,1,2,3,4,5; }
resnet18_float16() { rungs resnet18_float16 --rungs 6,7,8; }
losses_tf32() { resnet18 losses_tf32 --rungs 5 --only-losses; }
losses_float16() { resnet18 losses_float16 --rungs 6 --only-losses; }
# Of held-out digits.
accuracies() {
    local batch seed
    for batch in 32 64 1024; do
        experiment "resnet18_digits_$batch" resnet18 --backend cuda --data digits --rung 8 --epochs 8 --batch "$batch"
    done
    for seed in {1..14}; do
        experiment "augment_digits_$seed" gpu_augment --backend cuda --data examples/data/digits --seed "$seed"
    done
}
memory() { experiment resnet18_memory resnet18 --backend cuda --rung 7 --steps 1000 --plans "$plans"; } # the device's stays as it is
inference() { experiment inference resnet18 --backend cuda --inference --steps 500 --plans "$plans"; }
two_gpus() {
    benchmark shapes_two_gpus pipeline_shapes --benchmark_filter=^two_gpus
    run collectives "$bench/collectives"
    local common=(frozen_encoder --backend cuda --steps 500 --warmup 80 --schedule "serial,overlapped,graphed")
    experiment two_gpus_one "${common[@]}"
    experiment two_gpus_apart "${common[@]}" --decoder-device 1
    experiment two_gpus_decoder "${common[@]}" --only decoder
    experiment two_gpus_decoder_there "${common[@]}" --only decoder --decoder-device 1
}
ranks() {
    local batch exchange common
    for batch in 8 128; do
        common=(frozen_encoder --backend cuda --batch "$batch" --warmup 60 --schedule "overlapped,graphed" --steps 300)
        for exchange in shards factors gradients; do
            experiment "ranks_${batch}_$exchange" "${common[@]}" --gpus 2 --exchange "$exchange" --report \
                --timeline "$out/encoder_${batch}_$exchange.html"
        done
        experiment "ranks_${batch}_one" "${common[@]}"
        if command -v mpirun >/dev/null; then # a process a GPU
            run "ranks_${batch}_mpi" mpirun --allow-run-as-root --oversubscribe -np 2 "$encoder" "${common[@]:1}"
        fi
    done
    experiment encoder_one frozen_encoder --backend cuda --batch 16 --steps 300 --warmup 60 --schedule overlapped --losses
    experiment encoder_two frozen_encoder --backend cuda --gpus 2 --batch 8 --steps 300 --warmup 60 --schedule overlapped --losses
    local resnet=(--backend cuda --rung 7 --algorithms heuristic --steps 100)
    experiment ranks_resnet18_one resnet18 "${resnet[@]}"
    experiment ranks_resnet18_two resnet18 "${resnet[@]}" --gpus 2
    # What two GPUs do at the same time without each other: the machine's share of what a rank loses.
    run both_alone_resnet18 both_alone "$examples/resnet18/resnet18" "${resnet[@]}"
    run both_alone_encoder both_alone "$encoder" --backend cuda --batch 128 --steps 1500 --warmup 60 --schedule graphed
    script ddp pytorch/ddp.py --gpus 2
}
kills() {
    local seed halves=() half
    for seed in 1 2; do
        (
            run "kills_$seed" python3 tests/kill_ranks.py "$encoder" --backend cuda --steps 1000 --warmup 0 --image 64 --depth 6 \
                --schedule overlapped --kills 10 --seed "$seed"
            exit "$failed"
        ) &
        halves+=($!)
    done
    for half in "${halves[@]}"; do
        wait "$half" || failed=1
    done
}
operators() { script operators pytorch/sluice_operators.py; }
pipelines() {
    local turns=(--steps 100 --repeats 2)
    script pipelines pytorch/sluice_pipelines.py --part frozen_encoder --batch 1 2 4 8 16 32 --steps 50 --repeats 3
    script pipelines_augment pytorch/sluice_pipelines.py --part augment --batch 32 "${turns[@]}"
    script pipelines_prefetch pytorch/sluice_pipelines.py --part prefetch "${turns[@]}"
}
isolated() { script pipelines_isolated pytorch/sluice_pipelines.py --isolated 20; }
step_cost() { script step_cost pytorch/step_cost.py; }

groups=" host_time shapes replays shares live overload cameras ports ragged schedules reports encoder encoder_pytorch encoder_batches augment augment_pytorch
giou giou_pytorch kernels resnet18_below resnet18_float16 inference memory two_gpus ranks operators pipelines step_cost
losses_tf32 losses_float16 accuracies isolated kills "
for group in "${@:3}"; do
    [[ ${groups//$'\n'/ } == *" $group "* ]] || { echo "figures: there is no group '$group'" >&2; exit 2; }
done
{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no NVIDIA GPU"
} | sort | uniq -c | sed "s/^ *//; s/\$/, commit ${FIGURES_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}/" >>"$out/machine.txt"
for group in "${@:3}"; do
    "$group"
done
exit "$failed"
