"""The clients: they chat, break off, resume, stop and repeat, and log what they were told."""

import codecs
import json
import random
import threading
import time
from dataclasses import dataclass, field

import raw_http
from stream_view import StreamView, digest, split_events

WORDS = "one two three four five six seven über naïve 東京 🙂 \"quoted\" back\\slash <b>bold</b> {{no}} a&b end.".split()
DIALECTS = {"interface": "text/event-stream", "chatkit": "text/event-stream;dialect=chatkit"}
# A turn takes at most two seconds of work; whatever takes this long has been lost.
TURN_LIMIT = 120.0
# Pings come every ten seconds: longer silence is a violation.
SILENCE = 25.0


@dataclass
class Turn:
    nonce: str
    text: str
    workflow: dict
    thread: str | None
    dialect: str
    key: str | None
    abort_at: int | None = None
    stop_at: int | None = None
    stream: str | None = None
    stop_answered: bool = False
    view: StreamView | None = None
    began: float = field(default_factory=time.monotonic)

    def body(self):
        content = [{"type": "input_text", "text": self.text}]
        params = {"input": {"content": content, "attachments": [], "quoted_text": None, "inference_options": {}}}
        kind = "threads.create"
        if self.thread:
            kind, params["thread_id"] = "threads.add_user_message", self.thread
        body = {"workflow_id": self.workflow["id"], "type": kind, "params": params, "metadata": {}}
        return json.dumps(body, ensure_ascii=False).encode()


class GivenUp(Exception):
    """A violation was logged; nothing more can be learnt from this turn."""


class Client(threading.Thread):
    def __init__(self, number, address, workflows, history, readiness, finishing, seed):
        super().__init__(name=f"client-{number}", daemon=True)
        self.number = number
        self.address = address
        self.workflows = workflows
        self.history = history
        self.readiness = readiness
        self.finishing = finishing
        self.random = random.Random(f"{seed}/{number}")
        self.turns = 0
        self.threads = []

    def run(self):
        try:
            while not self.finishing.is_set():
                self.step()
        except Exception as error:  # A client that ends early would make the test weaker without a word.
            self.history.violation("oracle_failed", client=self.number, error=repr(error))
            raise

    def step(self):
        chance = self.random.random()
        known = self.random.choice(self.threads) if self.threads and chance > 0.25 else None
        if known and chance > 0.88:
            together = [self.new_turn(known) for _ in range(self.random.randint(2, 3))]
            self.in_parallel([lambda turn=turn: self.hold(turn) for turn in together])
            return
        self.hold(self.new_turn(known))
        if len(self.threads) > 12:
            self.threads.pop(self.random.randrange(len(self.threads)))

    def new_turn(self, known):
        draw = self.random
        self.turns += 1
        nonce = f"[{self.number}-{self.turns}]"
        # Quick turns are the ones whose request a kill hits, long ones those whose stream it cuts.
        words = draw.choices(WORDS, k=draw.randint(3, 45) if draw.random() < 0.4 else draw.randint(0, 3))
        text = nonce + "".join(draw.choice([" ", " ", " ", "\n", "  "]) + word for word in words)
        workflow, thread = known or (draw.choice(self.workflows), None)
        turn = Turn(nonce, text, workflow, thread, draw.choice(list(DIALECTS)), None)
        if draw.random() < 0.5:
            turn.key = f"{nonce}-{draw.getrandbits(64):x}"
        if draw.random() < 0.25:
            turn.abort_at = draw.randint(0, 12)
        if draw.random() < 0.12:
            turn.stop_at = draw.randint(1, 10)
        return turn

    def in_parallel(self, works):
        helpers = [threading.Thread(target=work, daemon=True) for work in works[1:]]
        for helper in helpers:
            helper.start()
        try:
            works[0]()
        finally:
            for helper in helpers:
                helper.join()

    # One turn.

    def hold(self, turn, detour=True):
        twice = turn.key and self.random.random() < 0.15
        try:
            if twice:
                other = Turn(turn.nonce, turn.text, turn.workflow, turn.thread, turn.dialect, turn.key)
                self.in_parallel([lambda: self.hold_once(turn, False), lambda: self.hold_quietly(other)])
                if turn.stream and other.stream and turn.stream != other.stream:
                    self.history.violation("key_gave_two_streams", nonce=turn.nonce, streams=[turn.stream, other.stream])
            else:
                self.hold_once(turn, detour)
            if turn.stream is None:
                return
            if turn.thread is None:
                self.threads.append((turn.workflow, turn.view.thread))
            if turn.key and self.random.random() < 0.1:
                self.repeat(turn)
            if self.random.random() < 0.1:
                self.read_again(turn)
        except GivenUp:
            pass

    def hold_quietly(self, turn):
        try:
            self.hold_once(turn, False)
        except GivenUp:
            pass

    def hold_once(self, turn, detour):
        response = self.begin(turn, detour)
        if response is not None:
            turn.view = turn.view or StreamView(turn.stream, turn.dialect)
            self.follow(turn, response)

    def begin(self, turn, detour):
        """Sends the turn until its outcome is known; None when it never will be."""
        while True:
            self.in_time(turn)
            self.history.write("send", nonce=turn.nonce, text=turn.text, workflow=turn.workflow["id"],
                               thread=turn.thread, dialect=turn.dialect, key=turn.key)
            try:
                response = self.post(turn)
            except raw_http.NotSent:
                self.readiness.wait(TURN_LIMIT)
                continue
            except raw_http.Broken:
                response = None
            if response is not None and response.status == 200:
                stream = response.headers.get("x-chat-stream-id", "")
                if turn.stream not in (None, stream):
                    self.give_up("key_gave_two_streams", nonce=turn.nonce, streams=[turn.stream, stream])
                turn.stream = stream
                replayed = response.headers.get("idempotency-replayed") == "true"
                self.history.write("accepted", nonce=turn.nonce, stream=stream, replayed=replayed)
                return response
            if response is not None:
                self.refused(turn, response, "begin")
            self.history.write("unknown", nonce=turn.nonce, key=turn.key)
            if not turn.key:
                return None
            self.readiness.wait(TURN_LIMIT)
            if detour and turn.thread and self.random.random() < 0.3:
                # Another message overtakes the one whose fate is unknown.
                self.hold(self.new_turn((turn.workflow, turn.thread)), detour=False)

    def post(self, turn):
        headers = [("Accept", DIALECTS[turn.dialect])]
        if turn.key:
            headers.append(("Idempotency-Key", turn.key))
        return raw_http.send(self.address, "POST", "/api/chat", headers, turn.body(), SILENCE)

    def refused(self, turn, response, doing):
        """503 leaves open what happened; anything else is none of what this service should say."""
        status, answer = response.status, self.answer_of(response)
        response.close()
        if status not in (503, 429):
            self.give_up("refused", doing=doing, nonce=turn.nonce, stream=turn.stream, status=status, answer=answer)
        self.history.write("busy", doing=doing, nonce=turn.nonce, status=status, answer=answer)
        time.sleep(0.2)

    @staticmethod
    def answer_of(response):
        try:
            return b"".join(response.pieces()).decode(errors="replace")[:500]
        except raw_http.Broken as error:
            return repr(error)

    def follow(self, turn, response):
        """Reads a stream to its end, over as many connections as it takes."""
        while True:
            self.in_time(turn)
            outcome = self.read(turn, response)
            if outcome == "ended":
                if turn.view.terminal is None:
                    self.give_up("ended_without_an_end", stream=turn.stream, seq=turn.view.seq)
                return
            if outcome == "aborted":
                time.sleep(self.random.choice([0, 0.05, 0.3, 1.0]))
            else:
                self.readiness.wait(TURN_LIMIT)
            response = self.resume(turn)
            if response is None:
                return

    def read(self, turn, response):
        decoder, rest, view = codecs.getincrementaldecoder("utf-8")(), "", turn.view
        try:
            for piece in response.pieces():
                events, rest = split_events(rest + decoder.decode(piece))
                for event_id, data in events:
                    if event_id is None:
                        if data == "reconnect":
                            return "broken"
                        continue
                    self.take(turn, event_id, data)
                    if turn.stop_at is not None and view.seq >= turn.stop_at and not turn.stop_answered:
                        self.stop(turn)
                    if turn.abort_at is not None and view.seq >= turn.abort_at:
                        turn.abort_at = None
                        return "aborted"
            if rest:
                self.give_up("ended_within_an_event", stream=turn.stream, rest=rest)
            return "ended"
        except raw_http.Broken as error:
            if "timed out" in str(error):
                self.history.violation("silence", stream=turn.stream, seq=view.seq)
            return "broken"
        finally:
            response.close()

    def take(self, turn, event_id, data):
        view = turn.view
        had_user, had_answer = view.user, view.answer
        found = view.take(event_id, data)
        for kind, fields in found:
            self.history.violation(kind, stream=turn.stream, nonce=turn.nonce, **fields)
        if any(kind == "sequence" for kind, _ in found):
            raise GivenUp
        self.history.write("event", stream=turn.stream, seq=view.seq, digest=digest(data))
        if view.user is not had_user:
            self.history.write("user", nonce=turn.nonce, stream=turn.stream, thread=view.thread, data=data)
        if view.answer is not had_answer:
            self.history.write("answer", nonce=turn.nonce, stream=turn.stream, thread=view.thread, data=data)
        if view.terminal is not None:
            self.history.write("end", nonce=turn.nonce, stream=turn.stream, kind=view.terminal, seq=view.seq)

    def resume(self, turn):
        """The stream behind the last event; None when there is no more."""
        while True:
            self.in_time(turn)
            path, headers = f"/api/chat/streams/{turn.stream}", []
            last = turn.view.last_event_id
            if last and self.random.random() < 0.2:
                path += f"?after={turn.view.seq}"
            elif last:
                headers.append(("Last-Event-ID", last))
            try:
                response = raw_http.send(self.address, "GET", path, headers, timeout=SILENCE)
            except (raw_http.NotSent, raw_http.Broken):
                self.readiness.wait(TURN_LIMIT)
                continue
            if response.status == 200:
                self.history.write("resumed", stream=turn.stream, after=turn.view.seq)
                return response
            if response.status == 204:
                response.close()
                if turn.view.terminal is None:
                    self.give_up("nothing_more_without_an_end", stream=turn.stream, seq=turn.view.seq)
                return None
            self.refused(turn, response, "resume")

    def stop(self, turn):
        """Asks for the end of the turn until there is an answer."""
        self.history.write("stop", stream=turn.stream, nonce=turn.nonce)
        while True:
            self.in_time(turn)
            try:
                response = raw_http.send(self.address, "POST", f"/api/chat/streams/{turn.stream}/stop", timeout=SILENCE)
                if response.status == 200:
                    status = response.json()["status"]
                    response.close()
                    turn.stop_answered = True
                    self.history.write("stopped", stream=turn.stream, nonce=turn.nonce, status=status)
                    return
                self.refused(turn, response, "stop")
            except (raw_http.NotSent, raw_http.Broken):
                self.readiness.wait(TURN_LIMIT)

    def repeat(self, turn):
        """The same request with the same key, long after: the same stream from its first event."""
        again = Turn(turn.nonce, turn.text, turn.workflow, turn.thread, turn.dialect, turn.key, stream=turn.stream)
        again.view = StreamView(turn.stream, turn.dialect)
        response = self.begin(again, False)
        if response.headers.get("idempotency-replayed") != "true":
            self.history.violation("key_not_remembered", nonce=turn.nonce, stream=turn.stream)
        self.follow(again, response)

    def read_again(self, turn):
        again = Turn(turn.nonce, turn.text, turn.workflow, turn.thread, turn.dialect, None, stream=turn.stream)
        again.view = StreamView(turn.stream, turn.dialect)
        response = self.resume(again)
        if response is not None:
            self.follow(again, response)

    def in_time(self, turn):
        if time.monotonic() - turn.began > TURN_LIMIT:
            self.give_up("never_ended", nonce=turn.nonce, stream=turn.stream, seq=turn.view.seq if turn.view else 0)

    def give_up(self, kind, **fields):
        self.history.violation(kind, **fields)
        raise GivenUp
