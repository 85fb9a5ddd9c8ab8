"""The library's pages: pipelines, graphs, live input, reports, ragged rows; query.py says what an entry is."""

from query import ANY, TAIL, US, named, of, sentence, table, times

# --- pipelines.md, graphs.md ----------------------------------------------------------------------------------------------

PAIRED = [("by hand", of("baseline_ns")), ("sluice", of("step_ns")), ("ratio of medians", of("step_ns", over="baseline_ns")),
          ("neighbouring bursts", of("ratio"))]
UNEVEN = {"20 and 20": "20_and_20", "4 to 40": "4_to_40", "10 to 100": "10_to_100", "2 and 2": "2_and_2"}
UNEVEN_ROWS = [(f"{label} | {slots}", {"name": f"uneven/{name}/slots:{slots}"}) for label, name in UNEVEN.items() for slots in (2, 4)]
UNEVEN_ROWS += [("in proportion to random row counts | 2", {"name": "uneven/ragged/slots:2"}),
                ("the same | 4", {"name": "uneven/ragged/slots:4"})]
UNEVEN_ROWS += [(f"1 : {n} | 2", {"name": f"uneven/fixed_1_to_{n}/slots:2"}) for n in (2, 5, 10)]

PIPELINES = [
    table("pipelines.md", "Host time of a step", PAIRED,
          named({"two stages, overlapped": "cuda/two_stage/overlapped", "two stages, serial": "cuda/two_stage/serial"}),
          file="pipeline_overhead_*.json"),
    table("pipelines.md", "Host time of a step",
          [("by hand", of("by_hand")), ("overlapped", of("overlapped")), ("ratio", of("overlapped / by_hand <= 1.03")),
           ("graphed, 16 steps a graph", of("graphed:16"))],
          named({"a diamond of four stages": "host_time/diamond", "one producer, three readers": "host_time/fan_out"}),
          nth=1, file="shapes_host_time.json"),
    table("pipelines.md", "Stages of uneven times",
          [*times("slower alone"), ("by hand", of("by_hand")), *times("overlapped"), ("graphed, 1 step", of("graphed:1")),
           ("4 steps", of("graphed:4")), ("16 steps", of("graphed:16")), ("16 / overlapped", of("graphed:16 / overlapped <= 1.03"))],
          UNEVEN_ROWS, labels=2, file="shapes_uneven.json", against="by hand"),
    table("pipelines.md", "Sources slower and faster than the stages",
          [("by hand", of("by_hand")), *times("overlapped"), ("graphed", of("graphed:auto")),
           ("graphed / overlapped", of("graphed:auto / overlapped <= 1.01"))],
          named({"200": "slow_source/fill_200_stages_50", "20": "slow_source/fill_20_stages_50"}), file="shapes_slow_source.json"),
    table("pipelines.md", "CPU stages",
          [("by hand", of("by_hand")), *times("with", "without"), ("added", of("with - without <= 8 us", allowed=0.2))],
          named({"20, overlapped": "cpu_stage/latency/20_20/overlapped", "20, graphed": "cpu_stage/latency/20_20/graphed",
                 "400 and 20, overlapped": "cpu_stage/latency/400_20/overlapped"}), file="shapes_cpu_stage.json"),
    table("pipelines.md", "CPU stages",
          [*times("slowest alone"), ("by hand", of("by_hand")), ("of the slowest", of("by_hand", over="slowest alone")),
           *times("overlapped"), ("of the slowest", of("overlapped / slowest alone <= 1.03")),
           *times("graphed"), ("of the slowest", of("graphed / slowest alone"))],
          named([(takes, f"cpu_stage/rate/{takes.replace(', ', '_')}") for takes in
                 ("100, 60, 100", "100, 150, 100", "60, 30, 120", "120, 30, 60", "200, 120, 200")]),
          nth=1, file="shapes_cpu_stage.json"),
    table("pipelines.md", "Lanes",
          [("by hand", of("by_hand")), ("one stage with 4 lanes", of("4 lanes")), ("ratio", of("4 lanes / by_hand <= 1.02")),
           ("three stages", of("3 stages")), ("ratio", of("3 stages / by_hand"))],
          named({"frames of 16 MiB": "multi_copy/frames_of_16_MiB"}), file="shapes_multi_copy.json"),
    table("pipelines.md", "Two GPUs",
          [("by hand, on two", of("by_hand on two")), ("sluice, on one", of("on one")), ("sluice, on two", of("on two")),
           ("one / two", of("on one / on two >= 1.9")), ("two / by hand", of("on two / by_hand on two"))],
          [("*", {})], labels=0, file="shapes_two_gpus.json", name="two_gpus/half_a_millisecond_each"),
    table("pipelines.md", "Two GPUs",
          [("serial", of("steps_per_second", schedule="serial")), ("overlapped", of("steps_per_second", schedule="overlapped")),
           ("graphed, a graph for each stage", of("steps_per_second", schedule="graphed"))],
          {label: {"file": f"two_gpus_{name}.json"} for label, name in (
              ("both on one GPU", "one"), ("the decoder on the other GPU", "apart"), ("the decoder alone, there", "decoder_there"),
              ("the decoder alone, on the one GPU", "decoder"))}, nth=1),
    table("graphs.md", "A graphed step of a pipeline", PAIRED,
          named({"one graph a step, beside the same graphs by hand": "cuda/two_stage/graphed/beside_graphs",
                 "one graph a step, beside the eager step by hand": "cuda/two_stage/graphed/beside_launches",
                 "16 steps a graph, beside the eager step by hand": "cuda/two_stage/graphed:16/beside_launches",
                 "16 steps a graph, beside a graph of 16 steps by hand": "cuda/two_stage/graphed:16/beside_graphs"}),
          file="graph_overhead_*.json"),
    table("graphs.md", "Replays through GraphCapture",
          [("cudaGraphLaunch by hand", of("baseline_ns")), ("GraphCapture", of("step_ns")),
           ("ratio", of("step_ns", over="baseline_ns"))],
          named({"chain of 100 empty kernels": "cuda/replay/chain:100/total", "chain of 1,000": "cuda/replay/chain:1000/total",
                 "host time, chain of 100": "cuda/replay/chain:100/host", "host time, chain of 1,000": "cuda/replay/chain:1000/host"}),
          file="graphs.json"),
    *(table("graphs.md", "The graph experiment",
            [(f"{who} one by one", of("step_microseconds", schedule="serial")),
             (f"{who} as a graph", of("step_microseconds", schedule="graphed"))],
            [("linear 150,528 → 1,000, batch 16, TF32", {"part": linear}),
             *((f"chain of {label}", {"part": f"chain:{length}"})
               for label, length in (("10 kernels", 10), ("100", 100), ("1,000", 1000)))], file=file)
      for who, linear, file in (("sluice", "linear", "graph_replay.json"), ("PyTorch", "linear (tf32)", "graphs_pytorch.json"))),
    table("graphs.md", "Loops that end on the device", [("µs", of("step_microseconds"))],
          {"PyTorch, condition read with .item()": {"part": "loop:1000"}}, file="graphs_pytorch.json"),
    table("graphs.md", "Loops that end on the device", [("µs", {"scale": US})],
          {"by hand, condition read back after each iteration": of("baseline_ns", name="cuda/while:1000/unroll:1/beside_readback"),
           "while node, body recorded once": of("step_ns", name="cuda/while:1000/unroll:1/beside_graph"),
           "while node, body recorded four times": of("step_ns", name="cuda/while:1000/unroll:4/beside_graph")}, file="graphs.json"),
]

# --- live_input.md --------------------------------------------------------------------------------------------------------

OVERLOADS = {"submit, in_flight = 2": ("a", "submit, in_flight 2"), "try_submit, in_flight = 1": ("b", "try_submit, in_flight 1"),
             "try_submit, in_flight = 2": ("c", "try_submit, in_flight 2"),
             "submit, as many in flight as by default (128)": ("d", "submit, by default"),
             "submit, no bound but the driver's": ("e", "submit, no bound")}
PACED = [(f"{'two' if stages == 2 and i == 0 else 'four' if i == 0 else ''}{' stages, ' if i == 0 else ''}{label}",
          {"line": f"{stages} stages, {name}"})
         for stages in (2, 4) for i, (label, name) in enumerate(
             [("serial", "serial"), ("overlapped", "overlapped"), ("graphed, one slot", "graphed, one slot"),
              ("graphed, in_flight = 1", "graphed, in_flight 1"), ("graphed, a graph for each stage", "graphed, each stage")])]
BY_HAND_BEST = lambda record: max(record["by hand / overlapped"], record["by hand / graphed"])
FILTERS = [(label, {"name": f"overlap_add/{channels} channels, {memory} memory"}) for label, channels, memory in (
    ("overlap-add filter in place, 16 channels, device memory", 16, "device"), ("the same, pinned memory", 16, "pinned"),
    ("256 channels, device memory", 256, "device"), ("the same, pinned memory", 256, "pinned"))]
SHARES = {"alone": "alone", "no share": "no share", "the highest priority": "the highest priority", "multiprocessors = 8": "a share",
          "the same, in graphs": "a share, graphs", "the same by hand": "a share, by hand"}

LIVE = [
    table("live_input.md", "Overload",
          [("p50", {"value": 0}), ("p99", {"value": 1, **TAIL}), ("longest", {"value": 3, **ANY}),
           ("by hand: p50", None), ("p99", None), ("done", {"value": 4}), ("refused", {"value": 5, **ANY}),
           ("skipped", {"value": 6, **ANY})],
          [(label, {"line": f"({letter}) {name}"}) for label, (letter, name) in OVERLOADS.items()], file="live_input.txt"),
    table("live_input.md", "Overload", [("p99", None), ("by hand: p50", {"value": 0}), ("p99", {"value": 1, **TAIL})],
          [(label, {"line": f"({letter})   by hand"}) for label, (letter, _) in OVERLOADS.items()], file="live_input.txt"),
    table("live_input.md", "Paced",
          [("p50", {"value": 0}), ("p99", {"value": 1, **TAIL}), ("by hand: p50", {"value": 3}), ("p99", {"value": 4, **TAIL}),
           ("p50, of by hand", {"value": 5, "ratio": True})], PACED, file="live_input.txt"),
    sentence("live_input.md", r"with the default bound ([\d.]+) of without one",
             {"file": "live_input.txt", "line": "in_flight by default", "value": 1, "ratio": True}),
    table("live_input.md", "Ports",
          [*times("by hand", "overlapped", "graphed"), ("by hand / best", of("by hand / overlapped >= 0.97"))], FILTERS,
          file="ports.json"),
    table("live_input.md", "Ports", [("by hand / best", of("by hand / graphed", number=1))], FILTERS, file="ports.json"),
    *(table("live_input.md", "Ports",
            [*times("by hand", "overlapped", "graphed"), ("by hand / best", {"value": BY_HAND_BEST, "ratio": True})],
            [("integration of 256 KiB, 16, 4, 1 blocks an output", {"name": f"integration/256 KiB, {every} an output"}),
             ("the same of 2 MiB", {"name": f"integration/2048 KiB, {every} an output"})], file="ports.json", number=number)
      for number, every in enumerate((16, 4, 1))),
    sentence("live_input.md", r"of 1, 4 and 16 layers ([\d.]+), ([\d.]+) and ([\d.]+) of by hand's rate",
             *(of("by hand / sluice >= 0.99", name=f"token_loop/{layers} layers") for layers in (1, 4, 16)), file="ports.json"),
    *(table("live_input.md", "A share of the GPU",
            [("p50", {"value": 0}), ("p99", {"value": 1, **TAIL}), *([("heavy", {"value": 4, "ratio": True})] if heavy else [])],
            [(label, {"line": name}) for label, name in SHARES.items() if (label != "alone") == heavy], file="stage_shares.txt")
      for heavy in (False, True)),
]

# --- ragged.md ------------------------------------------------------------------------------------------------------------


def beside(other, *operations, shapes=("short", "skewed", "one row"), with_time):
    """A table's columns beside CUB or a copy; the time of the operation is that of the first in which it is."""
    columns = []
    for shape in shapes:
        name = lambda record, shape=shape.split()[0]: f"cuda/{shape}/" in record
        columns += [(shape, of("step_ns", scale=US, name=name) if with_time else None),
                    ("of CUB", of("ratio", name=name) if other == "cub" else None),
                    ("of the copy", of("ratio", name=name) if other == "copy" else None)]
    return table("ragged.md", "Operations on ragged rows", columns,
                 [(operation, {"operation": operation}) for operation in operations], file="ragged.json", beside=other)


RAGGED = [
    beside("cub", "sum", "exclusive_sum", "sort", with_time=True),
    beside("copy", "sum", "exclusive_sum", with_time=False),
    beside("copy", "softmax", with_time=True),
    beside("cub", "max", "argmax", "logsumexp", "apply", shapes=["short"], with_time=True),
    beside("copy", "apply", shapes=["short"], with_time=False),
    beside("copy", "apply_by_row", shapes=["short"], with_time=True),
    sentence("masked_giou.md", r"takes ([\d.]+) µs against ([\d,]+) for the separate copies by hand \((\d+) times\) and ([\d.]+) "
             r"against ([\d.]+) for padded", *(
                 of(value, name=f"cuda/pack:1024/beside_{other}", **more) for other, value, more in (
                     ("copies", "step_ns", {"scale": US}), ("copies", "baseline_ns", {"scale": US}),
                     ("copies", "baseline_ns", {"over": "step_ns"}), ("padded", "step_ns", {"scale": US}),
                     ("padded", "baseline_ns", {"scale": US}))), file="ragged.json"),
]
