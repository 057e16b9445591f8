"""Says lines to a service that numbers them, one at a time: lines.py PORT SECONDS. Prints how many were answered in a second."""

import socket
import sys
import time

port, seconds = int(sys.argv[1]), float(sys.argv[2])
end = socket.create_connection(("127.0.0.1", port))
lines = end.makefile("rwb")
number = 0
# The first hundred are not counted: the service is starting.
while number < 100 or time.monotonic() < until:
    lines.write(b"line\n")
    lines.flush()
    number += 1
    got = lines.readline()
    assert got == b"%d: line\n" % number, got
    if number == 100:
        began = time.monotonic()
        until = began + seconds
print(int((number - 100) / (time.monotonic() - began)))
