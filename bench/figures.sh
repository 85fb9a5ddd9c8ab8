#!/usr/bin/env bash
# The figures of docs/performance, group by group, each from one run on one machine:
#
#     bash bench/figures.sh BUILD OUT GROUP…        BUILD: a release build; OUT: a folder for reports as JSON
#
# Groups: host_time, shapes, shares, live, ports, schedules, reports, resnet18_below (rungs 0 to 5), resnet18_float16 (6 and 8), resnet18_compiled (7, and
# PyTorch's best), resnet18_losses, inference; on two GPUs two_gpus, ranks, kills; with the package of examples/pytorch operators,
# pipelines. Says of each command how long it took.
set -uo pipefail
[[ $# -ge 3 && -d $1 ]] || { sed -n '2,8s/^# \?//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
build=$(cd "$1" && pwd) out=$(mkdir -p "$2" && cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
bench=$build/bench examples=$build/examples
export NCCL_NVLS_ENABLE=0
failed=0

# Says what is run, and goes on where it fails.
run() {
    local begun=$SECONDS
    echo "\$ $*"
    "$@" || { echo "exit code $?"; failed=1; }
    echo "# $((SECONDS - begun)) s"
}
# Runs it on each of two GPUs by itself, at the same time.
both_alone() {
    CUDA_VISIBLE_DEVICES=0 "$@" &
    CUDA_VISIBLE_DEVICES=1 "$@" || return
    wait $!
}
resnet18() { run python3 bench/resnet18.py "$examples/resnet18/resnet18" --rounds 1 "${@:2}" --json "$out/$1.json"; }

host_time() {
    for _ in 1 2 3; do run "$bench/pipeline_overhead" --benchmark_filter=cuda/two_stage; done
    run "$bench/graph_overhead" --benchmark_filter=cuda/two_stage
}
shapes() {
    local group
    for group in host_time uneven slow_source cpu_stage multi_copy; do
        run "$bench/pipeline_shapes" "--benchmark_filter=^$group"
    done
}
shares() { run "$bench/stage_shares"; }
live() { run "$bench/live_input" --check; }
ports() { run "$bench/ports"; }
schedules() {
    run "$bench/schedule_choice"
    run python3 bench/schedule_choice.py "$examples" --rounds 1 --json "$out/schedule_choice.json"
}
reports() {
    local batch
    run "$examples/frozen_encoder/frozen_encoder" --data examples/data/digits # as a newcomer runs it
    for batch in 2 8 32; do
        run "$examples/frozen_encoder/frozen_encoder" --backend cuda --batch "$batch" --steps 200 --warmup 60 --kernels \
            --schedule overlapped,graphed
    done
    for batch in 8 32 128; do
        run "$examples/gpu_augment/gpu_augment" --backend cuda --augment device --batch "$batch" --steps 120 --kernels \
            --schedule overlapped,graphed
    done
}
resnet18_below() { resnet18 resnet18_below --rungs 0,1,2,3,4,5 --losses 0 --no-inference --kernels; }
resnet18_float16() { resnet18 resnet18_float16 --rungs 6,8 --losses 0 --no-inference --kernels; }
resnet18_compiled() { resnet18 resnet18_compiled --rungs 7 --losses 0 --no-inference --kernels; }
resnet18_losses() {
    resnet18 resnet18_losses --only-losses
    run "$examples/resnet18/resnet18" --backend cuda --data digits --rung 8 --epochs 8 # held-out accuracy
    run "$examples/resnet18/resnet18" --backend cuda --rung 7 --steps 1000             # device memory stays as it is
}
inference() {
    run "$examples/resnet18/resnet18" --backend cuda --inference --steps 500
    run "$bench/resnet18_repeats"
}
two_gpus() {
    run "$bench/pipeline_shapes" --benchmark_filter=^two_gpus
    run "$bench/collectives"
    local encoder="$examples/frozen_encoder/frozen_encoder"
    run "$encoder" --backend cuda --decoder-device 1 --steps 500 --warmup 80 --schedule overlapped,graphed
    run "$encoder" --backend cuda --only decoder --steps 500 --warmup 80 --schedule overlapped,graphed
}
ranks() {
    local encoder="$examples/frozen_encoder/frozen_encoder" batch exchange
    for batch in 8 128; do
        for exchange in shards factors gradients; do
            run "$encoder" --backend cuda --gpus 2 --batch "$batch" --exchange "$exchange" --steps 300 --warmup 60 \
                --schedule overlapped,graphed --report --timeline "$out/encoder_${batch}_$exchange.html"
        done
        run "$encoder" --backend cuda --batch "$batch" --steps 300 --warmup 60 --schedule overlapped,graphed
        if command -v mpirun >/dev/null; then # a process a GPU
            run mpirun --allow-run-as-root --oversubscribe -np 2 "$encoder" --backend cuda --batch "$batch" --steps 300 \
                --warmup 60 --schedule overlapped,graphed
        fi
    done
    run "$encoder" --backend cuda --batch 16 --steps 300 --warmup 60 --schedule overlapped --losses --json "$out/encoder_one.json"
    run "$encoder" --backend cuda --gpus 2 --batch 8 --steps 300 --warmup 60 --schedule overlapped --losses \
        --json "$out/encoder_two.json"
    local resnet=("$examples/resnet18/resnet18" --backend cuda --rung 7 --algorithms heuristic --steps 100)
    run "${resnet[@]}"
    run "${resnet[@]}" --gpus 2
    # What two GPUs do at the same time without each other: the machine's share of what a rank loses.
    run both_alone "${resnet[@]}"
    run both_alone "$encoder" --backend cuda --batch 128 --steps 1500 --warmup 60 --schedule graphed
    run python3 bench/pytorch/ddp.py --gpus 2 --json "$out/ddp.json"
}
kills() {
    run python3 tests/kill_ranks.py "$examples/frozen_encoder/frozen_encoder" --backend cuda --steps 1000 --warmup 0 \
        --image 64 --depth 6 --schedule overlapped
}
operators() { run python3 bench/pytorch/sluice_operators.py --json "$out/operators.json"; }
pipelines() {
    run python3 bench/pytorch/sluice_pipelines.py --part frozen_encoder --batch 1 2 4 8 16 32 --json "$out/pipelines.json"
    run python3 bench/pytorch/sluice_pipelines.py --part augment --json "$out/pipelines_augment.json"
    run python3 bench/pytorch/sluice_pipelines.py --part prefetch --json "$out/pipelines_prefetch.json"
    run python3 bench/pytorch/sluice_pipelines.py --isolated 20
    run python3 bench/pytorch/step_cost.py --json "$out/step_cost.json"
}

for group in "${@:3}"; do
    case $group in
    host_time | shapes | shares | live | ports | schedules | reports | resnet18_* | inference | two_gpus | ranks | kills | operators | pipelines)
        declare -F "$group" >/dev/null || { echo "figures: there is no group '$group'" >&2; exit 2; }
        "$group"
        ;;
    *) echo "figures: there is no group '$group'" >&2; exit 2 ;;
    esac
done
exit "$failed"
