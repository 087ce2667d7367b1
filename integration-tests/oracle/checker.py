"""Compares what was acknowledged with what is stored. Pure: a history and a dump in, violations out.

The dump is `{"items": [{thread, id, content}], "runs": […], "streams": […], "events": […]}`, as `tests/all/crash/dump.rs`
reads it from the tables.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from stream_view import digest, is_terminal, split_events, text_of

# A commit that a killed process had sent may still be on its way for a moment.
SETTLED = 2.0


@dataclass
class Told:
    """One turn as its client saw it; lines are places in the history."""

    text: str = ""
    workflow: str = ""
    sent: int | None = None
    accepted: int | None = None
    sure: bool = False
    unknown_at: list = field(default_factory=list)
    key: str | None = None
    stream: str | None = None
    user: str | None = None
    user_line: int | None = None
    answer: str | None = None
    answer_line: int | None = None
    thread: str | None = None
    stop_sent: bool = False
    stop_status: str | None = None


def item_key(wire):
    return wire.split("_", 1)[1]


class Audit:
    def __init__(self, history, dump, workflows, snapshots=(), allow_errors=False):
        self.history = history
        self.dump = dump
        self.expected = {workflow["id"]: workflow["expect"] for workflow in workflows}
        self.snapshots = snapshots
        self.allow_errors = allow_errors
        self.violations = []
        self.turns = defaultdict(Told)
        self.seen = []
        self.marks = {}

    def run(self):
        self.read_history()
        self.read_dump()
        self.check_streams()
        self.check_runs()
        self.check_turns()
        self.check_items()
        self.check_order()
        self.check_snapshots()
        return self.violations

    def found(self, kind, **fields):
        self.violations.append({"kind": kind, **fields})

    def summary(self):
        turns = self.turns.values()
        return {
            "turns_sent": len(self.turns),
            "turns_acknowledged": sum(turn.user is not None for turn in turns),
            "answers_acknowledged": sum(turn.answer is not None for turn in turns),
            "unknown": sum(turn.accepted is None and bool(turn.unknown_at) for turn in turns),
            "stops_answered": sum(turn.stop_status is not None for turn in turns),
            "events_seen": len(self.seen),
            "resumes": sum(line["what"] == "resumed" for line in self.history),
            "busy": sum(line["what"] == "busy" for line in self.history),
            "stored_items": len(self.items),
            "stored_streams": len(self.streams),
            "run_statuses": dict(Counter(run["status"] for run in self.runs.values())),
            "violations": len(self.violations),
        }

    # Reading.

    def read_history(self):
        for number, line in enumerate(self.history):
            what = line["what"]
            if what == "violation":
                self.violations.append({key: value for key, value in line.items() if key != "what"})
            elif what == "event":
                self.seen.append(line)
            elif what == "mark":
                self.marks[line["name"]] = (number, line["at"])
            elif "nonce" in line:
                self.read_turn(number, what, line)

    def read_turn(self, number, what, line):
        turn = self.turns[line["nonce"]]
        if what == "send" and turn.sent is None:
            turn.sent, turn.text, turn.workflow, turn.key = number, line["text"], line["workflow"], line["key"]
        elif what == "accepted" and turn.accepted is None:
            turn.accepted, turn.stream = number, line["stream"]
        elif what == "unknown":
            turn.unknown_at.append(line["at"])
        elif what == "user" and turn.user is None:
            turn.user, turn.user_line, turn.thread = line["data"], number, line["thread"]
        elif what == "answer" and turn.answer is None:
            turn.answer, turn.answer_line = line["data"], number
        elif what == "stop":
            turn.stop_sent = True
        elif what == "stopped":
            turn.stop_status = line["status"]

    def read_dump(self):
        self.items = {(item["thread"], item["id"]): item["content"] for item in self.dump["items"]}
        if len(self.items) != len(self.dump["items"]):
            self.found("duplicate_key", table="thread_items")
        self.runs = {run["id"]: run for run in self.dump["runs"]}
        self.streams = {stream["id"]: stream for stream in self.dump["streams"]}
        self.parsed = {key: json.loads(content) for key, content in self.items.items()}
        self.users = defaultdict(list)
        for key, item in self.parsed.items():
            if item["type"] == "user_message":
                self.users[text_of(item).split("]")[0] + "]"].append(key)

    # Checking.

    def check_streams(self):
        """Each stream's events are 1..n, in frames that name them, and the last one is its end."""
        rows = defaultdict(list)
        for row in self.dump["events"]:
            rows[row["stream"]].append(row)
        self.stored = {stream: {} for stream in self.streams}
        for stream, parts in rows.items():
            if stream not in self.streams:
                self.found("events_without_a_stream", stream=stream)
            self.stored[stream] = self.join(stream, sorted(parts, key=lambda row: row["first"]))
        self.done = defaultdict(list)
        for stream, events in self.stored.items():
            ends = [seq for seq, data in events.items() if is_terminal(json.loads(data))]
            if not events or ends != [max(events)]:
                self.found("stream_without_one_end", stream=stream, events=len(events), ends=ends)
            for data in events.values():
                event = json.loads(data)
                if event["type"] == "error" and not self.allow_errors:
                    self.found("turn_failed", stream=stream, event=event)
                if event["type"] == "thread.item.done":
                    self.done[stream].append((event["item"], data))

    def join(self, stream, rows):
        events, next_seq = {}, 1
        for row in rows:
            frames, rest = split_events(row["frames"])
            ids = [event_id for event_id, _ in frames]
            wanted = [f"{stream}.{seq}" for seq in range(row["first"], row["last"] + 1)]
            if row["first"] != next_seq or ids != wanted or rest:
                self.found("sequence_gap", stream=stream, next=next_seq, first=row["first"], last=row["last"], ids=ids)
            events.update((row["first"] + index, data) for index, (_, data) in enumerate(frames))
            next_seq = row["last"] + 1
        return events

    def check_runs(self):
        by_stream = Counter(run["stream"] for run in self.runs.values())
        for run in self.runs.values():
            if run["status"] not in ("succeeded", "failed", "cancelled") or not run["finished"]:
                self.found("unfinished_run", run=run["id"], status=run["status"], stream=run["stream"])
            if run["stream"] not in self.streams:
                self.found("run_without_a_stream", run=run["id"])
        for stream in self.streams:
            if by_stream[stream] != 1:
                self.found("stream_with_runs", stream=stream, runs=by_stream[stream])
        self.run_of = {run["stream"]: run for run in self.runs.values()}

    def check_turns(self):
        for line in self.seen:
            stored = self.stored.get(line["stream"], {}).get(line["seq"])
            if stored is None:
                self.found("lost_event", stream=line["stream"], seq=line["seq"])
            elif digest(stored) != line["digest"]:
                self.found("changed_event", stream=line["stream"], seq=line["seq"], stored=stored)
        for nonce, turn in self.turns.items():
            stored = self.users.get(nonce, [])
            if len(stored) > 1:
                self.found("duplicate_user_item", nonce=nonce, items=stored)
            if turn.accepted is not None and turn.stream not in self.streams:
                self.found("lost_stream", nonce=nonce, stream=turn.stream)
            if turn.accepted is not None and not stored:
                self.found("lost_user_item", nonce=nonce, stream=turn.stream)
            if turn.key and not stored:
                self.found("lost_keyed_turn", nonce=nonce)
            for kind, data in (("user", turn.user), ("answer", turn.answer)):
                if data is not None:
                    self.check_item(nonce, turn, kind, data)
            if turn.stop_status == "stopped" and self.run_of.get(turn.stream, {}).get("status") != "cancelled":
                self.found("stop_not_kept", nonce=nonce, stream=turn.stream)
        for nonce in self.users.keys() - self.turns.keys():
            self.found("unsent_user_item", nonce=nonce)

    def check_item(self, nonce, turn, kind, data):
        """Stored once, with the bytes that were told."""
        item = json.loads(data)["item"]
        stored = self.items.get((item["thread_id"], item_key(item["id"])))
        if stored is None:
            self.found(f"lost_{kind}_item", nonce=nonce, item=item["id"], stream=turn.stream)
        elif data != f'{{"type":"thread.item.done","item":{stored}}}':
            self.found("changed_item", nonce=nonce, told=data, stored=stored)
        if kind == "user" and text_of(item) != turn.text:
            self.found("changed_message", nonce=nonce, sent=turn.text, stored=text_of(item))

    def check_items(self):
        """What streams say is done is stored, and nothing else; answers read as their workflow says."""
        announced = Counter()
        for stream, done in self.done.items():
            answers = [item for item, _ in done if item["type"] == "assistant_message"]
            users = [item for item, _ in done if item["type"] == "user_message"]
            run = self.run_of.get(stream, {})
            if len(answers) > 1:
                self.found("duplicate_answer", stream=stream, items=[item["id"] for item in answers])
            if len(users) != 1:
                self.found("stream_without_one_user_item", stream=stream, items=[item["id"] for item in users])
            for item, data in done:
                key = (item["thread_id"], item_key(item["id"]))
                announced[key] += 1
                if data != f'{{"type":"thread.item.done","item":{self.items.get(key)}}}':
                    self.found("done_but_not_stored", stream=stream, item=item["id"])
            if run and users:
                self.check_text(stream, run, text_of(users[0]), [text_of(item) for item in answers])
        for key, item in self.parsed.items():
            wanted = 0 if item["type"] == "sdk_hidden_context" else 1
            if announced[key] != wanted:
                self.found("item_announced", times=announced[key], item=item["id"], thread=key[0])

    def check_text(self, stream, run, message, answers):
        whole = self.expected[run["workflow"]].replace("{message}", message)
        turn = self.turns.get(message.split("]")[0] + "]", Told())
        if run["status"] == "succeeded" and answers != [whole]:
            self.found("half_an_answer", stream=stream, answers=answers, expected=whole)
        elif run["status"] == "cancelled":
            if not turn.stop_sent:
                self.found("stopped_by_nobody", stream=stream, error=run["error"])
            if any(not whole.startswith(answer) for answer in answers):
                self.found("text_mismatch", stream=stream, answers=answers, expected=whole)
        elif run["status"] == "failed" and answers:
            self.found("answer_of_a_failed_turn", stream=stream)

    def check_order(self):
        """What was acknowledged before something was sent stands before it, in every thread."""
        threads = defaultdict(list)
        for nonce, turn in self.turns.items():
            if turn.user is None:
                continue
            user = item_key(json.loads(turn.user)["item"]["id"])
            threads[turn.thread].append((turn.sent, turn.user_line, user, nonce))
            if turn.answer is not None:
                answer = item_key(json.loads(turn.answer)["item"]["id"])
                threads[turn.thread].append((turn.sent, turn.answer_line, answer, nonce))
                if answer < user:
                    self.found("answer_before_its_message", nonce=nonce)
        for thread, items in threads.items():
            acknowledged = sorted(items, key=lambda item: item[1])
            latest, index = ("", ""), 0
            for sent, _, key, nonce in sorted(items):
                while index < len(acknowledged) and acknowledged[index][1] < sent:
                    latest = max(latest, (acknowledged[index][2], acknowledged[index][3]))
                    index += 1
                if key < latest[0]:
                    self.found("reordered", thread=thread, later=nonce, earlier=latest[1])

    def check_snapshots(self):
        """What was there in the middle is there at the end, and what was not to be known has not come since."""
        for snapshot in self.snapshots:
            _, at = self.marks[snapshot["name"]]
            there = set()
            for item in snapshot["items"]:
                if self.items.get((item["thread"], item["id"])) != item["content"]:
                    self.found("lost_since_snapshot", thread=item["thread"], item=item["id"])
                parsed = json.loads(item["content"])
                if parsed["type"] == "user_message":
                    there.add(text_of(parsed).split("]")[0] + "]")
            for nonce, turn in self.turns.items():
                over = turn.accepted is None and not turn.key and turn.unknown_at
                if over and max(turn.unknown_at) + SETTLED < at and nonce not in there and self.users.get(nonce):
                    self.found("appeared_late", nonce=nonce)
