"""The page of the Python package, and that of several GPUs; query.py says what an entry is."""

from query import US, of, sentence, table

EAGER = {"allowed": 0.35}  # the host's code
GIOU = [
    ("PyTorch, padded: forward", "pytorch, padding: forward"), ("compiled: forward", "pytorch, compiled padding: forward"),
    ("sluice, offsets: forward", "sluice, offsets: forward"), ("PyTorch, padded: both", "pytorch, padding: both"),
    ("compiled: both", "pytorch, compiled padding: both"), ("sluice, offsets: both", "sluice, offsets: both"),
    ("bfloat16: both", "sluice, offsets, bfloat16: both"), ("ragged predictions: both", "sluice, ragged predictions: both"),
    ("a mask: both", "sluice, mask: both"), ("within torch.compile(fullgraph=True): both", "sluice, compiled: both"),
    *((f"{label}: both, on one thread", f"{part}: both, on one thread") for label, part in (
        ("offsets", "sluice, offsets"), ("ragged predictions", "sluice, ragged predictions"), ("compiled", "pytorch, compiled padding"),
        ("within torch.compile(fullgraph=True)", "sluice, compiled"))),
    ("offsets: both at once", "sluice, offsets: both at once"), ("bfloat16: both at once", "sluice, offsets, bfloat16: both at once"),
    ("ragged predictions: both at once", "sluice, ragged predictions: both at once"),
    ("a mask: both at once", "sluice, mask: both at once"),
    ("within torch.compile(fullgraph=True): both at once", "sluice, compiled: both at once"),
]
ROWS = {"sum | segment_reduce": ("sum: pytorch, segment_reduce", "sum: sluice"),
        "greatest, with its position | max of padded rows": ("max: pytorch, padded", "max: sluice, with positions"),
        "softmax | nested": ("softmax: pytorch, nested", "softmax: sluice"), " | of padded rows": ("softmax: pytorch, padded", None),
        "sort, with positions | of padded rows": ("sort: pytorch, padded", "sort: sluice, with positions"),
        " | two sorts by key": ("sort: pytorch, by keys", None)}
PIPELINES = [
    ("by hand: serial", "by hand, serial"), ("two streams", "by hand, streams"), ("sluice.pipeline: serial", "sluice, serial"),
    ("overlapped", "sluice, overlapped"), ("graphed", "sluice, graphed"),
    ("channels last, by hand: serial", "by hand, serial-last"), ("two streams", "by hand, streams-last"),
    ("a graph of a whole step", "by hand, graph"), ("the same, forked", "by hand, forked-graph"),
    ("sluice.pipeline: serial", "sluice, serial, channels-last"), ("overlapped", "sluice, overlapped, channels-last"),
    ("graphed", "sluice, graphed, channels-last"),
]
BATCHES = (1, 2, 4, 8, 16, 32)


def of_epochs(way):
    """The median of those after the first eight, as the script prints it."""
    def value(record):
        later = sorted(record["microseconds"][way][8:])
        return (later[len(later) // 2] + later[(len(later) - 1) // 2]) / 2
    return value


def batch_heads(**query):
    return [("batch 1" if batch == 1 else str(batch), {"batch": batch, **query}) for batch in BATCHES]


def calls(heads):
    return [(head, of("microseconds", schedule=schedule, **({} if schedule == "graph" else EAGER))) for head, schedule in heads]


WAYS = [("plain loop", "plain loop"), ("serial", "serial"), ("overlapped", "overlapped"), ("graphed", "graphed"),
        ("sluice.prefetch, then a plain loop", "prefetch and a plain loop")]
PYTHON = [
    table("pytorch.md", "Operators", calls([("waiting", "waiting"), ("back to back", "back to back"), ("as a graph", "graph")]),
          [(label, {"part": f"giou: {part}", "skip": ["as a graph"] if label.endswith("on one thread") else []}) for label, part in GIOU],
          file="operators.json"),
    table("pytorch.md", "Operators", [("", None), *calls([("", "back to back"), ("", "graph")])],
          [(label, {"part": f"rows: {theirs}"}) for label, (theirs, _) in ROWS.items()], nth=1, labels=2, file="operators.json"),
    table("pytorch.md", "Operators", [("", None), ("", None), ("", None), *calls([("sluice", "back to back"), ("", "graph")])],
          [(label, {"part": f"rows: {ours}"}) for label, (_, ours) in ROWS.items() if ours], nth=1, labels=2, file="operators.json"),
    sentence("pytorch.md", r"fastest compiled chain ([\d.]+), as a graph ([\d.]+); sluice ([\d.]+) and ([\d.]+)\.",
             *(of("microseconds", part=f"augment: {name}", schedule=schedule, **more) for name in ("pytorch, compiled", "sluice")
               for schedule, more in (("back to back", EAGER), ("graph", {}))), file="operators.json"),
    table("pytorch.md", "Pipelines", batch_heads(**of("steps_per_second")),
          [(label, {"name": name, **({} if "graph" in name else EAGER)}) for label, name in PIPELINES],
          file="pipelines.json", part="frozen_encoder"),
    table("pytorch.md", "Pipelines", batch_heads(**of("ratio", number=1, allowed=0.1)),
          [(label, {"name": name} if name.startswith("sluice") and "serial" not in name else None) for label, name in PIPELINES],
          file="pipelines.json"),
    sentence("pytorch.md", r"training alone ([\d.]+); by hand the published chain serially ([\d.]+), on two streams ([\d.]+); "
             r"sluice.pipeline with sluice.augment as a stage of its own ([\d.]+) overlapped, ([\d.]+) graphed, ([\d.]+) automatic",
             *(of("steps_per_second", name=name, batch=32) for name in ("training alone", "by hand, serial", "by hand, two-streams")),
             *(of("steps_per_second", name=f"sluice, a stage of its own, {schedule}", batch=32)
               for schedule in ("overlapped", "graphed", "automatic")), file="pipelines_augment.json", **EAGER),
    table("pytorch.md", "Pipelines", [(head, {"value": of_epochs(way), **EAGER}) for head, way in WAYS], [("*", {})], labels=0,
          nth=1, file="step_cost.json"),
    table("pytorch.md", "Pipelines",
          [(head, {"number": 1, "ratio": True, "value": lambda record, way=way: of_epochs(way)(record) / of_epochs("plain loop")(record)})
           for head, way in WAYS[1:]], [("*", {})], labels=0, nth=1, file="step_cost.json"),
    sentence("pytorch.md", r"a plain loop ([\d,]+), a prefetcher by hand with record_stream ([\d,]+), sluice.prefetch ([\d,]+)",
             *(of("steps_per_second", name=name, batch=8) for name in ("plain loop", "by hand, record_stream", "sluice.prefetch")),
             file="pipelines_prefetch.json", **EAGER),
]

# --- several_gpus.md ------------------------------------------------------------------------------------------------------

COLLECTIVES = {"all_reduce": ["all-reduce | 4,096", " | 262,144", " | 2.8 MB", " | 47 MB", " | 89.5 MB", " | 179 MB"],
               "all_gather": ["all-gather | 400,000", " | 800,000", " | 3.2 MB"]}
RANKS = [("frozen encoder, batch 8, graphed", 8, "graphed"), ("batch 128, graphed", 128, "graphed")]
SEVERAL = [
    *(table("several_gpus.md", "Training",
            [("one GPU", {"file": f"ranks_{batch}_one.json"}), ("two", {"file": f"ranks_{batch}_shards.json"}),
             ("two, --exchange factors", {"file": f"ranks_{batch}_factors.json"})],
            {label: of("steps_per_second", schedule=schedule)}, against="one GPU") for label, batch, schedule in RANKS),
    *(table("several_gpus.md", "Training",
            [("one GPU", {"file": f"ranks_{batch}_one.json"}), ("two", {"file": f"ranks_{batch}_shards.json"})],
            [("the same, overlapped", None)] * skipped + [("the same, overlapped", of("steps_per_second", schedule="overlapped"))],
            against="one GPU") for skipped, batch in enumerate((8, 128))),
    table("several_gpus.md", "Collectives",
          [("one by one", {"value": 1}), ("as a graph", {"value": 2}), ("no watch", {"value": 3}), ("as a graph", {"value": 4}),
           ("GB/s", {"value": 5})],
          [(label, {"line": name, "at": at}) for name, labels in COLLECTIVES.items() for at, label in enumerate(labels)], labels=2,
          file="collectives.txt"),
]
