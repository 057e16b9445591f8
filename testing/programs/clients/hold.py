"""Holds many connections to memcached: hold.py PORT COUNT.

Stores a value of its own over each, prints `held`, waits for a line on standard input, and reads all back twice in random order, ever one of them at a time.
Ends with 0 if each was the right one. Prints exchanges per second, over all of them and over the first hundred.
"""

import random
import socket
import sys
import time

port, count = int(sys.argv[1]), int(sys.argv[2])
TURNS = 40


def answer(end, length):
    got = b""
    while len(got) < length:
        part = end.recv(length - len(got))
        assert part, "the server closed the connection"
        got += part
    return got


def exchange(end, number):
    value = b"%06d" % number
    end.sendall(b"get hold%06d\r\n" % number)
    wanted = b"VALUE hold%s 0 6\r\n%s\r\nEND\r\n" % (value, value)
    got = answer(end, len(wanted))
    assert got == wanted, f"connection {number}: {got!r}"


ends = []
for number in range(count):
    end = socket.create_connection(("127.0.0.1", port))
    end.sendall(b"set hold%06d 0 0 6\r\n%06d\r\n" % (number, number))
    assert answer(end, 8) == b"STORED\r\n"
    ends.append(end)
    # One after the other: while two ends meet they have more descriptors than later.
    for _ in range(TURNS):
        exchange(end, number)
print("held", flush=True)
sys.stdin.readline()


def rate(numbers):
    began = time.monotonic()
    for number in numbers:
        exchange(ends[number], number)
    return len(numbers) / (time.monotonic() - began)


order = list(range(count)) * 2
random.Random(count).shuffle(order)
few = [number % 100 for number in order]
print(f"{rate(order):.0f} {rate(few):.0f}")
