"""All groups of figures.sh on a machine of several GPUs, a group on each at a time, the longest first:

    bash bench/figures.sh --lanes BUILD OUT [--first COMMAND] [--seconds S] [GROUP...]

The first two GPUs begin with what is not timed, all of it beside each other, and COMMAND, such as the tests; then come groups of two
GPUs. Each GPU has its share of the processors. OUT has a folder for each GPU, and `ended` names the groups that are over: called again,
it goes on with the others. With --seconds none begins that would not end by then.
"""

import argparse
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds that each took on an H200 with 16 cores.
ON_TWO = {"two_gpus": 29, "ranks": 233}
ON_ONE = {
    "resnet18_float16": 467, "resnet18_below": 460, "schedules": 294, "encoder_batches": 250, "pipelines": 225, "augment": 167,
    "overload": 125, "kernels": 111, "giou_pytorch": 107, "encoder": 104, "encoder_pytorch": 96, "replays": 78,
    "augment_pytorch": 75, "memory": 75, "reports": 60, "live": 60, "operators": 60, "shapes": 60, "host_time": 60,
    "inference": 41, "shares": 40, "ports": 40, "ragged": 40, "giou": 34, "step_cost": 30, "cameras": 20,
}
# Not timed, beside each other.
UNTIMED_ON_TWO = {"kills": 324}
UNTIMED = {"losses_float16": 263, "losses_tf32": 253, "isolated": 246, "accuracies": 85}
SECONDS = ON_TWO | ON_ONE | UNTIMED_ON_TWO | UNTIMED


class Lanes:
    """What is still to be run, and what has ended, for all lanes."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.begin = time.monotonic()
        self.lock = threading.Lock()
        self.ended_path = os.path.join(arguments.out, "ended")
        ended = open(self.ended_path, encoding="utf-8").read().split() if os.path.exists(self.ended_path) else []
        self.waiting = [group for group in arguments.groups if group not in ended]
        self.waiting.sort(key=lambda group: -SECONDS[group])
        self.failed = []

    def next_of(self, groups):
        left = self.arguments.seconds - (time.monotonic() - self.begin)
        with self.lock:
            for group in self.waiting:
                if group in groups and SECONDS[group] <= left:
                    self.waiting.remove(group)
                    return group
        return None

    def run_one(self, name, command, gpus, cores):
        out = os.path.join(self.arguments.out, "gpu" + gpus[0])
        os.makedirs(out, exist_ok=True)
        begin = time.monotonic()
        with open(os.path.join(out, name + ".log"), "w", encoding="utf-8") as log:
            code = subprocess.run(command(out), env={**os.environ, "CUDA_VISIBLE_DEVICES": ",".join(gpus)}, stdout=log,
                                  stderr=subprocess.STDOUT, check=False,
                                  preexec_fn=lambda: os.sched_setaffinity(0, cores)).returncode
        with self.lock:
            now = time.monotonic()
            print(f"{now - self.begin:6.0f} s: {name} on GPU {','.join(gpus)}, {now - begin:.0f} s"
                  f"{'' if code == 0 else f', exit code {code}: see {log.name}'}", flush=True)
            if code != 0:
                self.failed.append(name)
        return code

    def run(self, gpus, cores, groups):
        """Runs of these groups what is waiting, one after another."""
        while group := self.next_of(groups):
            script = os.path.join(HERE, "..", "figures.sh")
            if self.run_one(group, lambda out, group=group: ["bash", script, self.arguments.build, out, group], gpus, cores) == 0:
                with self.lock, open(self.ended_path, "a", encoding="utf-8") as ended:
                    ended.write(group + "\n")


def gpus_here():
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return visible.split(",")
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    return [str(index) for index in range(len(listed.splitlines()))]


def main():
    parser = argparse.ArgumentParser(prog="figures.sh --lanes", description=__doc__.split("\n", 1)[0])
    parser.add_argument("build")
    parser.add_argument("out")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help="all, where none is named")
    parser.add_argument("--first", metavar="COMMAND", help="run before the groups of two GPUs")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long it may take")
    arguments = parser.parse_intermixed_args()
    unknown = [group for group in arguments.groups if group not in SECONDS]
    if unknown:
        sys.exit(f"figures: there is no group '{unknown[0]}'")
    arguments.groups = arguments.groups or [*SECONDS]
    os.makedirs(arguments.out, exist_ok=True)
    gpus, cores = gpus_here(), sorted(os.sched_getaffinity(0))
    if not gpus:
        sys.exit("figures: there is no GPU")
    lanes = Lanes(arguments)
    share = max(len(cores) // len(gpus), 1)
    cores_of = [set(cores[i * share:(i + 1) * share] or cores) for i in range(len(gpus))]

    pair, cores_of_pair = gpus[:2], cores_of[0].union(*cores_of[:2])

    def first():
        if arguments.first:
            lanes.run_one("first", lambda out: ["bash", "-c", arguments.first], pair, cores_of_pair)

    def together(*threads):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def each(begin, end, groups):
        return [threading.Thread(target=lanes.run, args=([gpus[i]], cores_of[i], groups)) for i in range(begin, end)]

    def first_two():
        untimed = [threading.Thread(target=lanes.run, args=([gpus[i % len(pair)]], cores_of_pair, [group]))
                   for i, group in enumerate(UNTIMED)]
        if len(pair) == 2:
            untimed.append(threading.Thread(target=lanes.run, args=(pair, cores_of_pair, UNTIMED_ON_TWO)))
        together(threading.Thread(target=first), *untimed)
        if len(pair) == 2:
            lanes.run(pair, cores_of_pair, ON_TWO)
        together(*each(0, len(pair), ON_ONE))

    together(threading.Thread(target=first_two), *each(2, len(gpus), ON_ONE))
    if lanes.waiting:
        print("not run:", *lanes.waiting)
    sys.exit(1 if lanes.failed or lanes.waiting else 0)


if __name__ == "__main__":
    main()
