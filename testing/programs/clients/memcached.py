"""A client of memcached's text protocol: memcached.py PORT. Ends with 0 if every answer was right."""

import hashlib
import random
import selectors
import socket
import sys

port = int(sys.argv[1])
SIZES = [0, 1, 100, 1448, 16384, 65537, 1000000, 8000000]


class Client:
    def __init__(self):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def send(self, *parts):
        self.socket.sendall(b"".join(parts))

    def line(self):
        return self.file.readline().rstrip(b"\r\n")

    def expect(self, wanted):
        got = self.line()
        assert got == wanted, f"{got!r} instead of {wanted!r}"

    def set(self, key, value):
        self.send(b"set %s 7 0 %d\r\n" % (key, len(value)), value, b"\r\n")
        self.expect(b"STORED")

    def values(self):
        """What a get is answered with: a dictionary from keys to values, and one to their cas numbers."""
        values, versions = {}, {}
        while True:
            words = self.line().split()
            if words == [b"END"]:
                return values, versions
            assert words[0] == b"VALUE" and words[2] == b"7", words
            length = int(words[3])
            values[words[1]] = self.file.read(length + 2)[:length]
            if len(words) > 4:
                versions[words[1]] = words[4]


def contents(key, length):
    return random.Random(key).randbytes(length)


def sizes():
    client = Client()
    for turn in range(3):
        for length in SIZES:
            key = b"size%d.%d" % (turn, length)
            client.set(key, contents(key, length))
            client.send(b"get %s\r\n" % key)
            assert client.values()[0] == {key: contents(key, length)}, key


def pipeline():
    """2,000 requests before the first answer is read, half of them without an answer."""
    client = Client()
    keys = [b"pipe%d" % number for number in range(2000)]
    requests = []
    for number, key in enumerate(keys):
        value = contents(key, number)
        quiet = b" noreply" if number % 2 else b""
        requests.append(b"set %s 7 0 %d%s\r\n%s\r\n" % (key, len(value), quiet, value))
    client.send(*requests)
    for _ in keys[::2]:
        client.expect(b"STORED")
    for first in range(0, len(keys), 100):
        some = keys[first : first + 100]
        client.send(b"get ", b" ".join(some), b"\r\n")
        values, _ = client.values()
        assert values == {key: contents(key, int(key[4:])) for key in some}


def versions():
    client = Client()
    client.set(b"counter", b"0")
    for turn in range(500):
        client.send(b"gets counter\r\n")
        values, numbers = client.values()
        value = b"%d" % (int(values[b"counter"]) + 1)
        for answer in (b"STORED", b"EXISTS"):
            client.send(b"cas counter 7 0 %d %s\r\n%s\r\n" % (len(value), numbers[b"counter"], value))
            client.expect(answer)
    client.send(b"incr counter 5\r\nget counter\r\n")
    client.expect(b"505")
    assert client.values()[0] == {b"counter": b"505"}


def crowd():
    """Twenty connections at once, each with an answer of its own under way."""
    selector = selectors.DefaultSelector()
    clients = [Client() for _ in range(20)]
    digests = []
    for number, client in enumerate(clients):
        key = b"crowd%d" % number
        client.set(key, contents(key, 300000))
        client.socket.setblocking(False)
        selector.register(client.socket, selectors.EVENT_READ, number)
        digests.append((hashlib.sha256(), hashlib.sha256()))
    left = [0] * len(clients)
    rounds = [10] * len(clients)
    while any(rounds):
        for number, turns in enumerate(rounds):
            if turns and left[number] == 0:
                key = b"crowd%d" % number
                answer = b"VALUE %s 7 300000\r\n%s\r\nEND\r\n" % (key, contents(key, 300000))
                left[number] = len(answer)
                digests[number][0].update(answer)
                clients[number].socket.send(b"get %s\r\n" % key)
        for key, _ in selector.select():
            got = key.fileobj.recv(65536)
            assert got, "the server closed the connection"
            digests[key.data][1].update(got)
            left[key.data] -= len(got)
            if left[key.data] == 0:
                rounds[key.data] -= 1
    for wanted, got in digests:
        assert wanted.digest() == got.digest(), "a value came back as another"


for part in (sizes, pipeline, versions, crowd):
    part()
