"""A local HTTP proxy that adds the header `x-api-key`, for clients that cannot send a header of their own.

    COUNTERPART_API_KEY=cp_… key_proxy.py http://127.0.0.1:PORT

Prints its own base URL, and passes every request to the server at the given URL until a signal ends the proxy. A Host or Origin that names
the proxy is replaced by that of the server. Any other Host or Origin is passed on, since the server must refuse it. Responses are passed on
as they arrive.
"""

import http.client
import http.server
import os
import sys
import urllib.parse

# Headers that apply to one connection only. The proxy does not pass them on, but sets its own.
HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def chunked_body(self):
        """Reads the body of a request with chunked transfer encoding."""
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def answer(self):
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            body = self.chunked_body()
        else:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
        upstream = http.client.HTTPConnection(target.hostname, target.port, timeout=120)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() in ("host", "origin"):
                    value = value.replace(f":{server.server_port}", f":{target.port}")
                if name.lower() not in HOP_BY_HOP | {"content-length", "x-api-key"}:
                    upstream.putheader(name, value)
            upstream.putheader("x-api-key", key)
            if body or self.command in ("POST", "PUT", "PATCH"):
                upstream.putheader("content-length", str(len(body)))
            upstream.endheaders(body or None)
            self.pass_on(upstream.getresponse())
        finally:
            upstream.close()

    def pass_on(self, response):
        length = response.getheader("content-length")
        has_body = self.command != "HEAD" and response.status not in (204, 304) and response.status >= 200
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        chunked = has_body and length is None
        if chunked:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        # `read1` returns the bytes that have arrived, so that each event of a stream is passed on immediately.
        while has_body and (part := response.read1(65536)):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
            self.wfile.flush()
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_DELETE = do_OPTIONS = do_HEAD = do_PUT = do_PATCH = answer

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # Ignores connections that a client closed in the middle of a stream.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


target = urllib.parse.urlsplit(sys.argv[1])
key = os.environ["COUNTERPART_API_KEY"]
server = Server(("127.0.0.1", 0), Proxy)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
