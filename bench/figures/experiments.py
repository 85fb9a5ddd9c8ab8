"""The experiments' pages; query.py says what an entry is."""

from query import GB, MB, PERCENT, US, named, of, sentence, table, times

# --- frozen_encoder.md, reports.md ----------------------------------------------------------------------------------------

BY_SCHEDULE = [(name, of("steps_per_second", schedule=name)) for name in ("serial", "overlapped", "graphed", "automatic")]
REPORTED = [({"file": "encoder_plain_*.json"}), ({"file": "encoder_report_*.json"})]
ARRANGEMENTS = {"PyTorch, serial": ("pytorch", "serial"), "two streams, as published, races removed": ("pytorch", "streams"),
                "serial, channels-last, fused SGD": ("pytorch", "serial-last"), "two streams, channels-last": ("pytorch", "streams-last"),
                "the whole step as one graph, channels-last": ("pytorch", "graph"),
                "forked graph, two parities": ("pytorch", "forked-graph"),
                "the whole step compiled, as one graph": ("pytorch", "compiled-graph"),
                "compiled, forked graph, the best found": ("pytorch", "compiled-forked-graph"),
                "sluice, serial": ("sluice", "serial"), "sluice, overlapped": ("sluice", "overlapped"),
                "sluice, graphed (a graph a step)": ("sluice", "graphed")}
KINDS = {"serial": ("serial", "serial-last"), "overlapped": ("streams", "streams-last"),
         "graphed": ("graph", "forked-graph", "compiled-graph", "compiled-forked-graph")}


def fastest(record, who, names):
    return max(record[who][name]["steps_per_second"] for name in names if name in record[who])


def batch_columns(schedule):
    theirs = lambda record: fastest(record, "pytorch", KINDS[schedule])
    return [(f"{schedule}: PyTorch", {"value": theirs}), ("sluice", of("sluice", schedule, "steps_per_second")),
            ("ratio", {"value": lambda record: record["sluice"][schedule]["steps_per_second"] / theirs(record), "ratio": True})]


EVERY_KIND = [name for names in KINDS.values() for name in names]
CHOSEN = {"frozen encoder": (1, 8, 32), "augmentation": (8, 32), "box loss": (8, 32, 128)}
EXPERIMENTS = [f"{name}, batch {batch}" for name, batches in CHOSEN.items() for batch in batches]
EXPERIMENTS += [f"digits, {workers} worker{'s' if workers > 1 else ''}" for workers in (1, 2, 4, 8)]
PAIRS = ("20:20", "10:20", "4:20", "2:20", "20:2", "200:200", "100:200", "40:200", "20:200", "200:10", "1000:1000", "500:1000",
         "1000:100", "50:1000")
CASES = [*(f"pair {pair}" for pair in PAIRS), "launches 1", "launches 8", "launches 30", "launches 30:8", "whole device 100:100",
         "whole device 100:300", "copy 2 MB", "copy 8 MB", "copy 32 MB", "source 100, 1 worker", "source 400, 1 worker",
         "source 400, 4 workers", "source 400, 8 workers", "source 1600, 4 workers", "loop 300"]
PRECISIONS = [(f"batch {batch}, {precision}", {"file": f"encoder_{precision}_{batch}.json"})
              for batch in (1, 8, 32, 128) for precision in ("tf32", "bfloat16")]
OVERLAPS = [("frozen encoder, batch 2", "encoder_2"), ("batch 8", "encoder_8"), ("batch 32", "encoder_32"),
            ("augmentation beside training, batch 8", "augment_8"), ("batch 32", "augment_32"), ("batch 128", "augment_128")]

ENCODER = [
    table("frozen_encoder.md", "Schedules", [("", None), ("", REPORTED[0]), ("with a report", REPORTED[1])],
          [(label, of("steps_per_second", schedule=name)) for label, name in (
              ("serial", "serial"), ("overlapped", "overlapped"), ("graphed, a graph for each stage", "graphed"),
              ("automatic", "automatic"))], against=""),
    table("frozen_encoder.md", "Schedules", [(name, of("steps_per_second", name)) for name, _ in BY_SCHEDULE],
          [(str(batch), {"case": f"frozen encoder, batch {batch}"}) for batch in (1, 8, 32)], nth=1, file="experiments.json",
          against="serial"),
    sentence("frozen_encoder.md", r"the encoder makes ([\d,]+) overlapped and ([\d,]+) graphed, the decoder ([\d,]+) and ([\d,]+)",
             *(of("steps_per_second", file=f"only_{network}.json", schedule=schedule)
               for network in ("encoder", "decoder") for schedule in ("overlapped", "graphed"))),
    table("frozen_encoder.md", "Results", BY_SCHEDULE, {"three runs": {"file": "newcomer_*.json"}}, allowed=0.2),
    sentence("frozen_encoder.md", r"ran at (\d+) steps/s beside ([\d,]+) of ours",
             of("bfloat16_rows", 0, "pytorch", "bfloat16-forked-graph", "steps_per_second"),
             of("bfloat16_rows", 0, "sluice", "graphed", "steps_per_second"), file="encoder_bfloat16.json"),
    table("frozen_encoder.md", "Beside PyTorch",
          [("steps/s", of("steps_per_second")), ("peak device memory, MB", of("device_bytes", scale=MB))],
          [(label, {"below": path}) for label, path in ARRANGEMENTS.items()], file="encoder_pytorch.json", batch=8),
    table("frozen_encoder.md", "bfloat16", BY_SCHEDULE[:3], PRECISIONS, against="serial"),
    table("frozen_encoder.md", "bfloat16", [("peak device memory, MB", of("device_bytes", scale=MB, schedule="graphed"))], PRECISIONS),
    table("frozen_encoder_batches.md", "The frozen encoder on a GPU",
          [*batch_columns("serial"), *batch_columns("overlapped"), *batch_columns("graphed"),
           ("best to best", {"value": lambda r: fastest(r, "sluice", KINDS) / fastest(r, "pytorch", EVERY_KIND), "ratio": True}),
           ("best to published order, races removed",
            {"value": lambda r: fastest(r, "sluice", KINDS) / fastest(r, "pytorch", ["streams"]), "ratio": True})],
          [(str(batch), {"batch": batch}) for batch in (1, 2, 4, 8, 16, 32, 64, 128)],
          file="encoder_batches.json"),
    *(table("reports.md", "Cost", [("without", {"file": f"{plain}_*.json"}), ("with", {"file": f"{report}_*.json"})],
            [*skipped, *((label, of("steps_per_second", schedule=name)) for label, name in rows)], against="without", **more)
      for plain, report, skipped, rows, more in (
          ("encoder_plain", "encoder_report", [], [
              ("frozen encoder, batch 8: serial", "serial"), ("overlapped", "overlapped"),
              ("graphed, a graph for each stage", "graphed")], {}),
          ("digits_plain", "digits_report", [("overlapped", None), ("graphed, a graph for each stage", None)], [
              ("digits, 8 workers: serial", "serial"), ("overlapped", "overlapped"),
              ("graphed, a graph for each stage", "graphed")], {"allowed": 0.2}))),
    table("reports.md", "Beside CUPTI",
          [(head, {"line": line, "value": value, "at": at, "ratio": True, "scale": scale})
           for at, schedule in enumerate(("overlapped", "graphed"))
           for head, line, value, scale in ((f"{schedule}: events", "two or more", 2, 1), ("CUPTI", "two or more", 1, 1),
                                            ("factor", "A step took", 0, 1))],
          [(label, {"file": f"kernels_{name}.txt"}) for label, name in OVERLAPS], allowed=0.1),
    table("reports.md", "What automatic chooses",
          [(head, {"value": value}) for value, head in enumerate(("serial", "overlapped", "a graph a stage", "whole steps", "automatic"))] +
          [("/ best", {"value": 5, "ratio": True})],
          [(case, {"line": case}) for case in CASES], file="schedule_choice.txt", against="serial"),
    table("reports.md", "What automatic chooses",
          [*((name, of("steps_per_second", name)) for name, _ in BY_SCHEDULE),
           ("best / automatic", of("best_over_automatic", ratio=True))],
          [(case, {"case": case, **({"allowed": 0.2} if case.startswith("digits") else {})}) for case in EXPERIMENTS],
          nth=1, file="experiments.json", against="serial"),
]

# --- gpu_augment.md, augment_operators.md ---------------------------------------------------------------------------------

OPERATORS = ["convert", "normalize", "brightness", "contrast", "flip", "crop", "crop_roi_align", "enlarge", "shrink", "shrink_plain",
             "rotate", "rotate_bilinear", "blur", "published", "published_half"]
CHAINS = {"PyTorch, as published": "published", "torchvision, one draw a batch": "torchvision", "PyTorch, compiled": "exact, in stages",
          "PyTorch, compiled, graph": "exact, in stages, graph"}
EAGER = {"allowed": 0.35}  # the host's code


def of_operator(batch):
    """Beside a copy."""
    at = {"batch": batch, "beside": "copy"}
    return [(f"µs, batch {batch}", of("step_ns", scale=US, **at)), ("GB/s", of("bytes", over="step_ns", ratio=False, **at)),
            ("of a copy", {"value": lambda record: PERCENT / record["ratio"], "ratio": True, **at})]


def of_chain(batch, operation="published", beside="copy", value="step_ns"):
    return of(value, scale=US, batch=batch, operation=operation, beside=beside)


TRAINING = {"augmented on the device": "device", "training alone": "none"}
AUGMENT = [
    table("augment_operators.md", "Augmentation on a GPU", [*of_operator(32), *of_operator(256)],
          [(operator, {"operation": operator}) for operator in OPERATORS], file="augment.json"),
    table("augment_operators.md", "Augmentation on a GPU",
          [(f"batch {batch}", of("step_microseconds", part="operators", batch=batch)) for batch in (32, 256)],
          [(label, {"variant": variant, **({} if "graph" in variant else EAGER)}) for label, variant in CHAINS.items()],
          nth=1, file="augment_pytorch.json"),
    *(table("augment_operators.md", "Augmentation on a GPU", [(f"batch {batch}", {}) for batch in (batch,)],
            {"three plain kernels": of_chain(batch, beside="by_hand", value="baseline_ns"), "sluice, fused": of_chain(batch),
             "sluice, fused, to float16": of_chain(batch, operation="published_half")}, nth=1, file="augment.json")
      for batch in (32, 256)),
    *(table("gpu_augment.md", "The chain", [(f"{batch} images", {})],
            {"sluice": {"file": "augment.json", **of_chain(batch)},
             "best PyTorch found: compiled in stages, as a graph": {
                 "file": "augment_pytorch.json", **of("step_microseconds", part="operators", batch=batch,
                                                      variant="exact, in stages, graph")}}) for batch in (32, 256)),
    table("gpu_augment.md", "Training beside augmentation", BY_SCHEDULE[:3],
          [(label, {"file": f"training_{augment}.json", "augment": augment}) for label, augment in TRAINING.items()],
          part="train", against="serial"),
    table("gpu_augment.md", "Training beside augmentation", [("graphed, --algorithms autotune", of("steps_per_second"))],
          [(label, {"file": f"training_{augment}_autotune.json", "augment": augment}) for label, augment in TRAINING.items()],
          part="train", schedule="graphed"),
    table("gpu_augment.md", "Training beside augmentation", [("PyTorch", of("steps_per_second"))],
          [("augmented on the device", {"variant": "two-streams"})],
          file="training_pytorch.json", part="training", batch=32, **EAGER),
]

# --- masked_giou.md -------------------------------------------------------------------------------------------------------

VARIANTS = {"1 a loop over images": "loop", "2 concatenation": "concatenation", "3 padding and a mask": "padding",
            "4 fused, every box": "fused", "5 fused, padding skipped": "conditional"}
MEASURED = [("waiting", of("waiting_microseconds", schedule="serial")), ("back to back", of("step_microseconds", schedule="serial")),
            ("as a graph", of("step_microseconds", schedule="graphed")), ("nodes", of("nodes", schedule="graphed", ratio=True))]
THEIRS = {"PyTorch waiting": "waiting", "PyTorch back to back": "back to back", "PyTorch as a graph": "graph"}
FORWARD = {"2 concatenation": "concatenation", "3 padding and a mask": "padding", "the same, compiled": "padding, compiled",
           "4 fused, every box": "fused", "5 fused, padding skipped": "conditional", "6 ragged": "nested, packed already"}
BOTH = {"2 concatenation": "concatenation", "3 padding and a mask": "padding", "the same, compiled": "padding, compiled",
        "6 ragged, both in one kernel": "nested, a tensor a column"}


def giou_pytorch(nth, way, names, heads):
    """Where graphs are judged as strictly as ours."""
    return table("masked_giou.md", "The loss",
                 [(head, of("microseconds", schedule=THEIRS[head], **({} if head.endswith("graph") else EAGER))) for head in heads],
                 [(label, {"part": f"{name}: {way}"}) for label, name in names.items()], nth=nth, file="giou_pytorch.json")


def filled(percent):
    return lambda share: abs(100 * share - percent) < 0.06


GIOU = [
    table("masked_giou.md", "The loss", MEASURED,
          [*((label, {"variant": name}) for label, name in VARIANTS.items()), ("6 ragged", {"variant": "ragged"}),
           ("6 ragged, predictions in bfloat16", {"variant": "ragged", "file": "giou_bfloat16.json"})],
          file="giou.json", part="losses", **{"pass": "forward"}),
    table("masked_giou.md", "The loss", MEASURED,
          [*((label, {"variant": name}) for label, name in VARIANTS.items()), ("6 ragged, both in one kernel", {"variant": "ragged"})],
          nth=1, file="giou.json", part="losses", **{"pass": "forward and backward"}),
    giou_pytorch(0, "forward", FORWARD, list(THEIRS)),
    giou_pytorch(1, "both", BOTH, ["PyTorch back to back", "PyTorch as a graph"]),
    table("masked_giou.md", "Targets to the device",
          [("packing on the host", of("pack_microseconds", schedule="serial", allowed=0.3)),
           ("copy, back to back", of("step_microseconds", schedule="serial")),
           ("as a graph", of("step_microseconds", schedule="graphed")),
           ("copies", of("copies", schedule="serial", ratio=True)), ("bytes", of("bytes", schedule="serial", ratio=True))],
          {"separate, row by row": {"variant": "separate"}, "padded, boxes and mask in one block": {"variant": "padded"},
           "packed: counts, offsets, boxes in one block": {"variant": "packed"}}, file="giou.json", part="copies"),
    table("masked_giou.md", "Targets to the device", [("PyTorch", of("microseconds", schedule="back to back", piece=0, **EAGER))],
          {"separate, row by row": {"part": "copy: separate targets"},
           "padded, boxes and mask in one block": {"part": "copy: padded targets"},
           "packed: counts, offsets, boxes in one block": {"part": "copy: concatenate, then copy"}}, file="giou_pytorch.json"),
    *(table("masked_giou.md", "When skipping the padding pays",
            [("at work 4,096: every box, skipping, ragged, µs", of("step_microseconds", number=number, variant=variant))],
            [(f"{percent} %{', as published' if percent == 0.7 else ''}", {"fill": filled(percent)}) for percent in (0.7, 5, 25, 50, 100)],
            file="giou_work.json", part="work", work=4096) for number, variant in enumerate(("fused", "conditional", "ragged"))),
    table("masked_giou.md", "The detector", [("sluice", {})],
          {"forward, bfloat16": of("step_microseconds", scale=US, file="detector_bfloat16.json", variant="bfloat16", schedule="serial"),
           "forward, TF32": of("step_microseconds", scale=US, file="detector_tf32.json", variant="tf32", schedule="serial"),
           "a training step, bfloat16": {"file": "detector_layers.json", "name": "step/bfloat16", "value": lambda record:
                                         record["real_time"] * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[record["time_unit"]]}}),
    table("masked_giou.md", "The detector", [("PyTorch, compiled", of("microseconds", scale=US, schedule="back to back"))],
          {"forward, bfloat16": {"part": "detector: bfloat16, compiled"},
           "forward, bfloat16, by autocast": {"part": "detector: autocast, compiled"},
           "a training step, bfloat16": {"part": "detector, step: nhwc, compiled"},
           "the same, not channels last, another run": {"part": "detector, step: autocast, compiled"}}, file="giou_pytorch.json"),
    table("masked_giou.md", "The detector", [("PyTorch, eager", of("microseconds", scale=US, schedule="back to back"))],
          {"forward, bfloat16": {"part": "detector: bfloat16, eager"},
           "forward, bfloat16, by autocast": {"part": "detector: autocast, eager"}}, file="giou_pytorch.json"),
    table("masked_giou.md", "Training on digits",
          [("serial, steps/s", of("steps_per_second", schedule="serial")), *BY_SCHEDULE[1:3], ("mean IoU", of("mean_iou", ratio=True))],
          {"one H200": {}}, file="giou_digits.json"),
]

# --- resnet18.md ----------------------------------------------------------------------------------------------------------

RUNGS = [(str(rung), {"rung": rung, "file": f"resnet18_{'below' if rung < 6 else 'float16'}.json"})
         for rung in range(9)]


def best_of(record):
    return max(run["samples_per_second"] for run in record["pytorch"].values())


RESNET18 = [
    table("resnet18.md", "Present state",
          [("sluice", of("sluice", "samples_per_second")),
           ("ratio", {"value": lambda record: record["sluice"]["samples_per_second"] / best_of(record), "ratio": True}),
           ("the step alone: PyTorch, sluice", of("sluice", "samples_per_second_alone", piece=1)),
           ("peak device memory", of("sluice", "device_bytes", scale=GB))], RUNGS),
    table("resnet18.md", "Present state",
          [("PyTorch", {"piece": 0, "value": lambda record: record["pytorch"][str(record["rung"])]["samples_per_second"]}),
           ("the step alone: PyTorch, sluice", of("pytorch_alone", piece=0))], RUNGS),
    table("resnet18.md", "Present state", [("PyTorch", of("pytorch", "best", "samples_per_second", piece=1))], RUNGS[7:8]),
    sentence("resnet18.md", r"batch 1 as a graph ([\d.]+), launched one by one ([\d.]+); batch 16 as a graph (\d+) and (\d+)",
             *(of("step_microseconds", batch=batch, schedule=schedule) for batch in (1, 16) for schedule in ("graphed", "serial")),
             file="inference.json"),
]
