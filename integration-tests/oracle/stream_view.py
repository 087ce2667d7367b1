"""What one reader knows of one stream, and whether each next event fits to it. Pure."""

import hashlib
import json


def digest(data):
    return hashlib.sha256(data.encode()).hexdigest()[:20]


def text_of(item):
    return "".join(part.get("text", "") for part in item["content"])


def is_terminal(event):
    kind = event["type"]
    return kind in ("error", "notice") or (
        kind == "thread.item.done" and event["item"]["type"] == "assistant_message"
    )


# Where live events begin, in the dialect `interface`. It has no place in the stream.
LIVE = '{"type":"stream.live"}'


def split_events(text):
    """The complete events of a text, as (id, data), and what is left of it. Comments are `(None, comment)`."""
    *frames, rest = text.split("\n\n")
    events = []
    for frame in frames:
        fields, comment = {}, None
        for line in frame.split("\n"):
            if line.startswith(":"):
                comment = line[1:].strip()
            elif ": " in line:
                name, value = line.split(": ", 1)
                fields[name] = value
        if "id" not in fields and fields.get("data") == LIVE:
            events.append((None, "live"))
        elif "data" in fields:
            events.append((fields.get("id", ""), fields["data"]))
        elif comment is not None:
            events.append((None, comment))
    return events, rest


class StreamView:
    """Folds a stream. `take` yields the violations of an event; what it acknowledges stands in `user`, `answer`."""

    def __init__(self, stream, dialect):
        self.stream = stream
        self.dialect = dialect
        self.seq = 0
        self.thread = None
        self.user = None
        self.answer = None
        self.terminal = None
        self._shown = {}

    @property
    def last_event_id(self):
        return f"{self.stream}.{self.seq}" if self.seq else None

    def take(self, event_id, data):
        expected = f"{self.stream}.{self.seq + 1}"
        if event_id != expected:
            return [("sequence", {"expected": expected, "got": event_id})]
        self.seq += 1
        if self.terminal is not None:
            return [("event_after_the_end", {"seq": self.seq, "data": data})]
        event = json.loads(data)
        found = list(self._fold(event))
        if is_terminal(event):
            self.terminal = event["type"]
        return found

    def _fold(self, event):
        kind = event["type"]
        if kind == "thread.created":
            self.thread = event["thread"]["id"]
        elif kind == "thread.item.added":
            self._shown[event["item"]["id"]] = text_of(event["item"])
        elif kind == "thread.item.replaced":
            if self.dialect == "interface":
                yield "wrong_dialect", {"event": kind}
            self._shown[event["item"]["id"]] = text_of(event["item"])
        elif kind == "thread.item.updated":
            yield from self._update(event["item_id"], event["update"])
        elif kind == "thread.item.done" and event["item"]["type"] == "user_message":
            if self.user is not None:
                yield "two_user_items", {"first": self.user["id"], "second": event["item"]["id"]}
            self.user, self.thread = event["item"], event["item"]["thread_id"]
        elif kind == "thread.item.done":
            item = event["item"]
            shown = self._shown.get(item["id"])
            if shown is not None and shown != text_of(item):
                yield "text_mismatch", {"item": item["id"], "shown": shown, "done": text_of(item)}
            if len(self._shown) > 1 or (self._shown and shown is None):
                yield "two_answers", {"begun": sorted(self._shown), "done": item["id"]}
            self.answer = item

    def _update(self, item, update):
        kind = update["type"]
        if (kind == "content_part_added") != (self.dialect == "interface"):
            yield "wrong_dialect", {"event": kind}
        if item not in self._shown:
            yield "update_of_nothing", {"item": item}
            return
        if kind == "content_part_added":
            self._shown[item] += update["part"]["text"]
        elif kind == "assistant_message.content_part.added":
            self._shown[item] += update["content"]["text"]
        elif kind == "assistant_message.content_part.text_delta":
            self._shown[item] += update["delta"]
        elif kind == "assistant_message.content_part.done" and self._shown[item] != update["content"]["text"]:
            yield "text_mismatch", {"item": item, "shown": self._shown[item], "part": update["content"]["text"]}
