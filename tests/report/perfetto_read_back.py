"""Reads a trace of write_trace with Perfetto's published protobuf definitions, and compares it with its JSON.

    perfetto_read_back.py WRITE_TRACE FOLDER

The definitions come with the package `perfetto` of PyPI; without it the test is skipped (exit code 77).
"""

import collections
import json
import os
import subprocess
import sys

try:
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
except ImportError as error:
    print(f"skipped: Perfetto's definitions are not here ({error}); python3 -m pip install perfetto")
    sys.exit(77)


def check_known(message):
    """Whether the definitions have all fields of a message and of those in it."""
    assert len(UnknownFieldSet(message)) == 0, f"unknown fields in {message}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in value if hasattr(value, "__len__") else [value]:
                check_known(part)


def path_of(tracks, uuid):
    track = tracks[uuid]
    above = path_of(tracks, track.parent_uuid) if track.HasField("parent_uuid") else ()
    return above + (track.name,)


def read(trace):
    """Slices as (path, begin, end, name, category, batch), in ns, and values as (path, time, value, unit)."""
    tracks, stacks, slices, values = {}, collections.defaultdict(list), [], []
    last = 0
    for packet in trace.packet:
        check_known(packet)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks, f"two tracks have the id {track.uuid}"
            tracks[track.uuid] = track
            continue
        assert packet.HasField("track_event"), "a packet is neither a track nor an event"
        assert packet.timestamp >= last, "events are not in order"
        last = packet.timestamp
        event = packet.track_event
        stack = stacks[event.track_uuid]
        path = path_of(tracks, event.track_uuid)
        if event.type == event.TYPE_COUNTER:
            counter = tracks[event.track_uuid].counter
            unit = "B" if counter.unit == counter.UNIT_SIZE_BYTES else counter.unit_name
            values.append((path, packet.timestamp, event.double_counter_value, unit))
        elif event.type == event.TYPE_SLICE_BEGIN:
            assert not stack, f"slices of the track {path} overlap"
            note = {item.name: item.uint_value for item in event.debug_annotations}
            assert note == {"batch": event.correlation_id}, note
            stack.append((packet.timestamp, event.name, event.categories[0], event.correlation_id))
        else:
            assert event.type == event.TYPE_SLICE_END, event.type
            begin, *rest = stack.pop()
            slices.append((path, begin, packet.timestamp, *rest))
    assert not any(stacks.values()), "a slice has no end"
    return slices, values


def main(program, folder):
    trace_path, json_path = os.path.join(folder, "read_back.pftrace"), os.path.join(folder, "read_back.json")
    subprocess.run([program, trace_path, json_path], check=True)
    trace = protos.Trace()
    with open(trace_path, "rb") as file:
        trace.ParseFromString(file.read())
    with open(json_path, encoding="utf-8") as file:
        timeline = json.load(file)

    zero = min(0, *(span["begin"] for span in timeline["spans"]), *(value["time"] for value in timeline["values"]))
    nanoseconds = lambda time: int((time - zero) * 1000 + 0.5)
    slices, values = read(trace)

    def row_of(path):
        """Title, unit and row of a slice; a track for what overlaps is one deeper, "row (2)" below "row"."""
        if len(path) > 1 and path[-1].startswith(path[-2] + " (") and path[-1].endswith(")"):
            path = path[:-1]
        return path

    found = collections.Counter((row_of(path), *rest) for path, *rest in slices)
    expected = collections.Counter()
    for span in timeline["spans"]:
        path = tuple(part for part in (timeline["title"], span["unit"]) if part) + (span["row"],)
        name = f"batch {span['batch']}" + ("" if span["kind"] == "compute" else " " + span["kind"])
        expected[path, nanoseconds(span["begin"]), nanoseconds(span["end"]), name, span["kind"], span["batch"]] += 1
    assert found == expected, f"slices differ: {list(((found - expected) + (expected - found)).items())[:4]}"

    found = collections.Counter(values)
    expected = collections.Counter(
        ((timeline["title"], value["counter"]), nanoseconds(value["time"]), value["value"], value["unit"])
        for value in timeline["values"])
    assert found == expected, f"values differ: {list(((found - expected) + (expected - found)).items())[:4]}"
    overlapping = sum(row_of(path) != path for path, *_ in slices)
    assert overlapping > 0, "no spans overlap"
    print(f"{len(slices)} slices, {overlapping} of them on further tracks, and {len(values)} values are the same")


if __name__ == "__main__":
    main(*sys.argv[1:])
