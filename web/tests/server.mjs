// Static web servers on the loopback interface, as plain as a host can be: no header but the type and the length.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm",
  ".svg": "image/svg+xml", ".json": "application/json", ".gz": "application/gzip", ".png": "image/png",
};

/// Serves `folder` at `prefix` ("/" or "/a/b/"). `server.folder` may be changed: the next deployment; with
/// `server.fails` every answer is an error of the host.
export async function serveFolder(folder, prefix = "/") {
  const server = { folder, hits: [], fails: false };
  const listener = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    server.hits.push(pathname);
    if (server.fails) {
      response.writeHead(503).end("the host fails");
      return;
    }
    const file = fileOf(server.folder, prefix, decodeURIComponent(pathname));
    if (file === undefined) {
      response.writeHead(404).end();
      return;
    }
    const bytes = fs.readFileSync(file);
    response.writeHead(200, { "content-type": TYPES[path.extname(file)] ?? "application/octet-stream", "content-length": bytes.length });
    response.end(bytes);
  });
  server.origin = await listen(listener);
  server.url = server.origin + prefix;
  server.close = () => close(listener);
  return server;
}

/// Another origin: answers everything, lets everyone read it, and remembers who asked.
export async function serveForeign() {
  const server = { hits: [] };
  const listener = http.createServer((request, response) => {
    server.hits.push(`${request.method} ${request.url}`);
    response.writeHead(200, { "access-control-allow-origin": "*", "content-type": "text/javascript" });
    response.end("/* here */");
  });
  listener.on("upgrade", (request, socket) => {
    server.hits.push(`UPGRADE ${request.url}`);
    socket.destroy();
  });
  server.origin = await listen(listener);
  server.close = () => close(listener);
  return server;
}

function fileOf(folder, prefix, pathname) {
  if (!pathname.startsWith(prefix)) return undefined;
  const file = path.join(folder, pathname.slice(prefix.length) || "index.html");
  const inside = !path.relative(folder, file).startsWith("..");
  return inside && fs.statSync(file, { throwIfNoEntry: false })?.isFile() ? file : undefined;
}

async function listen(listener) {
  await new Promise((resolve, reject) => listener.once("error", reject).listen(0, "127.0.0.1", resolve));
  // A test that failed may leave it open; the process must end all the same.
  listener.unref();
  return `http://127.0.0.1:${listener.address().port}`;
}

async function close(listener) {
  listener.closeAllConnections();
  await new Promise((resolve) => listener.close(resolve));
}
