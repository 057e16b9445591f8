"""The same as http_server.py with asyncio streams: one thread, one epoll set."""

import asyncio
import hashlib
import pathlib
import sys


async def serve(reader, writer):
    try:
        while line := await reader.readline():
            method, path, _ = line.decode().split()
            headers = {}
            while (line := await reader.readline()).strip():
                name, _, value = line.decode().partition(":")
                headers[name.lower()] = value.strip()
            if headers.get("expect", "").lower() == "100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            if method == "GET":
                content = (FOLDER / pathlib.PurePosixPath(path).name).read_bytes()
                digest = hashlib.sha256(content).hexdigest()
            else:
                digest = await digest_of_body(reader, headers)
                content = digest.encode()
            writer.write(
                f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\nX-Digest: {digest}\r\n\r\n".encode()
            )
            writer.write(content)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        print("a client left:", error, file=sys.stderr)
    finally:
        writer.close()


async def digest_of_body(reader, headers):
    digest = hashlib.sha256()
    if headers.get("transfer-encoding", "").lower() != "chunked":
        await take(reader, int(headers["content-length"]), digest)
        return digest.hexdigest()
    while length := int(await reader.readline(), 16):
        await take(reader, length, digest)
        await reader.readline()
    await reader.readline()
    return digest.hexdigest()


async def take(reader, length, digest):
    while length > 0:
        piece = await reader.read(min(length, 65536))
        if not piece:
            raise ConnectionError("the body ended early")
        digest.update(piece)
        length -= len(piece)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    async with server:
        await server.serve_forever()


FOLDER = pathlib.Path(sys.argv[2])
asyncio.run(main())
