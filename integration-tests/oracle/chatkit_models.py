"""Reads what the chat sends with the models of the public package openai-chatkit.

Lines of standard input are JSON: {"kind": …, "value": …}, with one of the kinds below. A value that its
model refuses, or of which the model loses a member, is printed, and the exit code is 1.
"""

import json
import sys

from chatkit.types import (
    Attachment,
    ChatKitReq,
    Page,
    SyncCustomActionResponse,
    Thread,
    ThreadItem,
    ThreadStreamEvent,
    TranscriptionResult,
)
from pydantic import TypeAdapter, ValidationError

MODELS = {
    "event": TypeAdapter(ThreadStreamEvent),
    "thread": TypeAdapter(Thread),
    "items": TypeAdapter(Page[ThreadItem]),
    "threads": TypeAdapter(Page[Thread]),
    "request": TypeAdapter(ChatKitReq),
    "attachment": TypeAdapter(Attachment),
    "acted": TypeAdapter(SyncCustomActionResponse),
    "transcript": TypeAdapter(TranscriptionResult),
}
# Members that the service adds, which clients of the package ignore.
OURS = {"error_code", "status", "reason", "storage_path"}


def lost(sent, read, place=""):
    """Members of what was sent that the model does not have, or has otherwise."""
    if isinstance(sent, dict) and isinstance(read, dict):
        for name, value in sent.items():
            if name not in read:
                if name not in OURS:
                    yield f"{place}/{name}"
            else:
                yield from lost(value, read[name], f"{place}/{name}")
    elif isinstance(sent, list) and isinstance(read, list) and len(sent) == len(read):
        for index, (one, other) in enumerate(zip(sent, read)):
            yield from lost(one, other, f"{place}/{index}")
    elif sent != read:
        yield place


def problems(kind, value):
    model = MODELS[kind]
    try:
        read = model.validate_python(value)
    except ValidationError as error:
        return [str(error)]
    written = model.dump_python(read, mode="json", by_alias=True, exclude_none=True)
    # Times are written in another way.
    return [place for place in lost(value, written) if not place.endswith(("/created_at", "/timestamp"))]


def main():
    found, kinds = 0, {}
    for line in sys.stdin:
        entry = json.loads(line)
        kind, value = entry["kind"], entry["value"]
        kinds[kind] = kinds.get(kind, 0) + 1
        for problem in problems(kind, value):
            found += 1
            print(f"{kind} {json.dumps(value)}: {problem}")
    print(json.dumps(kinds))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
