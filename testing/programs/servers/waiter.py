"""A service for inetd's `wait`: its standard input is a socket that listens. Sends back what it gets; ends when nobody has come for a while."""

import socket

listener = socket.socket(fileno=0)
listener.settimeout(2)
try:
    while True:
        connection, _ = listener.accept()
        connection.settimeout(None)
        with connection:
            while data := connection.recv(65536):
                connection.sendall(data)
except TimeoutError:
    pass
