#!/usr/bin/env python3
"""A proxy that resets its connections when it is asked to.

    cut_proxy.py PORT FILE

Prints the port on which it listens for connections to PORT of this machine.
Whenever FILE is there and a connection is open, all connections are reset, a
line is printed, and then FILE is removed: whoever made it can wait for that.
"""
import os
import select
import socket
import sys

import t_server


def main():
    port, file = int(sys.argv[1]), sys.argv[2]
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    peers = {}
    while True:
        ready, _, _ = select.select([listener, *peers], [], [], 0.02)
        for s in ready:
            if s is listener:
                one = s.accept()[0]
                try:
                    two = socket.create_connection(("127.0.0.1", port))
                except OSError:  # the server has ended
                    one.close()
                    continue
                peers[one], peers[two] = two, one
            elif s in peers:
                try:
                    data = s.recv(65536)
                    peers[s].sendall(data)
                except OSError:
                    data = b""
                if not data:
                    other = peers.pop(s)
                    del peers[other]
                    s.close()
                    other.close()
        if peers and os.path.exists(file):
            for s in peers:
                t_server.reset(s)
            peers.clear()
            print("cut", flush=True)
            os.unlink(file)


main()
