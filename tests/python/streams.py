#!/usr/bin/env python3
"""streams.py - many short streams over one connection

    streams.py URL COUNT

Runs COUNT commands through URL, a proxy, and prints how many of their streams
came whole. Head and body of a request are sent one by one, as programs do, so
that the first output may come while the proxy still looks at the body."""

import http.client
import json
import sys
import urllib.parse

url = urllib.parse.urlsplit(sys.argv[1])
connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
body = json.dumps({"command": "echo first; sleep 0.01", "stream": True})
whole = 0
for _ in range(int(sys.argv[2])):
    try:
        connection.request("POST", "/api/bash", body,
                           {"Content-Type": "application/json"})
        whole += b"event: result" in connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        connection.close()
print(whole)
