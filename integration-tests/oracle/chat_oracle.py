#!/usr/bin/env python3
"""An outside process that knows only what the chat acknowledged, and says afterwards whether all of it is kept.

    chat_oracle.py run --address HOST:PORT --history FILE --clients N --seed S
        Reads commands on standard input, answers each with one line of JSON on standard output:
          starting          a process is being started now; answered when it is ready
          starting cold     the same, for a start that makes its database first and does not count
          go FILE           begins to chat with the workflows of FILE: [{id, expect}], `{message}` in `expect`
          mark NAME         a snapshot of the tables is taken after this
          finish            no new turns; answered when all that was begun has come to its end
    chat_oracle.py audit --history FILE --dump FILE --workflows FILE [--snapshot FILE]
        Compares the history with the tables. Status 1 and a line for each violation.
    chat_oracle.py self-test
        Plants bugs and has to find them.

Nothing but Python's standard library.
"""

import argparse
import json
import sys
import threading
import time

import self_test
from checker import Audit
from clients import TURN_LIMIT, Client
from history import History, read
from readiness import Readiness


def say(**fields):
    print(json.dumps(fields), flush=True)


def run(options):
    host, port = options.address.rsplit(":", 1)
    address = (host, int(port))
    history = History(options.history)
    readiness = Readiness(address)
    finishing = threading.Event()
    clients = []
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "starting":
            history.write("starting")
            seconds = readiness.starting(counts=argument != "cold")
            history.write("ready", seconds=seconds)
            say(ready=seconds)
        elif command == "go":
            workflows = load(argument)
            parts = (address, workflows, history, readiness, finishing, options.seed)
            clients = [Client(number, *parts) for number in range(options.clients)]
            for client in clients:
                client.start()
            say(clients=len(clients))
        elif command == "mark":
            history.write("mark", name=argument)
            say(mark=argument)
        elif command == "finish":
            finishing.set()
            limit = time.monotonic() + TURN_LIMIT
            for client in clients:
                client.join(max(0.0, limit - time.monotonic()))
                if client.is_alive():
                    history.violation("client_stuck", client=client.number)
            say(finished=True, turns=sum(client.turns for client in clients), violations=history.violations,
                readiness=readiness.summary())
            return True
    return False


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def audit(options):
    snapshots = [load(path) for path in options.snapshot]
    result = Audit(read(options.history), load(options.dump), load(options.workflows), snapshots, options.allow_errors)
    violations = result.run()
    for violation in violations[:200]:
        print(json.dumps(violation, ensure_ascii=False))
    print(json.dumps(result.summary()))
    return not violations


def main():
    # Also as an option, as people expect of a self-test.
    arguments = ["self-test" if argument == "--self-test" else argument for argument in sys.argv[1:]]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.set_defaults(work=run)
    runs.add_argument("--address", required=True)
    runs.add_argument("--history", required=True)
    runs.add_argument("--clients", type=int, default=8)
    runs.add_argument("--seed", default="0")
    audits = commands.add_parser("audit")
    audits.set_defaults(work=audit)
    audits.add_argument("--history", required=True)
    audits.add_argument("--dump", required=True)
    audits.add_argument("--workflows", required=True)
    audits.add_argument("--snapshot", action="append", default=[])
    audits.add_argument("--allow-errors", action="store_true", help="turns may end with an error event")
    commands.add_parser("self-test").set_defaults(work=lambda _: self_test.run())
    options = parser.parse_args(arguments)
    sys.exit(0 if options.work(options) else 1)


if __name__ == "__main__":
    main()
