"""Shows that the oracle can fail: planted bugs, each of which has to be reported as what it is."""

import copy
import json

from checker import Audit
from stream_view import StreamView, digest

WORKFLOW = {"id": "w", "expect": "You said: {message}"}


def item(kind, thread, number, text):
    part = "input_text" if kind == "user_message" else "output_text"
    return {"type": kind, "id": f"msg_{number:048x}", "thread_id": thread, "content": [{"type": part, "text": text}]}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def turn(number, thread, dialect="interface", stopped=False):
    """A good turn: its history, and the rows it leaves."""
    nonce, stream = f"[0-{number}]", f"stream-{number}"
    text = f"{nonce} hello world"
    said = f"You said: {text}"
    if stopped:
        said = said[:14]
    user = item("user_message", thread, number * 10, text)
    answer = item("assistant_message", thread, number * 10 + 1, said)
    half = len(said) // 2
    if dialect == "interface":
        update = lambda piece: {"type": "content_part_added", "part": {"type": "output_text", "text": piece}}
    else:
        update = lambda piece: {"type": "assistant_message.content_part.text_delta", "content_index": 0, "delta": piece}
    events = [
        {"type": "thread.item.done", "item": user},
        {"type": "stream_options", "stream_options": {"allow_cancel": True}},
        {"type": "thread.item.added", "item": {**answer, "content": []}},
        *({"type": "thread.item.updated", "item_id": answer["id"], "update": update(piece)} for piece in (said[:half], said[half:])),
        {"type": "thread.item.done", "item": answer},
    ]
    datas = [compact(event) for event in events]
    history = [{"what": "send", "nonce": nonce, "text": text, "workflow": "w", "thread": thread, "dialect": dialect, "key": None},
               {"what": "accepted", "nonce": nonce, "stream": stream, "replayed": False}]
    for seq, data in enumerate(datas, 1):
        history.append({"what": "event", "stream": stream, "seq": seq, "digest": digest(data)})
        if seq == 1:
            history.append({"what": "user", "nonce": nonce, "stream": stream, "thread": thread, "data": data})
    history.append({"what": "answer", "nonce": nonce, "stream": stream, "thread": thread, "data": datas[-1]})
    if stopped:
        history += [{"what": "stop", "nonce": nonce, "stream": stream},
                    {"what": "stopped", "nonce": nonce, "stream": stream, "status": "stopped"}]
    frames = [f"id: {stream}.{seq}\ndata: {data}\n\n" for seq, data in enumerate(datas, 1)]
    status = "cancelled" if stopped else "succeeded"
    dump = {
        "items": [{"thread": thread, "id": one["id"][4:], "content": compact(one)} for one in (user, answer)],
        "runs": [{"id": f"run-{number}", "stream": stream, "thread": thread, "workflow": "w", "status": status,
                  "finished": True, "error": None}],
        "streams": [{"id": stream, "dialect": dialect}],
        "events": [{"stream": stream, "first": 1, "last": 3, "frames": "".join(frames[:3])},
                   {"stream": stream, "first": 4, "last": 6, "frames": "".join(frames[3:])}],
    }
    return history, dump


def world():
    history, dump = [], {"items": [], "runs": [], "streams": [], "events": []}
    for number in range(1, 7):
        told, rows = turn(number, f"thr_{number % 2}", "chatkit" if number % 3 == 0 else "interface", number == 5)
        history += told
        for table, more in rows.items():
            dump[table] += more
    # Nobody knows whether this one exists; here it does not.
    history += [{"what": "send", "nonce": "[0-7]", "text": "[0-7] lost", "workflow": "w", "thread": None, "dialect": "interface", "key": None},
                {"what": "unknown", "nonce": "[0-7]", "key": None}]
    history.append({"what": "mark", "name": "middle"})
    for number, line in enumerate(history):
        line["at"] = float(number)
    history[-1]["at"] += 100.0
    snapshot = {"name": "middle", "items": copy.deepcopy(dump["items"])}
    return {"history": history, "dump": dump, "snapshots": [snapshot]}


def kinds(parts):
    audit = Audit(parts["history"], parts["dump"], [WORKFLOW], parts["snapshots"])
    return {violation["kind"] for violation in audit.run()}


def rows(parts, table, **wanted):
    return [row for row in parts["dump"][table] if all(row[key] == value for key, value in wanted.items())]


def drop(parts, table, row):
    parts["dump"][table].remove(row)


def replace_in(row, name, old, new):
    assert old in row[name], (old, row)
    row[name] = row[name].replace(old, new)


def of_kind(parts, kind, number):
    return [row for row in parts["dump"]["items"] if json.loads(row["content"])["type"] == kind][number]


# Each plants one bug; its name is what the audit has to call it.


def lost_user_item(parts):
    drop(parts, "items", of_kind(parts, "user_message", 1))


def lost_answer_item(parts):
    drop(parts, "items", of_kind(parts, "assistant_message", 1))


def duplicate_user_item(parts):
    twin = copy.deepcopy(of_kind(parts, "user_message", 0))
    replace_in(twin, "content", twin["id"], "f" * 48)
    twin["id"] = "f" * 48
    parts["dump"]["items"].append(twin)


def duplicate_answer(parts):
    row = rows(parts, "events", stream="stream-1", first=4)[0]
    done = row["frames"].split("\n\n")[-2]
    row["frames"] += done.replace("stream-1.6", "stream-1.7") + "\n\n"
    row["last"] = 7


def item_announced(parts):
    twin = copy.deepcopy(of_kind(parts, "assistant_message", 0))
    replace_in(twin, "content", twin["id"], "e" * 48)
    twin["id"] = "e" * 48
    parts["dump"]["items"].append(twin)


def reordered(parts):
    """The second turn of a thread has got a key before the first one's."""
    row = of_kind(parts, "user_message", 2)
    old, new = row["id"], f"{1:048x}"
    for line in parts["history"]:
        if "data" in line:
            line["data"] = line["data"].replace(old, new)
    row["id"] = new
    replace_in(row, "content", old, new)


def sequence_gap(parts):
    drop(parts, "events", rows(parts, "events", stream="stream-2", first=1)[0])


def lost_event(parts):
    drop(parts, "events", rows(parts, "events", stream="stream-2", first=4)[0])


def changed_event(parts):
    replace_in(rows(parts, "events", stream="stream-3", first=4)[0], "frames", '"delta":"', '"delta":"x')


def changed_item(parts):
    replace_in(of_kind(parts, "assistant_message", 2), "content", "hello", "hullo")


def half_an_answer(parts):
    """An answer that was cut short, consistently everywhere, and called a success."""
    row = of_kind(parts, "assistant_message", 3)
    replace_in(row, "content", " world", "")
    for events in parts["dump"]["events"]:
        if events["first"] == 4 and row["id"] in events["frames"]:
            events["frames"] = events["frames"].replace(" world", "")


def stream_without_one_end(parts):
    row = rows(parts, "events", stream="stream-4", first=4)[0]
    row["frames"] = "".join(frame + "\n\n" for frame in row["frames"].split("\n\n")[:-2])
    row["last"] = 5


def unfinished_run(parts):
    rows(parts, "runs", id="run-4")[0].update(status="running", finished=False)


def stop_not_kept(parts):
    rows(parts, "runs", id="run-5")[0]["status"] = "succeeded"


def stopped_by_nobody(parts):
    rows(parts, "runs", id="run-6")[0]["status"] = "cancelled"


def lost_stream(parts):
    drop(parts, "streams", rows(parts, "streams", id="stream-6")[0])


def run_without_a_stream(parts):
    lost_stream(parts)


def stream_with_runs(parts):
    parts["dump"]["runs"].append({**rows(parts, "runs", id="run-3")[0], "id": "run-3b"})


def turn_failed(parts):
    row = rows(parts, "events", stream="stream-4", first=4)[0]
    row["frames"] += 'id: stream-4.7\ndata: {"type":"error","code":"stream.error","allow_retry":true}\n\n'
    row["last"] = 7


def unsent_user_item(parts):
    row = of_kind(parts, "user_message", 0)
    replace_in(row, "content", "[0-1]", "[9-9]")


def appeared_late(parts):
    number = 7
    _, late = turn(number, "thr_9")
    replace_in(late["items"][0], "content", "hello world", "lost")
    for table, more in late.items():
        parts["dump"][table] += more


def lost_since_snapshot(parts):
    parts["snapshots"][0]["items"].append({"thread": "thr_8", "id": "0" * 48, "content": '{"type":"x"}'})


def lost_keyed_turn(parts):
    parts["history"][-3]["key"] = "k"


BUGS = [lost_user_item, lost_answer_item, duplicate_user_item, duplicate_answer, item_announced, reordered, sequence_gap,
        lost_event, changed_event, changed_item, half_an_answer, stream_without_one_end, unfinished_run, stop_not_kept,
        stopped_by_nobody, lost_stream, run_without_a_stream, stream_with_runs, turn_failed, unsent_user_item, appeared_late,
        lost_since_snapshot, lost_keyed_turn]


def views():
    """Bugs that a reader sees by itself: (what it has to be called, the events it is sent)."""
    answer = item("assistant_message", "t", 1, "one two")
    added = {"type": "thread.item.added", "item": {**answer, "content": []}}
    piece = lambda text: {"type": "thread.item.updated", "item_id": answer["id"],
                          "update": {"type": "content_part_added", "part": {"type": "output_text", "text": text}}}
    done = {"type": "thread.item.done", "item": answer}
    good = [added, piece("one "), piece("two"), done]
    frames = lambda events: [(f"s.{seq}", compact(event)) for seq, event in enumerate(events, 1)]
    yield None, frames(good)
    yield "sequence", frames(good)[:2] + frames(good)[3:]
    yield "sequence", frames(good)[:2] + frames(good)[1:]
    yield "text_mismatch", frames([added, piece("one "), piece("one "), piece("two"), done])
    yield "event_after_the_end", frames([*good, piece("more")])
    yield "wrong_dialect", frames([added, {"type": "thread.item.replaced", "item": answer}])
    yield "update_of_nothing", frames([piece("one ")])
    yield "two_answers", frames([added, {**added, "item": {**added["item"], "id": "msg_2"}}, piece("one "), piece("two"), done])
    user = {"type": "thread.item.done", "item": item("user_message", "t", 0, "hi")}
    yield "two_user_items", frames([user, user])


def run():
    failures = []
    if clean := kinds(world()):
        failures.append(f"the good history is refused: {sorted(clean)}")
    for bug in BUGS:
        parts = world()
        bug(parts)
        if bug.__name__ not in (reported := kinds(parts)):
            failures.append(f"{bug.__name__} is not reported, but {sorted(reported)}")
    number = 0
    for number, (wanted, frames) in enumerate(views(), 1):
        view = StreamView("s", "interface")
        reported = {kind for event_id, data in frames for kind, _ in view.take(event_id, data)}
        if reported != ({wanted} if wanted else set()):
            failures.append(f"a reader reports {sorted(reported)}, not {wanted}")
    for failure in failures:
        print(f"self-test: {failure}")
    print(f"self-test: {len(BUGS) + number} planted cases, {len(failures)} not as they should be")
    return not failures
