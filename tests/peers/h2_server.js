// TLS servers for the tests of the HTTP client: node h2_server.js DIR
//
// DIR has the certificates of make_certs.sh. Prints "name port" per server, then "ready". Ends when
// its standard input does, so that no test leaves it behind.
'use strict';
const fs = require('fs');
const http2 = require('http2');
const https = require('https');
const path = require('path');

const dir = process.argv[2];
const identity = (name) => ({
  key: fs.readFileSync(path.join(dir, `${name}.key`)),
  cert: fs.readFileSync(path.join(dir, `${name}.crt`)),
});

// What a server has seen since it started.
const stats = () => ({ connections: 0, requests: 0, busiest: 0, open: 0, bodies: {} });

// sockets: all connections of the server.
function answer(seen, sockets, req, res) {
  const url = new URL(req.url, 'https://peer');
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('end', () => {
    const body = Buffer.concat(chunks).toString();
    if (url.pathname === '/stats') return res.end(JSON.stringify(seen));
    seen.requests++;
    seen.open++;
    seen.busiest = Math.max(seen.busiest, seen.open);
    if (body) seen.bodies[body] = (seen.bodies[body] || 0) + 1;
    res.on('close', () => seen.open--);
    act(url, sockets, req, res, body);
  });
}

function act(url, sockets, req, res, body) {
  const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants;
  switch (url.pathname) {
    case '/reset':
      return req.stream.close(NGHTTP2_INTERNAL_ERROR);
    case '/refuse':
      return req.stream.close(NGHTTP2_REFUSED_STREAM);
    case '/cut':
      return sockets.forEach((socket) => socket.destroy());
    default:
      return setTimeout(() => {
        res.setHeader('content-type', 'text/plain');
        res.end(`${req.httpVersion} ${body}`);
      }, Number(url.searchParams.get('ms') || 0));
  }
}

function serve(server) {
  const seen = stats();
  const sockets = new Set();
  server.on('secureConnection', (socket) => {
    seen.connections++;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('session', (session) => session.on('error', () => {}));
  server.on('stream', (stream) => stream.on('error', () => {}));
  server.on('request', (req, res) => answer(seen, sockets, req, res));
  return server;
}

const h2 = (name, options) => serve(http2.createSecureServer({ ...identity(name), ...options }));
const h1 = (name, options) => serve(https.createServer({ ...identity(name), ...options }));

const servers = {
  h2: h2('good', { settings: { maxConcurrentStreams: 100 } }),
  narrow: h2('good', { settings: { maxConcurrentStreams: 4 } }),
  leaving: h2('good').on('session', (session) => session.goaway()),
  h1: h1('good'),
  wrong_host: h2('wrong_host'),
  expired: h2('expired'),
  self_signed: h2('self_signed'),
  old_tls: h1('good', { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }),
};

let left = Object.keys(servers).length;
for (const [name, server] of Object.entries(servers)) {
  server.on('tlsClientError', () => {}); // refusing us is what some tests do
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
    console.log(`${name} ${server.address().port}`);
    if (--left === 0) console.log('ready');
  });
}
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
