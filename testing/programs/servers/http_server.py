"""Serves a folder with Python's http.server: GET with the digest of the file, POST and PUT answered with that of the body."""

import functools
import hashlib
import http.server
import pathlib
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def end_headers(self):
        if self.command == "GET":
            path = pathlib.Path(self.translate_path(self.path))
            if path.is_file():
                self.send_header("X-Digest", hashlib.sha256(path.read_bytes()).hexdigest())
        super().end_headers()

    def do_POST(self):
        digest = hashlib.sha256()
        for piece in self.body():
            digest.update(piece)
        answer = digest.hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_PUT = do_POST

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            yield from self.pieces(int(self.headers["Content-Length"]))
            return
        while length := int(self.rfile.readline(), 16):
            yield from self.pieces(length)
            self.rfile.readline()
        self.rfile.readline()

    def pieces(self, length):
        while length > 0:
            piece = self.rfile.read(min(length, 65536))
            if not piece:
                raise ConnectionError("the body ended early")
            length -= len(piece)
            yield piece


port, folder = int(sys.argv[1]), sys.argv[2]
handler = functools.partial(Handler, directory=folder)
http.server.ThreadingHTTPServer(("127.0.0.1", port), handler).serve_forever()
