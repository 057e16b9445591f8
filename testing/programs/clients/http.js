// Requests over connections that are kept: http.js URL FOLDER. Ends with 0 if each body came back as its digest, and each file as it is.
'use strict';
const { createHash } = require('crypto');
const { readFileSync } = require('fs');
const http = require('http');
const { join } = require('path');

const [url, folder] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });

function request(method, path, body) {
    return new Promise((resolve, reject) => {
        const made = http.request(`${url}/${path}`, { method, agent }, (response) => {
            const parts = [];
            response.on('data', (part) => parts.push(part)).on('end', () => resolve(Buffer.concat(parts))).on('error', reject);
        });
        made.on('error', reject).end(body);
    });
}

async function one(number) {
    const name = number % 10 === 0 ? 'large' : number % 2 === 0 ? 'middle' : 'small';
    const wanted = readFileSync(join(folder, name));
    const got = await request('GET', name);
    if (!got.equals(wanted)) throw new Error(`${name} came as ${got.length} other bytes`);
    const digest = await request('POST', 'upload', wanted);
    if (digest.toString() !== createHash('sha256').update(wanted).digest('hex')) throw new Error(`the digest of ${name} is another`);
}

async function all() {
    for (let first = 0; first < 100; first += 10) await Promise.all(Array.from({ length: 10 }, (_, at) => one(first + at)));
}

all().then(() => process.exit(0), (error) => { console.error(error.message); process.exit(1); });
