"""All groups of figures.sh on a machine of several GPUs, a group on each at a time, the longest first:

    bash bench/figures.sh --lanes BUILD OUT [--first COMMAND] [--seconds S] [GROUP...]

Groups of two GPUs run first, on the first two; before them COMMAND, such as the tests. Each GPU has its share of the processors. OUT has
a folder for each GPU, and `ended` names the groups that are over: called again, it goes on with the others. With --seconds none begins
that would not end by then.
"""

import argparse
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds that each took on an H200 with 16 cores.
ON_TWO = {"two_gpus": 29, "ranks": 233, "kills": 445}
ON_ONE = {
    "resnet18_losses": 483, "resnet18_below": 460, "pipelines": 453, "overload": 303, "schedules": 294,
    "resnet18_float16": 245, "encoder_batches": 239, "resnet18_compiled": 225, "encoder": 142, "kernels": 118, "augment": 110,
    "giou_pytorch": 107, "encoder_pytorch": 96, "reports": 77, "augment_pytorch": 75, "giou": 75, "inference": 60,
    "resnet18_long": 60, "replays": 60, "live": 60, "operators": 60, "shapes": 60, "host_time": 60, "shares": 40, "ports": 40,
    "ragged": 40, "step_cost": 30, "cameras": 20,
}


class Lanes:
    """What is still to be run, and what has ended, for all lanes."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.begin = time.monotonic()
        self.lock = threading.Lock()
        self.ended_path = os.path.join(arguments.out, "ended")
        ended = open(self.ended_path, encoding="utf-8").read().split() if os.path.exists(self.ended_path) else []
        self.waiting = [group for group in arguments.groups if group not in ended]
        self.waiting.sort(key=lambda group: -self.seconds_of(group))
        self.failed = []

    @staticmethod
    def seconds_of(group):
        return ON_ONE.get(group) or ON_TWO[group]

    def next_of(self, groups):
        left = self.arguments.seconds - (time.monotonic() - self.begin)
        with self.lock:
            for group in self.waiting:
                if group in groups and self.seconds_of(group) <= left:
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
    unknown = [group for group in arguments.groups if group not in ON_ONE and group not in ON_TWO]
    if unknown:
        sys.exit(f"figures: there is no group '{unknown[0]}'")
    arguments.groups = arguments.groups or [*ON_TWO, *ON_ONE]
    os.makedirs(arguments.out, exist_ok=True)
    gpus, cores = gpus_here(), sorted(os.sched_getaffinity(0))
    if not gpus:
        sys.exit("figures: there is no GPU")
    lanes = Lanes(arguments)
    share = max(len(cores) // len(gpus), 1)
    cores_of = [set(cores[i * share:(i + 1) * share] or cores) for i in range(len(gpus))]

    def first():
        if arguments.first:
            lanes.run_one("first", lambda out: ["bash", "-c", arguments.first], gpus[:2], cores_of[0].union(*cores_of[:2]))

    def first_two():
        first()
        lanes.run(gpus[:2], cores_of[0] | cores_of[1], ON_TWO)
        run_each(0, 2)

    def run_each(begin, end):
        threads = [threading.Thread(target=lanes.run, args=([gpus[i]], cores_of[i], ON_ONE)) for i in range(begin, end)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    if len(gpus) == 1:
        first()
        run_each(0, 1)
    else:
        pair = threading.Thread(target=first_two)
        pair.start()
        run_each(2, len(gpus))
        pair.join()
    if lanes.waiting:
        print("not run:", *lanes.waiting)
    sys.exit(1 if lanes.failed or lanes.waiting else 0)


if __name__ == "__main__":
    main()
