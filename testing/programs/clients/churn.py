"""Clients of redis that come and go, some killed at random instants: churn.py PORT SECONDS CLIENTS.

Each sets values of its own and reads them back; ends with 0 if none was another. Prints how many there were of what.
"""

import os
import random
import signal
import socket
import sys
import time

port, seconds, crowd = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
SIZES = [1, 10, 100, 1000, 5000, 30000, 200000]


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        parts += [b"$%d\r\n" % len(word), word, b"\r\n"]
    return b"".join(parts)


def bulk(file):
    line = file.readline()
    assert line.startswith(b"$"), line
    length = int(line[1:])
    return file.read(length + 2)[:-2]


def client(number):
    """A life: some connections, some values in each, in pipelines of up to ten."""
    chance = random.Random(number)
    pid = b"%d" % os.getpid()
    for _ in range(chance.randrange(1, 4)):
        with socket.create_connection(("127.0.0.1", port)) as end, end.makefile("rb") as file:
            for _ in range(chance.randrange(1, 60)):
                values = [chance.randbytes(chance.choice(SIZES)) for _ in range(chance.randrange(1, 10))]
                keys = [b"churn:%s:%d" % (pid, at) for at in range(len(values))]
                end.sendall(b"".join(command(b"SET", key, value) + command(b"GET", key) for key, value in zip(keys, values)))
                for value in values:
                    assert file.readline() == b"+OK\r\n"
                    assert bulk(file) == value, "a value came back as another"


def main():
    chance = random.Random(os.getpid())
    end = time.monotonic() + seconds
    living, births, kills, wrong = {}, 0, 0, 0
    while time.monotonic() < end or living:
        while len(living) < crowd and time.monotonic() < end:
            births += 1
            pid = os.fork()
            if pid == 0:
                try:
                    client(births)
                    os._exit(0)
                except BaseException as error:
                    print(f"client {births}: {error!r}", file=sys.stderr, flush=True)
                    os._exit(1)
            living[pid] = births
        if living and chance.random() < 0.3:
            kills += 1
            os.kill(chance.choice(list(living)), signal.SIGKILL)
        time.sleep(chance.random() * 0.02)
        while living:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            del living[pid]
            wrong += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
    print(f"{births} clients, {kills} killed, {wrong} with a wrong answer")
    sys.exit(wrong != 0)


main()
