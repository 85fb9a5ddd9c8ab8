#!/usr/bin/env python3
"""Kills one of several ranks at a random time, again and again, and goes on from the checkpoint that is left.

    python3 tests/kill_ranks.py PROGRAM [its options] [--kills 20] [--ranks 2] [--limit 10] [--seed 1]

PROGRAM is `frozen_encoder` or `resnet18`; it runs under Open MPI's `mpirun --enable-recovery`, so that the other ranks end by
themselves. Each time: they end within LIMIT seconds with one sentence, no checkpoint is half written, and a run that goes on from
the one that is there leaves the weights of an undisturbed training. Exits with 1 where one of that fails. An example:

    python3 tests/kill_ranks.py build/release/examples/frozen_encoder/frozen_encoder --steps 1000 --warmup 0 --schedule overlapped
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time


def mpirun(ranks: int, *more: str) -> list[str]:
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *as_root, "--oversubscribe", "-np", str(ranks), *more]


def weights(command: list[str], report: pathlib.Path) -> str:
    """Those that a run leaves, as its report says."""
    ended = subprocess.run([*command, "--json", str(report)], capture_output=True, text=True)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {ended.returncode}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
    return json.loads(report.read_text())["runs"][0]["weights"]


def step_of(checkpoint: pathlib.Path) -> int:
    """The step that a checkpoint, a safetensors file, was written after."""
    with checkpoint.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return int(header["__metadata__"]["step"])


def rank_of(pid: str) -> int | None:
    try:
        environment = pathlib.Path("/proc", pid, "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for entry in environment:
        if entry.startswith(b"OMPI_COMM_WORLD_RANK="):
            return int(entry.partition(b"=")[2])
    return None


def ranks_below(parent: int) -> dict[int, int]:
    """The processes of each rank that `parent` has started."""
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {rank: int(pid) for pid in children if (rank := rank_of(pid)) is not None}


def kill_one(command: list[str], checkpoint: pathlib.Path, delay: float, victim: int, limit: float) -> tuple[float, str] | None:
    """Kills a rank `delay` seconds after the first checkpoint. Returns how long the others took to end, and what they said; None
    where the training was over."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        while not checkpoint.exists():
            if running.poll() is not None:
                sys.exit(f"{' '.join(command)}: ended without a checkpoint:\n{running.stdout.read()[-2000:]}")
            time.sleep(0.01)
        time.sleep(delay)
        processes = ranks_below(running.pid)
        if victim not in processes:
            running.communicate()
            return None
        os.kill(processes[victim], signal.SIGKILL)
        killed = time.monotonic()
        others = [pid for rank, pid in processes.items() if rank != victim]
        while any(os.path.exists(f"/proc/{pid}") and "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().split()[2]
                  for pid in others):
            if time.monotonic() - killed > 3 * limit:
                running.kill()
                return time.monotonic() - killed, "the others did not end"
            time.sleep(0.01)
        seconds = time.monotonic() - killed
        said = [line for line in running.stdout.read().splitlines() if ": " in line and "rank" in line]
    return seconds, "\n".join(said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--limit", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options, own = parser.parse_known_args()
    training = [options.program, *own]
    draw = random.Random(options.seed)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        checkpoint = pathlib.Path(folder, "checkpoint")
        began = time.monotonic()
        whole = weights([*mpirun(options.ranks), *training, "--checkpoint", str(checkpoint), "--checkpoint-every", "20"], report)
        length = time.monotonic() - began
        last = step_of(checkpoint)
        checkpoint.unlink()
        print(f"undisturbed: weights {whole}, {length:.1f} s", flush=True)
        for number in range(options.kills):
            checkpoint = pathlib.Path(folder, f"checkpoint{number}")
            victim = draw.randrange(options.ranks)
            writing = [*training, "--checkpoint", str(checkpoint), "--checkpoint-every", "20"]
            delay = draw.uniform(0, 0.6 * length)
            killed = None
            while killed is None:
                checkpoint.unlink(missing_ok=True)
                killed = kill_one([*mpirun(options.ranks, "--enable-recovery"), *writing], checkpoint, delay, victim,
                                  options.limit)
                if killed is not None and step_of(checkpoint) == last: # nothing is left to go on with
                    killed = None
                delay /= 2
            seconds, said = killed
            left = sorted(path.name for path in pathlib.Path(folder).iterdir() if path.name not in (checkpoint.name, report.name))
            again = weights([*mpirun(options.ranks), *training, "--resume", str(checkpoint)], report)
            right = seconds <= options.limit and again == whole
            failed += not right
            print(f"{number}: rank {victim} killed, the others ended after {seconds:.2f} s; went on to weights {again}: "
                  f"{'right' if right else 'WRONG'}{'; left behind: ' + ', '.join(left) if left else ''}\n    {said}", flush=True)
            for path in pathlib.Path(folder).iterdir():
                path.unlink()
    print(f"{options.kills - failed} of {options.kills} right")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
