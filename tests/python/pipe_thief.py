"""Listens in place of a server of hfsb --on, as a command of it could.

    pipe_thief.py FOLDER LOG

Renames FOLDER/hfsb-*/socket, listens there, makes LOG.ready, and passes one
connection on to the server; what the bridge sends is added to LOG. Then the
socket gets its name back.
"""
import glob
import os
import selectors
import socket
import sys

folder, log = sys.argv[1:]
path = glob.glob(folder + "/hfsb-*/socket")[0]
listener = socket.socket(socket.AF_UNIX)
listener.settimeout(60)
os.rename(path, path + ".real")
listener.bind(path)
listener.listen(8)
open(log + ".ready", "w").close()
try:
    bridge, _ = listener.accept()
    server = socket.socket(socket.AF_UNIX)
    server.connect(path + ".real")
    both = selectors.DefaultSelector()
    both.register(bridge, selectors.EVENT_READ, server)
    both.register(server, selectors.EVENT_READ, bridge)
    with open(log, "ab", buffering=0) as out:
        data = b"x"
        while data:
            for key, _ in both.select(60):
                data = key.fileobj.recv(65536)
                if key.fileobj is bridge:
                    out.write(data)
                key.data.sendall(data)
                if not data:
                    break
    bridge.close()
finally:
    os.rename(path + ".real", path)
