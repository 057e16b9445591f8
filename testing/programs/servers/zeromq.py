"""ZeroMQ over TCP: `zeromq.py server PORT` binds, `zeromq.py client PORT` connects. Requests, a pipeline and publications, each in order."""

import sys
import time

import zmq

COUNT = 20000


def server(context, port):
    requests, pipeline, news = (context.socket(kind) for kind in (zmq.REP, zmq.PULL, zmq.XPUB))
    news.setsockopt(zmq.SNDHWM, 0)
    for at, socket in enumerate((pipeline, news, requests)):
        socket.bind(f"tcp://127.0.0.1:{port + 2 - at}")
    while (message := requests.recv()) != b"end":
        if message == b"pulled?":
            for number in range(COUNT):
                assert pipeline.recv() == b"%d" % number
        if message == b"publish":
            assert news.recv() == b"\1"
            for number in range(COUNT):
                news.send(b"%d" % number)
        requests.send(message)
    requests.send(message)


def client(context, port):
    requests, pipeline, news = (context.socket(kind) for kind in (zmq.REQ, zmq.PUSH, zmq.SUB))
    news.setsockopt(zmq.RCVHWM, 0)
    for at, socket in enumerate((pipeline, news, requests)):
        socket.connect(f"tcp://127.0.0.1:{port + 2 - at}")
    news.subscribe(b"")

    def ask(message):
        requests.send(message)
        assert requests.recv() == message

    began = time.monotonic()
    for number in range(3000):
        ask(b"x" * (number % 200))
    took = time.monotonic() - began
    for number in range(30):
        ask(bytes([number]) * (number * 100003))
    for number in range(COUNT):
        pipeline.send(b"%d" % number)
    ask(b"pulled?")
    ask(b"publish")
    for number in range(COUNT):
        assert news.recv() == b"%d" % number
    ask(b"end")
    print(f"whole, {3000 / took:.0f} a second")


{"server": server, "client": client}[sys.argv[1]](zmq.Context(), int(sys.argv[2]))
