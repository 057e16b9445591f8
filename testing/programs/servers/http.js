// As asyncio_server.py, in Node.js: http.js PORT FOLDER.
'use strict';
const { createHash } = require('crypto');
const { createReadStream, readFileSync } = require('fs');
const { createServer } = require('http');
const { basename, join } = require('path');

const [port, folder] = process.argv.slice(2);
const digests = new Map();

function digestOf(path) {
    if (!digests.has(path)) digests.set(path, createHash('sha256').update(readFileSync(path)).digest('hex'));
    return digests.get(path);
}

createServer((request, response) => {
    if (request.method === 'GET') {
        const path = join(folder, basename(request.url));
        response.setHeader('X-Digest', digestOf(path));
        createReadStream(path).pipe(response);
        return;
    }
    const digest = createHash('sha256');
    request.pipe(digest).on('finish', () => response.end(digest.digest('hex')));
}).listen(Number(port), '127.0.0.1');
